// Checks solutions of small quadratic programs by their optimality conditions, and compares them with known
// solutions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/simplex_qp.hpp"

namespace {

using unkernel::Random;
using unkernel::solve::maximise_on_simplex;
using unkernel::solve::SimplexProblem;
using Vector = std::vector<double>;

double uniform(Random& random) { return random.below(2001) / 1000.0 - 1.0; }

// Random cuts: G = gradients gradients', inside a wider array.
struct Cuts {
  Cuts(std::size_t count, std::size_t dimension, std::uint64_t seed)
      : size(count), stride(count + 3), gram(stride * stride, 99.0) {
    Random random(seed);
    std::vector<Vector> gradients(count, Vector(dimension));
    for (Vector& gradient : gradients) {
      for (double& g : gradient) g = uniform(random);
      linear.push_back(0.2 + uniform(random));
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        double& g = gram[i * stride + j];
        g = 0.0;
        for (std::size_t k = 0; k < dimension; ++k) g += gradients[i][k] * gradients[j][k];
      }
    }
  }

  SimplexProblem problem(double C) const { return {size, gram.data(), stride, linear.data(), C}; }

  // Returns b - Ga.
  Vector slopes(const Vector& a) const {
    Vector result = linear;
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) result[i] -= gram[i * stride + j] * a[j];
    }
    return result;
  }

  double value(const Vector& a) const {
    const Vector slope = slopes(a);
    double sum = 0.0;
    for (std::size_t k = 0; k < size; ++k) sum += 0.5 * a[k] * (linear[k] + slope[k]);
    return sum;
  }

  // Returns the gain of moving all mass to the cut with the largest slope, an upper bound of the distance to
  // the optimum.
  double gap_bound(const Vector& a, double C) const {
    const Vector slope = slopes(a);
    double bound = 0.0;
    for (const double s : slope) bound = std::max(bound, C * s);
    for (std::size_t k = 0; k < size; ++k) bound -= a[k] * slope[k];
    return bound;
  }

  std::size_t size;
  std::size_t stride;
  Vector gram;
  Vector linear;
};

void check_feasible(const Vector& a, double C) {
  double sum = 0.0;
  for (const double mass : a) {
    CHECK(mass >= 0.0);
    sum += mass;
  }
  CHECK(sum <= C * (1.0 + 1e-10));
}

// If there are more cuts than dimensions, G is singular. The constraint on C binds for small C only.
void test_reaches_the_requested_accuracy() {
  std::uint64_t seed = 0;
  for (const std::size_t count : {1U, 2U, 5U, 20U}) {
    for (const std::size_t dimension : {1U, 4U, 30U}) {
      for (const double C : {1e-3, 0.5, 10.0, 1e4}) {
        const Cuts cuts(count, dimension, ++seed);
        for (const double accuracy : {1e-2, 1e-6}) {
          Vector a(count, 0.0);
          const double value = maximise_on_simplex(cuts.problem(C), a, accuracy);
          check_feasible(a, C);
          CHECK(close(value, cuts.value(a), 1e-9));
          CHECK(cuts.gap_bound(a, C) <= accuracy + 1e-9 * C);
        }
      }
    }
  }
}

void test_known_solutions() {
  const auto solve = [](Vector gram, Vector linear, double C) {
    Vector a(linear.size(), 0.0);
    (void)maximise_on_simplex({linear.size(), gram.data(), linear.size(), linear.data(), C}, a, 1e-14);
    return a;
  };
  CHECK(close(solve({2.0}, {1.0}, 10.0)[0], 0.5, 1e-12));   // b / G
  CHECK(close(solve({2.0}, {1.0}, 0.25)[0], 0.25, 1e-12));  // all mass
  CHECK(solve({2.0}, {-1.0}, 10.0)[0] == 0.0);              // no mass, because the slope is negative
  CHECK(close(solve({0.0}, {1.0}, 3.0)[0], 3.0, 1e-12));    // a cut without a gradient: no curvature
  CHECK(solve({0.0}, {-1.0}, 3.0)[0] == 0.0);
  const Vector shared_mass = solve({1.0, 0.0, 0.0, 1.0}, {1.0, 1.0}, 1.0);
  CHECK(close(shared_mass[0], 0.5, 1e-9) && close(shared_mass[1], 0.5, 1e-9));
  // Of two cuts with the same gradient, only the cut with the larger offset has mass.
  const Vector equal_gradients = solve({1.0, 1.0, 1.0, 1.0}, {1.0, 2.0}, 1.0);
  CHECK(close(equal_gradients[0], 0.0, 1e-9) && close(equal_gradients[1], 1.0, 1e-9));
}

// The value is attained at any accuracy, and is never smaller at a higher accuracy.
void test_the_value_is_a_lower_bound_at_any_accuracy() {
  const Cuts cuts(12, 6, 77);
  Vector best(12, 0.0);
  const double optimum = maximise_on_simplex(cuts.problem(2.0), best, 1e-12);
  double last = 0.0;
  for (double accuracy = 4.0; accuracy > 1e-8; accuracy /= 2.0) {
    Vector a(12, 0.0);
    const double value = maximise_on_simplex(cuts.problem(2.0), a, accuracy);
    check_feasible(a, 2.0);
    CHECK(close(value, cuts.value(a), 1e-12) && value >= last - 1e-12 && value <= optimum + 1e-10);
    CHECK(value >= optimum - accuracy);
    last = value;
  }
}

void test_a_warm_start_reaches_the_optimum() {
  const Cuts cuts(10, 5, 78);
  Vector best(10, 0.0);
  const double optimum = maximise_on_simplex(cuts.problem(1.0), best, 1e-12);
  Vector a = best;
  CHECK(close(maximise_on_simplex(cuts.problem(1.0), a, 1e-9), optimum, 1e-12));
  for (std::size_t k = 0; k < a.size(); ++k) CHECK(close(a[k], best[k], 1e-12));
  Vector uniform_start(10, 0.1);
  CHECK(close(maximise_on_simplex(cuts.problem(1.0), uniform_start, 1e-9), optimum, 1e-8));
}

// Masses are sums of steps: rounding can push them above C, so they must be reduced.
void test_excess_mass_is_removed() {
  const Cuts cuts(3, 5, 79);
  Vector a{0.5, 0.5 + 1e-9, 1e-10};
  const double value = maximise_on_simplex(cuts.problem(1.0), a, 1e-9);
  check_feasible(a, 1.0);
  CHECK(close(value, cuts.value(a), 1e-12));
}

void test_no_cuts() {
  Vector none;
  CHECK(maximise_on_simplex({0, nullptr, 0, nullptr, 1.0}, none, 0.0) == 0.0);
}

}  // namespace

int main() {
  test_reaches_the_requested_accuracy();
  test_known_solutions();
  test_the_value_is_a_lower_bound_at_any_accuracy();
  test_a_warm_start_reaches_the_optimum();
  test_excess_mass_is_removed();
  test_no_cuts();
  return 0;
}
