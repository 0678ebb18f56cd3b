#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "engines/brute_force.hpp"
#include "engines/conjunctions/random_model.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/expansion.hpp"
#include "unkernel/engines/conjunctions/heaviest_conjunctions.hpp"
#include "unkernel/engines/conjunctions/layout.hpp"

namespace {

using brute_force::Ranks;
using unkernel::Monitor;
using unkernel::Random;
using unkernel::engines::arrange;
using unkernel::engines::borrow;
using unkernel::engines::ConjunctionArrays;
using unkernel::engines::expand;
using unkernel::engines::HeadPlan;
using unkernel::engines::HeaviestConjunctions;
using unkernel::engines::list_heaviest;
using unkernel::engines::most_degree;
using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr HeadPlan head_plans[] = {{0, 0, false},  {0, 6, false}, {0, 6, true},  {0, 14, true},
                                   {0, 14, false}, {1, 1, false}, {3, 8, false}, {8, 14, false}};

struct WeightedConjunction {
  std::vector<std::int64_t> columns;  // ascending, then -1
  std::vector<double> weights;

  double magnitude() const {
    double largest = 0.0;
    for (const double weight : weights) largest = std::max(largest, std::abs(weight));
    return largest;
  }
};

// Lists all conjunctions by descending weight. No two have the same weight.
std::vector<WeightedConjunction> slow_listing(const RandomModel& model) {
  std::vector<WeightedConjunction> list;
  for (const auto& [ranks, weight_row] : model.weight_rows) {
    WeightedConjunction conjunction;
    for (const auto rank : ranks) conjunction.columns.push_back(model.columns[rank]);
    std::sort(conjunction.columns.begin(), conjunction.columns.end());
    conjunction.columns.resize(most_degree, -1);
    const double* weights = model.weights.data() + weight_row * model.shape.scores;
    conjunction.weights.assign(weights, weights + model.shape.scores);
    if (conjunction.magnitude() > 0.0) list.push_back(std::move(conjunction));
  }
  std::sort(list.begin(), list.end(), [](const WeightedConjunction& a, const WeightedConjunction& b) {
    return a.magnitude() > b.magnitude();
  });
  return list;
}

std::array<std::uint64_t, most_degree + 1> counts_of(const std::vector<WeightedConjunction>& list) {
  std::array<std::uint64_t, most_degree + 1> counts{};
  for (const WeightedConjunction& conjunction : list) {
    const auto absent = std::count(conjunction.columns.begin(), conjunction.columns.end(), -1);
    ++counts[most_degree - static_cast<std::size_t>(absent)];
  }
  return counts;
}

void check_listing(const HeaviestConjunctions& listing, const std::vector<WeightedConjunction>& expected,
                   std::size_t top, std::size_t scores) {
  const std::size_t n_listed = std::min(top, expected.size());
  CHECK(listing.counts == counts_of(expected));
  CHECK(listing.columns.size() == n_listed * most_degree && listing.weights.size() == n_listed * scores);
  for (std::size_t i = 0; i < n_listed; ++i) {
    for (std::size_t k = 0; k < most_degree; ++k)
      CHECK(listing.columns[i * most_degree + k] == expected[i].columns[k]);
    for (std::size_t s = 0; s < scores; ++s)
      CHECK(close(listing.weights[i * scores + s], expected[i].weights[s], 1e-12));
  }
}

// Sets some weights of the model to zero, and gives distinct magnitudes to the others. Zeros are not listed.
void spread_weights(RandomModel& model, Random& random) {
  std::vector<std::size_t> order(model.weights.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i + 1;
  random.shuffle(std::span(order));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double size = static_cast<double>(order[i]) / static_cast<double>(order.size());
    model.weights[i] = order[i] % 7 == 0 ? 0.0 : order[i] % 2 == 0 ? size : -size;
  }
}

void test_lists_the_conjunctions_of_the_model() {
  Random random(1);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (int degree = 1; degree <= 3; ++degree) {
      for (const std::size_t scores : {1U, 3U}) {
        const FeatureMap map{degree, FeatureMap::Kind::kernel, 1.0, 1.0};
        RandomModel model({basis, map, 14, 30, scores}, random);
        std::vector<Ranks> chosen;
        for (Ranks& ranks : brute_force::all_conjunctions(14, degree, basis)) {
          if (random.below(2) == 0) chosen.push_back(std::move(ranks));
        }
        model.add(std::move(chosen), random);
        spread_weights(model, random);
        const std::vector<WeightedConjunction> expected = slow_listing(model);
        for (const HeadPlan plan : head_plans) {
          const ConjunctionArrays arrays = arrange(model.view(), plan, {0, 0.0}, {}, 1);
          for (const std::size_t top :
               {std::size_t{0}, std::size_t{1}, std::size_t{10}, expected.size(), unlimited}) {
            check_listing(list_heaviest(borrow(arrays), top), expected, top, scores);
          }
        }
      }
    }
  }
}

// One support vector whose values are all 1: the weight of a set depends only on its number of features.
void test_lists_quadruples() {
  const std::vector<std::int32_t> offsets{0, 6};
  const std::vector<std::int32_t> columns{1, 3, 4, 6, 8, 9};
  const std::vector<double> values(6, 1.0);
  const std::vector<double> coefficients{1.0};
  const std::vector<double> intercept{0.0};
  const FeatureMap map{4, FeatureMap::Kind::kernel, 1.0, 1.0};
  for (const HeadPlan head : {HeadPlan{0, 0, false}, HeadPlan{0, 3, false}, HeadPlan{0, 6, false},
                              HeadPlan{3, 5, false}, HeadPlan{6, 6, false}}) {
    Monitor monitor;
    const ConjunctionArrays arrays = expand({{offsets, columns, values, 10}, coefficients, intercept},
                                            {map, Basis::sets, head, {0, 0.0}, 0, 0.0, 1e9}, 1, monitor);
    const HeaviestConjunctions listing = list_heaviest(borrow(arrays), unlimited);
    CHECK((listing.counts == std::array<std::uint64_t, 5>{0, 6, 15, 20, 15}));
    const std::vector<double> magnitudes{60, 50, 24, 15};
    const std::vector<std::size_t> magnitude_counts{20, 15, 15, 6};
    std::size_t position = 0;
    for (std::size_t k = 0; k < magnitudes.size(); ++k) {
      for (std::size_t i = 0; i < magnitude_counts[k]; ++i)
        CHECK(close(listing.weights[position++], magnitudes[k]));
    }
  }
}

}  // namespace

int main() {
  test_lists_the_conjunctions_of_the_model();
  test_lists_quadruples();
  return 0;
}
