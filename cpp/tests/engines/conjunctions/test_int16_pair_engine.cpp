// Compares scores of the 16-bit engine with a loop over all conjunctions, for any split between dense tables
// and buckets.
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "check.hpp"
#include "engines/brute_force.hpp"
#include "engines/conjunctions/random_model.hpp"
#include "engines/scoring.hpp"
#include "random_rows.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/int16_pair_engine.hpp"

namespace {

using brute_force::Ranks;
using unkernel::Random;
using unkernel::engines::dense_pairs_for;
using unkernel::engines::make_int16_pair_engine;
using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;

constexpr double tolerance = 1e-13;
constexpr std::int64_t all_core = std::numeric_limits<std::int64_t>::max();
const FeatureMap plain{2, FeatureMap::Kind::plain, 1.0, 1.0};
const FeatureMap kernel{2, FeatureMap::Kind::kernel, 0.5, 2.0};

ModelShape shape_of(std::uint64_t used, std::int64_t features, std::size_t scores) {
  return {Basis::sets, plain, used, features, scores};
}

void round_weights(double unit, RandomModel& model) {
  for (double& weight : model.weights) weight = unit * std::round(weight / unit);
  for (double& value : model.intercept) value = unit * std::round(value / unit);
}

// Returns most conjunctions of the rows, but no pair of two columns outside the core.
std::vector<Ranks> some_pairs(const RandomModel& model, const std::vector<Ranks>& rows, std::int64_t core,
                              Random& random) {
  std::vector<Ranks> chosen;
  for (const Ranks& ranks : rows) {
    for (Ranks& pair : brute_force::conjunctions(ranks, 2, Basis::sets)) {
      bool outside_core = pair.size() == 2;
      for (const auto rank : pair) outside_core = outside_core && model.columns[rank] >= core;
      if (!outside_core && random.below(4) != 0) chosen.push_back(std::move(pair));
    }
  }
  return chosen;
}

struct Case {
  ModelShape shape;
  std::size_t row_size;
  std::int64_t core;
};

template <class Index>
void check_case(const Case& chosen_case, const std::vector<std::uint64_t>& dense, Random& random) {
  RandomModel model(chosen_case.shape, random);
  Rows<Index> ordered, unordered;
  std::vector<Ranks> ranks = add_rows(model, chosen_case.row_size, false, random, ordered);
  for (Ranks& more : add_rows(model, chosen_case.row_size, true, random, unordered))
    ranks.push_back(std::move(more));
  model.add(some_pairs(model, ranks, chosen_case.core, random), random);
  round_weights(1.0 / 64.0, model);
  for (const std::uint64_t pairs : dense) {
    const auto engine = make_int16_pair_engine(model.view(), pairs);
    CHECK(engine != nullptr && engine->scores() == chosen_case.shape.scores && engine->bytes() > 0);
    const auto slow = [&](const scoring::Row& row) { return model.slow_scores(row); };
    scoring::check_scores(*engine, ordered, tolerance, slow);
    scoring::check_scores(*engine, unordered, tolerance, slow);
    CHECK(scoring::scores_of(*engine, ordered, 1) == scoring::scores_of(*engine, ordered, 3));
  }
}

void test_equals_the_sum_over_pairs() {
  Random random(1);
  for (const std::size_t scores : {2U, 3U, 4U, 7U, 8U, 17U, 43U, 70U}) {
    for (const std::int64_t core : {all_core, std::int64_t{8}, std::int64_t{0}}) {
      check_case<std::int32_t>({shape_of(16, 16, scores), 9, core}, {0, 5, 30, 1'000}, random);
      check_case<std::int64_t>({shape_of(40, 90, scores), 12, core}, {0, 100, 300, 10'000}, random);
    }
  }
}

void test_equals_the_sum_with_a_kernel_map() {
  Random random(2);
  check_case<std::int32_t>({{Basis::sets, kernel, 30, 30, 4}, 8, all_core}, {0, 60, 1'000}, random);
}

// Covers features with thousands of partners, tags of all lengths, and ranks that exceed 16 bits.
void test_many_features() {
  Random random(3);
  check_case<std::int32_t>({shape_of(3'000, 3'000, 4), 200, all_core}, {0, 50'000}, random);
  check_case<std::int32_t>({shape_of(3'000, 3'000, 4), 200, 900}, {0, 50'000}, random);
  check_case<std::int64_t>({shape_of(200'000, std::int64_t{1} << 40, 5), 60, all_core}, {0, 1'000}, random);
}

// Rows as long as these are scored by other code, because sums of 16-bit weights might overflow.
void test_long_rows() {
  Random random(4);
  check_case<std::int32_t>({shape_of(400, 400, 3), 330, all_core}, {0, 5'000, 100'000}, random);
}

RandomModel small_model(Basis basis, int degree, std::size_t scores) {
  Random random(5);
  RandomModel model({basis, {degree, FeatureMap::Kind::plain, 1.0, 1.0}, 10, 10, scores}, random);
  model.add({{0}, {1}, {0, 1}, {3, 7}}, random);
  round_weights(0.25, model);
  return model;
}

bool is_supported(const RandomModel& model) {
  return make_int16_pair_engine(model.view(), dense_pairs_for(model.view())) != nullptr;
}

void test_unsupported_models_give_no_engine() {
  CHECK(is_supported(small_model(Basis::sets, 2, 3)));
  CHECK(!is_supported(small_model(Basis::sets, 2, 1)));
  CHECK(!is_supported(small_model(Basis::sets, 3, 3)));
  RandomModel monomials = small_model(Basis::sets, 2, 3);
  monomials.shape.basis = Basis::monomials;
  CHECK(!is_supported(monomials));
}

void test_weights_must_fit_into_16_bits() {
  RandomModel model = small_model(Basis::sets, 2, 3);
  model.weights[0] = 32767.0 * 0.25;
  CHECK(is_supported(model));
  model.weights[0] = 32768.0 * 0.25;
  model.weights[1] = 0.25;
  CHECK(!is_supported(model));
  model.weights[0] = 1.0 / 3.0;
  CHECK(!is_supported(model));
  model.weights[0] = std::numeric_limits<double>::denorm_min();
  CHECK(!is_supported(model));
  for (double& weight : model.weights) weight = 0.0;
  for (double& value : model.intercept) value = 0.0;
  CHECK(is_supported(model));
  model.weights[0] = std::nan("");
  CHECK_THROWS(is_supported(model), std::invalid_argument);
}

void test_invalid_models_are_refused() {
  RandomModel model = small_model(Basis::sets, 2, 3);
  std::swap(model.keys[0], model.keys[1]);
  CHECK_THROWS(is_supported(model), std::invalid_argument);
  model = small_model(Basis::sets, 2, 3);
  model.columns[1] = model.columns[0];
  CHECK_THROWS(is_supported(model), std::invalid_argument);
}

}  // namespace

int main() {
  test_equals_the_sum_over_pairs();
  test_equals_the_sum_with_a_kernel_map();
  test_many_features();
  test_long_rows();
  test_unsupported_models_give_no_engine();
  test_weights_must_fit_into_16_bits();
  test_invalid_models_are_refused();
  return 0;
}
