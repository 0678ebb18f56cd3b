#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "engines/brute_force.hpp"
#include "engines/random_machine.hpp"
#include "engines/scoring.hpp"
#include "random_rows.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/conjunction_engine.hpp"
#include "unkernel/engines/conjunctions/expansion.hpp"
#include "unkernel/engines/conjunctions/heaviest_conjunctions.hpp"

namespace {

using unkernel::Interrupted;
using unkernel::Monitor;
using unkernel::NotEnoughMemory;
using unkernel::Random;
using unkernel::engines::borrow;
using unkernel::engines::ConjunctionArrays;
using unkernel::engines::expand;
using unkernel::engines::ExpansionPlan;
using unkernel::engines::HeadPlan;
using unkernel::engines::HeaviestConjunctions;
using unkernel::engines::list_heaviest;
using unkernel::engines::make_conjunction_engine;
using unkernel::engines::most_degree;
using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;
using unkernel::kernels::KernelFunction;

constexpr double tolerance = 1e-11;
constexpr double unlimited = std::numeric_limits<double>::infinity();

FeatureMap kernel_map(int degree, double gamma, double coef0) {
  return {degree, FeatureMap::Kind::kernel, gamma, coef0};
}

ConjunctionArrays expand_machine(const RandomMachine& machine, const ExpansionPlan& plan, int threads = 1) {
  Monitor monitor;
  return expand(machine.view(), plan, threads, monitor);
}

std::vector<HeadPlan> head_plans(Basis basis) {
  std::vector<HeadPlan> plans{{0, 0, false}, {0, 6, false}, {0, 1000, false}};
  if (basis == Basis::sets)
    plans.insert(plans.end(), {{1, 1, false}, {3, 8, false}, {8, 5, false}, {8, 1000, false}});
  return plans;
}

template <class Index>
void check_expansion(const RandomMachine& machine, const ExpansionPlan& plan, const Rows<Index>& rows) {
  const ConjunctionArrays arrays = expand_machine(machine, plan);
  const auto engine = make_conjunction_engine(borrow(arrays));
  const KernelFunction kernel{KernelFunction::Type::polynomial, plan.map.degree, plan.map.gamma,
                              plan.map.coef0};
  scoring::check_scores(*engine, rows, tolerance,
                        [&](const scoring::Row& row) { return machine.slow_scores(kernel, row); });
}

void check_all_plans(const RandomMachine& machine, const FeatureMap& map, Basis basis, Random& random) {
  const RowKind kind{machine.vectors.features, 10, false};
  const auto narrow = rows_to_score<std::int32_t>(kind, random);
  const auto wide = rows_to_score<std::int64_t>(kind, random);
  for (const HeadPlan head : head_plans(basis)) {
    check_expansion(machine, {map, basis, head, {0, 0.0}, 0, 0.0, unlimited}, narrow);
    check_expansion(machine, {map, basis, head, {0, 0.0}, 0, 1e-300, unlimited}, wide);
    for (const std::uint32_t rare_below : {2U, 5U, 1'000'000'000U}) {
      if (basis == Basis::sets)
        check_expansion(machine, {map, basis, head, {0, 0.0}, rare_below, 0.0, unlimited}, wide);
    }
  }
}

void test_equals_the_kernel_sum() {
  Random random(1);
  const double gammas[] = {0.5, 1.0, 0.5, 1.0};
  const double coef0s[] = {-0.3, 1.0, 1.0, 0.0};
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (int degree = 1; degree <= 4; ++degree) {
      for (const std::size_t scores : {1U, 2U, 3U, 4U}) {
        const RandomMachine machine(25, {20, 7, basis == Basis::sets}, scores, random);
        const std::size_t kernel = (scores + static_cast<std::size_t>(degree)) % 4;
        check_all_plans(machine, kernel_map(degree, gammas[kernel], coef0s[kernel]), basis, random);
        if (scores == 1) check_all_plans(machine, kernel_map(degree, 0.5, -0.3), basis, random);
      }
    }
  }
}

// Covers hash tables, which store many partners, and ranks of 32 bits.
void test_many_partners_and_many_features() {
  Random random(2);
  const RandomMachine many_partners(60, {50, 40, true}, 1, random);
  check_all_plans(many_partners, kernel_map(3, 0.5, 1.0), Basis::sets, random);
  RandomMachine wide(30, {20, 7, true}, 2, random);
  wide.vectors.features = 70'000;
  for (std::int32_t first = 0; first < 70'000; first += 10) {
    std::vector<std::int32_t> columns(10);
    std::iota(columns.begin(), columns.end(), first);
    wide.vectors.add(columns, std::vector<double>(10, 1.0));
    for (int score = 0; score < 2; ++score) wide.coefficients.push_back(uniform(random));
  }
  const auto rows = rows_to_score<std::int32_t>({70'000, 12, true}, random);
  for (const HeadPlan head : {HeadPlan{0, 0, false}, HeadPlan{3, 12, false}}) {
    check_expansion(wide, {kernel_map(2, 0.5, 1.0), Basis::sets, head, {0, 0.0}, 0, 0.0, unlimited}, rows);
    check_expansion(wide, {kernel_map(4, 0.5, 1.0), Basis::sets, head, {0, 0.0}, 2, 0.0, unlimited}, rows);
  }
}

void test_no_support_vectors() {
  Random random(3);
  const RandomMachine none(0, {20, 7, true}, 2, random);
  check_all_plans(none, kernel_map(3, 0.5, 1.0), Basis::sets, random);
  const RandomMachine empty(3, {20, 0, true}, 2, random);
  check_all_plans(empty, kernel_map(3, 0.5, 1.0), Basis::monomials, random);
}

bool same_arrays(const ConjunctionArrays& a, const ConjunctionArrays& b) {
  bool same = a.fused == b.fused && a.head == b.head && a.rare == b.rare && a.columns == b.columns &&
              a.intercept == b.intercept && a.head_low == b.head_low && a.head_top == b.head_top &&
              a.owner_weights == b.owner_weights && a.owner_begins == b.owner_begins &&
              a.probe_begins == b.probe_begins && a.probes == b.probes &&
              a.posting_begins == b.posting_begins && a.item_begins == b.item_begins && a.items == b.items &&
              a.posting_weights == b.posting_weights;
  for (std::size_t k = 0; k < a.levels.size(); ++k) {
    same = same && a.levels[k].keys == b.levels[k].keys && a.levels[k].weights == b.levels[k].weights &&
           a.levels[k].begins == b.levels[k].begins;
  }
  return same;
}

void test_results_do_not_depend_on_threads() {
  Random random(4);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    const RandomMachine machine(300, {60, 14, basis == Basis::sets}, 2, random);
    for (const double threshold : {0.0, 0.4}) {
      const HeadPlan head{basis == Basis::sets ? 3U : 0U, 20, false};
      const std::uint32_t rare_below = basis == Basis::sets ? 3 : 0;
      const ExpansionPlan plan{
          kernel_map(3, 0.5, 1.0), basis, head, {0, 0.0}, rare_below, threshold, unlimited};
      const ConjunctionArrays expected = expand_machine(machine, plan);
      for (const int threads : {2, 5}) CHECK(same_arrays(expand_machine(machine, plan, threads), expected));
    }
  }
}

// --- Pruning ------------------------------------------------------------------------------------------

using Weights = std::map<std::vector<std::int64_t>, std::vector<double>>;  // by columns, ascending, then -1

// Computes the weights of all conjunctions of all support vectors by the formula.
Weights slow_expansion(const RandomMachine& machine, const FeatureMap& map) {
  Weights weights;
  for (std::size_t j = 0; j < machine.count(); ++j) {
    const auto* columns = machine.vectors.columns.data();
    const brute_force::Ranks columns_of_vector(columns + machine.vectors.begin(j),
                                               columns + machine.vectors.end(j));
    for (const brute_force::Ranks& set :
         brute_force::conjunctions(columns_of_vector, map.degree, Basis::sets)) {
      if (set.empty()) continue;
      std::vector<std::int64_t> key(set.rbegin(), set.rend());
      key.resize(most_degree, -1);
      std::vector<double>& sums = weights.try_emplace(key, machine.scores(), 0.0).first->second;
      const double constant = brute_force::squared_constant(map, Basis::sets, set);
      for (std::size_t s = 0; s < sums.size(); ++s)
        sums[s] += constant * machine.coefficients[j * sums.size() + s];
    }
  }
  return weights;
}

Weights weights_of(const ConjunctionArrays& arrays) {
  const HeaviestConjunctions listing = list_heaviest(borrow(arrays), std::numeric_limits<std::size_t>::max());
  const std::size_t scores = arrays.scores();
  Weights weights;
  for (std::size_t i = 0; i * most_degree < listing.columns.size(); ++i) {
    const auto* columns = listing.columns.data() + i * most_degree;
    const auto* first = listing.weights.data() + i * scores;
    const std::vector<std::int64_t> key(columns, columns + most_degree);
    CHECK(weights.emplace(key, std::vector(first, first + scores)).second);  // no conjunction is listed twice
  }
  return weights;
}

// The threshold of positive and of negative weights, for each score.
struct Thresholds {
  std::vector<double> above, below;

  Thresholds(const RandomMachine& machine, double threshold) {
    for (std::size_t s = 0; s < machine.scores(); ++s) {
      double positive = 0.0, negative = 0.0;
      for (std::size_t j = 0; j < machine.count(); ++j) {
        const double b = machine.coefficients[j * machine.scores() + s];
        positive += b > 0.0 ? 1.0 : 0.0;
        negative += b < 0.0 ? 1.0 : 0.0;
      }
      above.push_back(threshold * positive / (positive + negative));
      below.push_back(threshold * negative / (positive + negative));
    }
  }

  // Returns by how much a weight exceeds its threshold, relative to the threshold: the largest excess of all
  // weights, which is negative if no weight exceeds its threshold.
  double relative_excess(const std::vector<double>& weights) const {
    double best = -1.0;
    for (std::size_t s = 0; s < weights.size(); ++s) {
      best = std::max(best, std::abs(weights[s]) / (weights[s] > 0.0 ? above[s] : below[s]) - 1.0);
    }
    return best;
  }
};

void check_pruned(const RandomMachine& machine, const FeatureMap& map, HeadPlan head, double threshold) {
  const Weights pruned_weights =
      weights_of(expand_machine(machine, {map, Basis::sets, head, {0, 0.0}, 0, threshold, unlimited}));
  const Thresholds thresholds(machine, threshold);
  std::size_t matched = 0;
  for (const auto& [columns, weights] : slow_expansion(machine, map)) {
    const double margin = thresholds.relative_excess(weights);
    if (std::abs(margin) < 1e-9) continue;  // rounding decides
    const auto stored = pruned_weights.find(columns);
    CHECK((stored != pruned_weights.end()) == (margin > 0.0));
    if (stored == pruned_weights.end()) continue;
    ++matched;
    for (std::size_t s = 0; s < weights.size(); ++s) CHECK(close(stored->second[s], weights[s]));
  }
  CHECK(matched == pruned_weights.size());
}

void test_conjunctions_below_the_threshold_are_pruned() {
  Random random(5);
  for (int degree = 1; degree <= 4; ++degree) {
    for (const std::size_t scores : {1U, 3U}) {
      RandomMachine machine(40, {20, 8, true}, scores, random);
      for (double& b : machine.coefficients) b = random.below(4) == 0 ? std::abs(b) : -std::abs(b);
      for (const double coef0 : {1.0, 0.2, -0.7}) {
        for (const HeadPlan head : head_plans(Basis::sets)) {
          for (const double threshold : {0.05, 0.8, 5.0}) {
            check_pruned(machine, kernel_map(degree, 0.5, coef0), head, threshold);
          }
        }
      }
    }
  }
}

// --- Memory and interruption --------------------------------------------------------------------------

void test_too_little_memory_is_an_error() {
  Random random(6);
  const RandomMachine machine(100, {60, 14, true}, 2, random);
  for (const HeadPlan head : {HeadPlan{0, 0, false}, HeadPlan{0, 60, false}, HeadPlan{8, 20, false}}) {
    for (const int threads : {1, 2}) {
      const ExpansionPlan plan{kernel_map(3, 0.5, 1.0), Basis::sets, head, {0, 0.0}, 0, 0.0, 20'000.0};
      CHECK_THROWS(expand_machine(machine, plan, threads), NotEnoughMemory);
    }
    const ConjunctionArrays arrays =
        expand_machine(machine, {kernel_map(3, 0.5, 1.0), Basis::sets, head, {0, 0.0}, 0, 0.0, 1e8});
    CHECK(static_cast<double>(bytes(borrow(arrays))) <= 1e8);
  }
}

void test_a_stopped_monitor_interrupts() {
  Random random(7);
  const RandomMachine machine(100, {60, 14, true}, 2, random);
  for (const HeadPlan head : {HeadPlan{0, 0, false}, HeadPlan{0, 60, false}}) {
    for (const int threads : {1, 2}) {
      Monitor monitor;
      monitor.stop();
      const ExpansionPlan plan{kernel_map(3, 0.5, 1.0), Basis::sets, head, {0, 0.0}, 0, 0.0, unlimited};
      CHECK_THROWS(expand(machine.view(), plan, threads, monitor), Interrupted);
    }
  }
}

}  // namespace

int main() {
  test_equals_the_kernel_sum();
  test_many_partners_and_many_features();
  test_no_support_vectors();
  test_results_do_not_depend_on_threads();
  test_conjunctions_below_the_threshold_are_pruned();
  test_too_little_memory_is_an_error();
  test_a_stopped_monitor_interrupts();
  return 0;
}
