// After dropping and merging cuts, a bundle still has a valid lower bound, the weights that attain it, and
// valid cuts.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "unkernel/base/large_array.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/bundle.hpp"

namespace {

using unkernel::LargeVector;
using unkernel::Random;
using unkernel::solve::Bundle;
using unkernel::solve::Vectors;
using Vector = std::vector<double>;

constexpr std::size_t dimension = 7;

double uniform(Random& random) { return random.below(2001) / 1000.0 - 1.0; }

double product(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// A risk that is the maximum of some cuts, so that the validity of cuts can be checked.
struct Cuts {
  explicit Cuts(std::size_t count, std::uint64_t seed) {
    Random random(seed);
    for (std::size_t k = 0; k < count; ++k) {
      LargeVector<double> gradient(dimension);
      for (double& g : gradient) g = uniform(random);
      gradients.push_back(gradient);
      offsets.push_back(1.0 + uniform(random));
    }
  }
  void add_to(Bundle& bundle, std::size_t k, int threads = 1) const {
    bundle.add(gradients[k], offsets[k], threads);
  }
  double risk(std::span<const double> w) const {
    double largest = 0.0;
    for (std::size_t k = 0; k < offsets.size(); ++k)
      largest = std::max(largest, offsets[k] - product(gradients[k], w));
    return largest;
  }

  std::vector<LargeVector<double>> gradients;
  Vector offsets;
};

Vector weights_of(const Bundle& bundle, int threads = 1) {
  Vector w(bundle.dimension(), 99.0);
  bundle.weights(w, threads);
  return w;
}

// Returns sum_k a_k offset_k - 1/2 |sum_k a_k gradient_k|^2, from the bundle's public parts.
double dual_of(const Bundle& bundle) {
  Vector w(bundle.dimension(), 0.0);
  double value = 0.0;
  for (std::size_t k = 0; k < bundle.size(); ++k) {
    value += bundle.masses()[k] * bundle.offset(k);
    for (std::size_t j = 0; j < w.size(); ++j) w[j] += bundle.masses()[k] * bundle.gradient(k)[j];
  }
  const Vector expected = weights_of(bundle);
  for (std::size_t j = 0; j < w.size(); ++j) CHECK(close(w[j], expected[j], 1e-12));
  return value - 0.5 * product(w, w);
}

double total_mass(const Bundle& bundle) {
  return std::accumulate(bundle.masses().begin(), bundle.masses().end(), 0.0);
}

// Returns the primal of the bound: 1/2 w'w + C max(0, max_k offset_k - gradient_k'w).
double primal_of(const Bundle& bundle, double C) {
  const Vector w = weights_of(bundle);
  double largest = 0.0;
  for (std::size_t k = 0; k < bundle.size(); ++k)
    largest = std::max(largest, bundle.offset(k) - product(bundle.gradient(k), w));
  return 0.5 * product(w, w) + C * largest;
}

void test_a_bundle_without_cuts() {
  Bundle bundle(dimension, 10, Vectors::weights);
  CHECK(bundle.size() == 0 && bundle.dimension() == dimension);
  CHECK(bundle.solve(1.0, 1e-9) == 0.0);
  CHECK(weights_of(bundle) == Vector(dimension, 0.0));
}

void test_dual_and_primal_of_the_bound_are_equal() {
  const Cuts cuts(20, 1);
  for (const double C : {0.01, 1.0, 100.0}) {
    Bundle bundle(dimension, 100, Vectors::weights);
    double last = 0.0;
    for (std::size_t k = 0; k < 20; ++k) {
      cuts.add_to(bundle, k);
      const double value = bundle.solve(C, 1e-8);
      CHECK(close(value, dual_of(bundle), 1e-9));
      CHECK(primal_of(bundle, C) - value <= 1e-8 + 1e-5 * value);
      CHECK(total_mass(bundle) <= C * (1.0 + 1e-10));
      CHECK(value >= last - 1e-8);  // another cut never lowers the bound
      last = value;
    }
  }
}

// Merging cuts must change neither the bound of the current solution nor its weights.
void test_merging_keeps_the_bound_and_the_weights() {
  const Cuts cuts(60, 2);
  for (const std::size_t max_cuts : {4U, 5U, 9U}) {
    Bundle bundle(dimension, max_cuts, Vectors::weights);
    for (std::size_t k = 0; k < 60; ++k) {
      const Vector old_weights = weights_of(bundle);
      const double value = bundle.size() > 0 ? dual_of(bundle) : 0.0;
      cuts.add_to(bundle, k);
      CHECK(bundle.size() <= max_cuts);
      CHECK(close(dual_of(bundle), value, 1e-10) && bundle.masses().back() == 0.0);
      const Vector new_weights = weights_of(bundle);
      for (std::size_t j = 0; j < dimension; ++j) CHECK(close(old_weights[j], new_weights[j], 1e-10));
      const double solved = bundle.solve(3.0, 1e-7);
      CHECK(close(solved, dual_of(bundle), 1e-9));  // the Gram matrix equals the products of the cuts
      CHECK(dual_of(bundle) >= value - 1e-7);
    }
  }
}

void test_merged_cuts_are_lower_bounds_of_the_risk() {
  const Cuts cuts(60, 3);
  Random random(4);
  Bundle bundle(dimension, 4, Vectors::weights);
  for (std::size_t k = 0; k < 60; ++k) {
    cuts.add_to(bundle, k);
    (void)bundle.solve(2.0, 1e-7);
    for (int i = 0; i < 10; ++i) {
      Vector w(dimension);
      for (double& weight : w) weight = 5.0 * uniform(random);
      for (std::size_t c = 0; c < bundle.size(); ++c)
        CHECK(bundle.offset(c) - product(bundle.gradient(c), w) <= cuts.risk(w) + 1e-9);
    }
  }
}

// A capacity that is too small is raised to four.
void test_the_smallest_capacity_is_four() {
  const Cuts cuts(10, 5);
  Bundle bundle(dimension, 0, Vectors::weights);
  for (std::size_t k = 0; k < 10; ++k) {
    cuts.add_to(bundle, k);
    CHECK(bundle.size() == std::min<std::size_t>(k + 1, 4) || k >= 4);
    CHECK(bundle.size() <= 4);
  }
}

// A cut far below the other cuts never has mass. After several rounds without mass, it is dropped before
// other cuts.
void test_idle_cuts_are_dropped_first() {
  Cuts cuts(6, 6);
  cuts.offsets[1] = cuts.offsets[3] = -100.0;
  const auto solve_repeatedly = [&](int count) {
    Bundle bundle(dimension, 5, Vectors::weights);
    for (std::size_t k = 0; k < 5; ++k) cuts.add_to(bundle, k);
    for (int i = 0; i < count; ++i) (void)bundle.solve(1.0, 1e-9);
    cuts.add_to(bundle, 5);
    return bundle;
  };
  const auto holds = [](const Bundle& bundle, double offset) {
    for (std::size_t k = 0; k < bundle.size(); ++k) {
      if (bundle.offset(k) == offset) return true;
    }
    return false;
  };
  const Bundle after_many_rounds = solve_repeatedly(40);
  CHECK(!holds(after_many_rounds, -100.0) && after_many_rounds.masses().back() == 0.0 &&
        after_many_rounds.offset(after_many_rounds.size() - 1) == cuts.offsets[5]);
  for (std::size_t k = 0; k + 1 < after_many_rounds.size(); ++k) CHECK(after_many_rounds.masses()[k] > 0.0);
  Bundle resolved = after_many_rounds;
  const double solved = resolved.solve(1.0, 1e-9);
  CHECK(close(solved, dual_of(resolved), 1e-10));
}

void test_solving_again_with_another_C() {
  const Cuts cuts(15, 7);
  Bundle bundle(dimension, 100, Vectors::weights);
  for (std::size_t k = 0; k < 15; ++k) cuts.add_to(bundle, k);
  for (const double C : {10.0, 0.1, 1e-6, 5.0}) {
    Bundle fresh(dimension, 100, Vectors::weights);
    for (std::size_t k = 0; k < 15; ++k) cuts.add_to(fresh, k);
    CHECK(close(bundle.solve(C, 1e-9), fresh.solve(C, 1e-9), 1e-7));
    CHECK(total_mass(bundle) <= C * (1.0 + 1e-10));
  }
}

// Coefficients b with scores K b, for a kernel matrix K = X X': the same dual as for the weights X'b.
void test_coefficients_with_scores_give_the_same_dual() {
  constexpr std::size_t rows = 4, columns = 2;
  const double X[rows][columns] = {{1.0, 2.0}, {-1.0, 0.5}, {0.0, 3.0}, {2.0, -1.0}};
  Bundle of_weights(columns, 10, Vectors::weights);
  Bundle of_rows(2 * rows, 10, Vectors::coefficients_and_scores);
  for (std::size_t k = 0; k < 5; ++k) {
    unkernel::LargeVector<double> weights(columns, 0.0), paired(2 * rows, 0.0);
    for (std::size_t i = 0; i < rows; ++i) {
      paired[i] = static_cast<double>((3 * i + 5 * k) % 7) - 3.0;
      for (std::size_t j = 0; j < columns; ++j) weights[j] += paired[i] * X[i][j];
    }
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) paired[rows + i] += X[i][j] * weights[j];
    CHECK(close(of_weights.product(weights, weights), of_rows.product(paired, paired), 1e-12));
    const double offset = 1.0 + static_cast<double>(k);
    of_weights.add(std::move(weights), offset, 1);
    of_rows.add(std::move(paired), offset, 1);
    CHECK(close(of_weights.solve(0.5, 1e-9), of_rows.solve(0.5, 1e-9), 1e-7));
  }
}

void test_a_restored_bundle_has_the_same_solution() {
  const Cuts cuts(12, 8);
  Bundle bundle(dimension, 100, Vectors::weights);
  for (std::size_t k = 0; k < 12; ++k) cuts.add_to(bundle, k);
  const double value = bundle.solve(2.0, 1e-9);
  Bundle copy(dimension, 100, Vectors::weights);
  for (std::size_t k = 0; k < bundle.size(); ++k) {
    const auto gradient = bundle.gradient(k);
    copy.add({gradient.begin(), gradient.end()}, bundle.offset(k), 1);
  }
  copy.set_masses(bundle.masses());
  CHECK(weights_of(copy) == weights_of(bundle));
  CHECK(close(copy.solve(2.0, 1e-9), value, 1e-12));
}

void test_results_do_not_depend_on_threads() {
  constexpr std::size_t large_dimension = 300'000;
  const auto solve_random_bundle = [](int threads) {
    Random random(9);
    Bundle bundle(large_dimension, 100, Vectors::weights);
    for (int k = 0; k < 6; ++k) {
      LargeVector<double> gradient(large_dimension);
      for (double& g : gradient) g = uniform(random) / 300.0;
      bundle.add(std::move(gradient), 1.0, threads);
    }
    const double value = bundle.solve(1.0, 1e-12);
    Vector w = weights_of(bundle, threads);
    w.push_back(value);
    return w;
  };
  const Vector on_one_thread = solve_random_bundle(1);
  CHECK(solve_random_bundle(2) == on_one_thread && solve_random_bundle(3) == on_one_thread);
}

void test_wrong_sizes_are_refused() {
  Bundle bundle(dimension, 10, Vectors::weights);
  CHECK_THROWS(bundle.add(LargeVector<double>(dimension + 1), 0.0, 1), std::invalid_argument);
  CHECK(bundle.size() == 0);
  CHECK_THROWS(bundle.set_masses(Vector{1.0}), std::invalid_argument);
}

}  // namespace

int main() {
  test_a_bundle_without_cuts();
  test_dual_and_primal_of_the_bound_are_equal();
  test_merging_keeps_the_bound_and_the_weights();
  test_merged_cuts_are_lower_bounds_of_the_risk();
  test_the_smallest_capacity_is_four();
  test_idle_cuts_are_dropped_first();
  test_solving_again_with_another_C();
  test_coefficients_with_scores_give_the_same_dual();
  test_a_restored_bundle_has_the_same_solution();
  test_results_do_not_depend_on_threads();
  test_wrong_sizes_are_refused();
  return 0;
}
