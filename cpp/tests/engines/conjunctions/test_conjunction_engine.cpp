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
#include "unkernel/engines/conjunctions/conjunction_engine.hpp"
#include "unkernel/engines/conjunctions/layout.hpp"

namespace {

using brute_force::Ranks;
using scoring::scores_of;
using unkernel::Random;
using unkernel::engines::arrange;
using unkernel::engines::borrow;
using unkernel::engines::ConjunctionArrays;
using unkernel::engines::Engine;
using unkernel::engines::HeadPlan;
using unkernel::engines::make_conjunction_engine;
using unkernel::engines::SparseRow;
using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;
using unkernel::kernels::Key;

constexpr double tolerance = 1e-12;

std::vector<FeatureMap> maps(int degree) {
  return {{degree, FeatureMap::Kind::kernel, 0.5, 2.0},
          {degree, FeatureMap::Kind::kernel, 1.0, 0.0},
          {degree, FeatureMap::Kind::plain, 1.0, 1.0}};
}

// Returns plans with heads of no, some and all ranks; also with more fused ranks than the head has.
std::vector<HeadPlan> head_plans(Basis basis) {
  std::vector<HeadPlan> plans{{0, 0, false}, {0, 5, false}, {0, 1000, false}};
  if (basis == Basis::sets)
    plans.insert(plans.end(), {{1, 1, false},
                               {1, 6, false},
                               {3, 7, false},
                               {3, 1000, false},
                               {8, 4, false},
                               {8, 12, false},
                               {8, 1000, false}});
  return plans;
}

template <class Index>
void check_model(const RandomModel& model, HeadPlan plan, const Rows<Index>& rows) {
  const ConjunctionArrays arrays = arrange(model.view(), plan, {0, 0.0}, {}, 1);
  const auto engine = make_conjunction_engine(borrow(arrays));
  CHECK(engine->scores() == model.shape.scores && engine->bytes() >= bytes(borrow(arrays)));
  scoring::check_scores(*engine, rows, tolerance,
                        [&](const scoring::Row& row) { return model.slow_scores(row); });
}

// Returns half of the conjunctions of the rows, and some conjunctions that may not occur in any row.
std::vector<Ranks> some_conjunctions(const std::vector<Ranks>& rows, const ModelShape& shape,
                                     Random& random) {
  std::vector<Ranks> chosen;
  for (const Ranks& ranks : rows) {
    for (Ranks& conjunction : brute_force::conjunctions(ranks, shape.map.degree, shape.basis)) {
      if (random.below(2) == 0) chosen.push_back(std::move(conjunction));
    }
    chosen.push_back(draw_ranks(shape.used, 1, random));
  }
  return chosen;
}

template <class Index>
void check_random_model(const ModelShape& shape, std::size_t row_size, std::vector<HeadPlan> plans,
                        Random& random) {
  RandomModel model(shape, random);
  Rows<Index> ordered, unordered;
  std::vector<Ranks> ranks = add_rows(model, row_size, false, random, ordered);
  for (Ranks& other_ranks : add_rows(model, row_size, true, random, unordered))
    ranks.push_back(std::move(other_ranks));
  model.add(some_conjunctions(ranks, shape, random), random);
  for (const HeadPlan plan : plans) {
    check_model(model, plan, ordered);
    check_model(model, plan, unordered);
  }
}

void test_equals_the_sum_over_conjunctions() {
  Random random(1);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (int degree = 1; degree <= 3; ++degree) {
      for (const FeatureMap& map : maps(degree)) {
        for (const std::size_t scores : {1U, 2U, 3U, 4U, 5U, 6U}) {
          check_random_model<std::int32_t>({basis, map, 14, 14, scores}, 7, head_plans(basis), random);
          check_random_model<std::int64_t>({basis, map, 40, 60, scores}, 6, head_plans(basis), random);
        }
      }
    }
  }
}

// Many features, ranks of 32 bits, and columns too far apart for a table of columns.
void test_equals_the_sum_with_many_features() {
  Random random(2);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (const std::size_t scores : {1U, 4U}) {
      check_random_model<std::int32_t>({basis, maps(1)[0], 70'000, 70'001, scores}, 8,
                                       {{0, 0, false}, {0, 70'000, false}}, random);
      check_random_model<std::int32_t>({basis, maps(2)[0], 70'000, 140'001, scores}, 20,
                                       {{0, 0, false}, {0, 100, false}}, random);
      check_random_model<std::int64_t>({basis, maps(3)[0], 400, 500, scores}, 10,
                                       {{0, 0, false}, {0, 60, false}}, random);
      check_random_model<std::int64_t>({basis, maps(3)[2], 2'000, std::int64_t{1} << 40, scores}, 10,
                                       {{0, 100, false}}, random);
    }
  }
}

// The partners of some conjunctions are so many that they are stored in hash tables.
void test_owners_with_many_partners() {
  Random random(3);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (int degree = 2; degree <= 3; ++degree) {
      for (const std::size_t scores : {1U, 2U}) {
        RandomModel model({basis, maps(degree)[0], 60, 60, scores}, random);
        Rows<std::int32_t> rows;
        add_rows(model, 12, false, random, rows);
        std::vector<Ranks> chosen;
        for (Ranks& ranks : brute_force::all_conjunctions(60, degree, basis)) {
          if (random.below(3) != 0) chosen.push_back(std::move(ranks));
        }
        model.add(std::move(chosen), random);
        CHECK(!arrange(model.view(), {0, 10, false}, {0, 0.0}, {}, 1).probes.empty());
        for (const HeadPlan plan : {HeadPlan{0, 0, false}, HeadPlan{0, 10, false}})
          check_model(model, plan, rows);
      }
    }
  }
}

void test_no_conjunctions_and_no_features() {
  Random random(4);
  RandomModel model({Basis::sets, maps(2)[0], 5, 7, 2}, random);
  Rows<std::int32_t> rows;
  add_rows(model, 3, false, random, rows);
  for (const HeadPlan plan : head_plans(Basis::sets)) check_model(model, plan, rows);
  model.columns.clear();
  for (const HeadPlan plan : head_plans(Basis::sets)) check_model(model, plan, rows);
  check_model(model, {0, 0, false}, Rows<std::int32_t>{});
}

void test_results_do_not_depend_on_threads() {
  Random random(5);
  RandomModel model({Basis::sets, maps(2)[0], 4'000, 4'000, 3}, random);
  Rows<std::int32_t> rows;
  std::vector<Ranks> chosen;
  while (rows.size() < 3000) {
    for (const Ranks& ranks : add_rows(model, 8, rows.size() >= 1500, random, rows)) {
      if (!ranks.empty()) chosen.insert(chosen.end(), {{ranks[7]}, {ranks[7], ranks[3]}});
    }
  }
  model.add(std::move(chosen), random);
  const ConjunctionArrays arrays = arrange(model.view(), {2, 100, false}, {0, 0.0}, {}, 1);
  const ConjunctionArrays arrays_by_two_threads = arrange(model.view(), {2, 100, false}, {0, 0.0}, {}, 2);
  const auto engine = make_conjunction_engine(borrow(arrays));
  const std::vector<double> expected = scores_of(*engine, rows, 1);
  for (const int threads : {2, 5}) CHECK(scores_of(*engine, rows, threads) == expected);
  CHECK(scores_of(*make_conjunction_engine(borrow(arrays_by_two_threads)), rows, 1) == expected);
}

// A column that a row has twice with the value 1 has the value 2, whatever other rows there are. In a row
// without values, a repeated column counts once.
void test_repeated_columns_are_added() {
  Random random(6);
  RandomModel model({Basis::sets, maps(2)[0], 4, 4, 1}, random);
  model.add(brute_force::all_conjunctions(4, 2, Basis::sets), random);
  Rows<std::int32_t> twice, with_another;
  for (Rows<std::int32_t>* rows : {&twice, &with_another})
    scoring::add_entries({{2, 1.0}, {2, 1.0}, {1, 1.0}}, *rows);
  scoring::add_entries({{0, 0.5}}, with_another);
  for (const HeadPlan plan : {HeadPlan{0, 0, false}, HeadPlan{0, 4, false}}) {
    check_model(model, plan, twice);
    check_model(model, plan, with_another);
    const ConjunctionArrays arrays = arrange(model.view(), plan, {0, 0.0}, {}, 1);
    const auto engine = make_conjunction_engine(borrow(arrays));
    double score = 0.0;
    engine->score(SparseRow<std::int32_t>{twice.columns}, *engine->worker(), &score);
    scoring::check_near({&score, 1}, model.slow_scores({{1, 1.0}, {2, 1.0}}), tolerance);
  }
}

template <class Damage>
void check_refused(const Damage& damage) {
  Random random(7);
  RandomModel model({Basis::sets, maps(2)[0], 6, 8, 2}, random);
  model.add({{0}, {3}, {5, 2}}, random);
  (void)arrange(model.view(), {0, 3, false}, {0, 0.0}, {}, 1);
  damage(model);
  for (const HeadPlan plan : head_plans(Basis::sets))
    CHECK_THROWS(arrange(model.view(), plan, {0, 0.0}, {}, 1), std::invalid_argument);
}

void test_invalid_models_are_refused() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  check_refused([](RandomModel& m) { m.keys[0] = 0; });
  check_refused([](RandomModel& m) { m.keys[1] = m.keys[0]; });
  check_refused([](RandomModel& m) { std::swap(m.keys[0], m.keys[1]); });
  check_refused([](RandomModel& m) { m.keys.back() = 1 + 6 + 15; });  // one too many for 6 features
  check_refused([](RandomModel& m) { m.keys.back() = static_cast<Key>(-1); });
  check_refused([](RandomModel& m) { m.columns[2] = 8; });
  check_refused([](RandomModel& m) { m.columns[2] = -1; });
  check_refused([](RandomModel& m) { m.columns[2] = m.columns[4]; });
  check_refused([](RandomModel& m) { m.columns.resize(4); });  // a key refers to rank 5
  check_refused([](RandomModel& m) { m.weights.pop_back(); });
  check_refused([](RandomModel& m) { m.weights.clear(); });
  check_refused([&](RandomModel& m) { m.weights[3] = nan; });
  check_refused([&](RandomModel& m) { m.weights[3] = -infinity; });
  check_refused([&](RandomModel& m) { m.intercept[0] = nan; });
  check_refused([](RandomModel& m) { m.intercept.pop_back(); });
  check_refused([](RandomModel& m) {
    m.intercept.clear();
    m.weights.clear();
    m.keys.clear();
  });
  check_refused([](RandomModel& m) { m.shape.map.degree = 0; });
  check_refused([](RandomModel& m) { m.shape.map.degree = 4; });
  check_refused([](RandomModel& m) { m.shape.map.degree = 1; });  // keys beyond the six single features
}

}  // namespace

int main() {
  test_equals_the_sum_over_conjunctions();
  test_equals_the_sum_with_many_features();
  test_owners_with_many_partners();
  test_no_conjunctions_and_no_features();
  test_results_do_not_depend_on_threads();
  test_repeated_columns_are_added();
  test_invalid_models_are_refused();
  return 0;
}
