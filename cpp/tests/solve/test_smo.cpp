// Checks solutions of sequential minimal optimisation by their optimality conditions and duality gaps, and
// compares them with known solutions.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/smo.hpp"

namespace {

using unkernel::Monitor;
using unkernel::Random;
using unkernel::solve::minimise_pairs;
using unkernel::solve::PairOutcome;
using unkernel::solve::SmoOptions;
using unkernel::solve::SmoProblem;
using Vector = std::vector<double>;

constexpr std::int64_t unlimited_steps = 2'000'000;

double uniform(Random& random) { return random.below(2001) / 1000.0 - 1.0; }

struct Problem {
  std::size_t stride = 0;
  std::vector<float> square;
  std::vector<std::int32_t> rows;
  Vector diagonal;
  std::vector<signed char> labels;
  Vector costs;

  std::size_t size() const { return labels.size(); }
  SmoProblem view() const {
    return {{square.data(), stride, rows.empty() ? nullptr : rows.data()}, diagonal, labels, costs};
  }

  double kernel(std::size_t i, std::size_t j) const {
    if (i == j) return diagonal[i];
    const auto index_in_square = [&](std::size_t k) {
      return rows.empty() ? k : static_cast<std::size_t>(rows[k]);
    };
    return static_cast<double>(square[index_in_square(i) * stride + index_in_square(j)]);
  }
  double label(std::size_t i) const { return static_cast<double>(labels[i]); }

  // Returns sum_j y_j a_j K_ij.
  Vector scores(const Vector& alpha) const {
    Vector result(size(), 0.0);
    for (std::size_t i = 0; i < size(); ++i) {
      for (std::size_t j = 0; j < size(); ++j) result[i] += label(j) * alpha[j] * kernel(i, j);
    }
    return result;
  }
};

enum class Kernel { linear, gaussian };

double kernel_of(Kernel kind, const Vector& x, const Vector& z) {
  double dot = 0.0, distance = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    dot += x[k] * z[k];
    distance += (x[k] - z[k]) * (x[k] - z[k]);
  }
  return kind == Kernel::linear ? dot : std::exp(-0.5 * distance);
}

void fill_square(Problem& problem, const std::vector<Vector>& points, Kernel kind) {
  const std::size_t n = points.size();
  problem.stride = n + 2;
  // The entries beyond the end of a row must not be read.
  problem.square.assign(n * problem.stride, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      problem.square[i * problem.stride + j] = static_cast<float>(kernel_of(kind, points[i], points[j]));
    problem.diagonal.push_back(kernel_of(kind, points[i], points[i]));
  }
}

struct Recipe {
  std::size_t size;
  std::size_t dimension;
  Kernel kind;
  double cost;
  std::uint64_t seed;
};

// Makes two overlapping clouds of points. One row in eight has cost 0, other rows have costs up to `cost`.
Problem make_two_clouds(const Recipe& recipe) {
  Random random(recipe.seed);
  Problem problem;
  std::vector<Vector> points(recipe.size, Vector(recipe.dimension));
  for (Vector& point : points) {
    const bool positive = random.below(2) == 1;
    for (double& x : point) x = 1.5 * uniform(random) + (positive ? 0.5 : -0.5);
    problem.labels.push_back(positive ? 1 : -1);
    problem.costs.push_back(random.below(8) == 0 ? 0.0 : recipe.cost * (random.below(1000) + 1) / 1000.0);
  }
  fill_square(problem, points, recipe.kind);
  return problem;
}

struct Solution {
  Vector alpha;
  Vector gradient;
  PairOutcome outcome;
};

Solution solve_from(const Problem& problem, const SmoOptions& options, Vector alpha) {
  Vector gradient = problem.scores(alpha);  // becomes Qa - e
  for (std::size_t i = 0; i < problem.size(); ++i) gradient[i] = problem.label(i) * gradient[i] - 1.0;
  const Monitor monitor;
  const PairOutcome outcome = minimise_pairs(problem.view(), options, alpha, gradient, monitor);
  return {alpha, gradient, outcome};
}

Solution solve(const Problem& problem, double tolerance, bool bias = true) {
  return solve_from(problem, {tolerance, unlimited_steps, bias}, Vector(problem.size(), 0.0));
}

// Returns the magnitude of the numbers that cancel, to which rounding errors are relative.
double scale_of(const Problem& problem, const Vector& alpha) {
  double sum = 1.0;
  for (std::size_t i = 0; i < alpha.size(); ++i) sum += alpha[i] * std::max(problem.diagonal[i], 1.0);
  return sum;
}

void check_consistent(const Problem& problem, const Solution& s, bool bias) {
  const Vector scores = problem.scores(s.alpha);
  const double scale = scale_of(problem, s.alpha);
  double balance = 0.0, objective = 0.0;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    CHECK(s.alpha[i] >= 0.0 && s.alpha[i] <= problem.costs[i]);
    CHECK(std::abs(s.gradient[i] - (problem.label(i) * scores[i] - 1.0)) <= 1e-11 * scale);
    balance += problem.label(i) * s.alpha[i];
    objective += s.alpha[i] * (1.0 - 0.5 * problem.label(i) * scores[i]);
  }
  CHECK(!bias || std::abs(balance) <= 1e-12 * scale);
  CHECK(std::abs(objective - s.outcome.dual_objective) <= 1e-11 * scale * scale);
}

// Returns m(a) - M(a), or the largest projected gradient.
double violation(const Problem& problem, const Vector& alpha, bool bias) {
  const Vector scores = problem.scores(alpha);
  const double start = bias ? std::numeric_limits<double>::infinity() : 0.0;
  double highest = -start, lowest = start;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const double residual = problem.label(i) - scores[i];
    const bool can_decrease = alpha[i] > 0.0, can_increase = alpha[i] < problem.costs[i];
    if (problem.labels[i] > 0 ? can_increase : can_decrease) highest = std::max(highest, residual);
    if (problem.labels[i] > 0 ? can_decrease : can_increase) lowest = std::min(lowest, residual);
  }
  return bias ? std::max(highest - lowest, 0.0) : std::max(highest, -lowest);
}

double primal(const Problem& problem, const Solution& s) {
  const Vector scores = problem.scores(s.alpha);
  double sum = 0.0;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const double margin = problem.label(i) * (scores[i] + s.outcome.bias);
    sum += 0.5 * problem.label(i) * s.alpha[i] * scores[i] + problem.costs[i] * std::max(0.0, 1.0 - margin);
  }
  return sum;
}

// The gap is at most sum_i C_i times a violation, which also checks the bias.
void check_optimal(const Problem& problem, const Solution& s, double tolerance, bool bias) {
  check_consistent(problem, s, bias);
  const double rounding = 1e-11 * scale_of(problem, s.alpha);
  CHECK(s.outcome.converged);
  CHECK(std::abs(violation(problem, s.alpha, bias) - s.outcome.violation) <= rounding);
  CHECK(s.outcome.violation <= tolerance * (1.0 + 1e-6));
  const double costs = std::accumulate(problem.costs.begin(), problem.costs.end(), 0.0);
  const double gap = primal(problem, s) - s.outcome.dual_objective;
  CHECK(gap >= -rounding * scale_of(problem, s.alpha) &&
        gap <= (tolerance + rounding) * costs + rounding * scale_of(problem, s.alpha));
}

// Covers problems of a few rows and problems larger than a block and a period of shrinking, with kernels of
// full rank and of low rank.
void test_reaches_the_tolerance() {
  std::uint64_t seed = 0;
  for (const std::size_t size : {1U, 2U, 3U, 10U, 64U, 65U, 200U}) {
    for (const Kernel kind : {Kernel::linear, Kernel::gaussian}) {
      for (const double cost : {1e-2, 1.0, 100.0}) {
        const Problem problem = make_two_clouds({size, 2 + seed % 3, kind, cost, seed});
        ++seed;
        for (const bool bias : {true, false}) {
          const double tolerance = cost > 10.0 ? 1e-4 : 1e-7;
          check_optimal(problem, solve(problem, tolerance, bias), tolerance, bias);
        }
      }
    }
  }
}

void test_shrinking_reaches_the_tolerance() {
  for (const double cost : {0.1, 10.0}) {
    const Problem problem = make_two_clouds({900, 3, Kernel::gaussian, cost, 5});
    for (const bool bias : {true, false}) check_optimal(problem, solve(problem, 1e-5, bias), 1e-5, bias);
  }
}

void test_known_solutions() {
  Problem two_points{2,           {1.0F, -1.0F, -1.0F, 1.0F}, {}, {1.0, 1.0}, {1, -1},
                     {10.0, 10.0}};  // x = 1 and x = -1
  const Solution unbounded = solve(two_points, 1e-12);
  CHECK(close(unbounded.alpha[0], 0.5, 1e-12) && close(unbounded.alpha[1], 0.5, 1e-12) &&
        close(unbounded.outcome.bias, 0.0, 1e-12));
  CHECK(close(unbounded.outcome.dual_objective, 0.5, 1e-12) && unbounded.outcome.steps == 1);
  two_points.costs = {0.25, 0.125};
  const Solution bound = solve(two_points, 1e-12);
  CHECK(bound.alpha[0] == 0.125 && bound.alpha[1] == 0.125);
  const Solution unbiased = solve(two_points, 1e-12, false);
  CHECK(unbiased.alpha[0] == 0.25 && unbiased.alpha[1] == 0.125 && unbiased.outcome.bias == 0.0);
  two_points.square = {1.0F, 1.0F, 1.0F, 1.0F};  // the same point with both labels: no curvature
  const Solution same_point = solve(two_points, 1e-12);
  CHECK(same_point.alpha[0] == 0.125 && same_point.alpha[1] == 0.125);
}

// Costs are so small that every variable is exactly at its bound. The bias is in the middle of the optimal
// range.
void test_all_variables_at_their_bounds() {
  Problem problem = make_two_clouds({100, 3, Kernel::gaussian, 1.0, 7});
  for (std::size_t i = 0; i < problem.size(); ++i) {
    problem.labels[i] = i % 2 == 0 ? 1 : -1;
    problem.costs[i] = 0.7e-3;
  }
  const Solution s = solve(problem, 1e-9);
  check_optimal(problem, s, 1e-9, true);
  for (const double a : s.alpha) CHECK(a == 0.7e-3);
  const Vector scores = problem.scores(s.alpha);
  double highest = -2.0, lowest = 2.0;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const double residual = problem.label(i) - scores[i];
    if (problem.labels[i] > 0) lowest = std::min(lowest, residual);
    if (problem.labels[i] < 0) highest = std::max(highest, residual);
  }
  CHECK(close(s.outcome.bias, 0.5 * (highest + lowest), 1e-12));
}

void test_a_problem_with_one_class() {
  for (const int label : {-1, 1}) {
    Problem problem = make_two_clouds({50, 3, Kernel::gaussian, 1.0, 8});
    for (std::size_t i = 0; i < problem.size(); ++i) {
      if (problem.labels[i] != label) problem.costs[i] = 0.0;
    }
    const Solution s = solve(problem, 1e-9);
    check_optimal(problem, s, 1e-9, true);
    for (const double a : s.alpha) CHECK(a == 0.0);
    CHECK(s.outcome.steps == 0 && s.outcome.bias == static_cast<double>(label));
    check_optimal(problem, solve(problem, 1e-6, false), 1e-6, false);
  }
}

void test_no_costs_and_no_rows() {
  Problem problem = make_two_clouds({70, 3, Kernel::gaussian, 1.0, 9});
  problem.costs.assign(problem.size(), 0.0);
  for (const bool bias : {true, false}) {
    const Solution s = solve(problem, 1e-9, bias);
    CHECK(s.outcome.converged && s.outcome.steps == 0 && s.outcome.dual_objective == 0.0 &&
          s.outcome.bias == 0.0);
    CHECK(solve(Problem{}, 1e-3, bias).outcome.converged);
  }
}

// Each point occurs three times, with different labels and costs.
void test_repeated_points() {
  for (const Kernel kind : {Kernel::linear, Kernel::gaussian}) {
    Random random(11);
    std::vector<Vector> points;
    Problem problem;
    for (std::size_t i = 0; i < 150; ++i) {
      points.push_back(i % 3 == 0 ? Vector{uniform(random), uniform(random)} : points.back());
      problem.labels.push_back(random.below(4) == 0 ? -1 : 1);
      problem.costs.push_back(1.0 + uniform(random));
    }
    fill_square(problem, points, kind);
    for (const bool bias : {true, false}) check_optimal(problem, solve(problem, 1e-6, bias), 1e-6, bias);
  }
}

// A linear kernel of rank two plus noise, a hundred times the rounding errors of single precision, is not
// positive semidefinite.
void test_slightly_indefinite_kernels_converge() {
  Problem problem = make_two_clouds({200, 2, Kernel::linear, 10.0, 12});
  Random random(13);
  for (std::size_t i = 0; i < problem.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const float noise = static_cast<float>(1e-5 * uniform(random));
      problem.square[i * problem.stride + j] += noise;
      problem.square[j * problem.stride + i] += noise;
    }
  }
  for (const bool bias : {true, false}) {
    const Solution s = solve(problem, 1e-3, bias);
    check_consistent(problem, s, bias);
    CHECK(s.outcome.converged && s.outcome.violation <= 1e-3 * (1.0 + 1e-6));
  }
}

void test_the_diagonal_of_the_square_is_ignored() {
  const Problem problem = make_two_clouds({150, 3, Kernel::gaussian, 5.0, 14});
  Problem other = problem;
  for (std::size_t i = 0; i < other.size(); ++i) other.square[i * other.stride + i] = 3.0F;
  for (const bool bias : {true, false}) {
    const Solution s = solve(other, 1e-7, bias);
    check_optimal(other, s, 1e-7, bias);
    CHECK(close(s.outcome.dual_objective, solve(problem, 1e-7, bias).outcome.dual_objective, 1e-7));
  }
}

Problem part_of(const Problem& all_rows, std::vector<std::int32_t> rows) {
  Problem part;
  part.stride = all_rows.stride;
  part.square = all_rows.square;
  for (const std::int32_t row : rows) {
    const std::size_t i = static_cast<std::size_t>(row);
    part.diagonal.push_back(all_rows.diagonal[i]);
    part.labels.push_back(all_rows.labels[i]);
    part.costs.push_back(all_rows.costs[i]);
  }
  part.rows = std::move(rows);
  return part;
}

void test_some_rows_of_a_shared_square() {
  const Problem all_rows = make_two_clouds({300, 3, Kernel::gaussian, 5.0, 15});
  std::vector<std::int32_t> range(120), scattered;
  std::iota(range.begin(), range.end(), 37);
  for (std::int32_t i = 0; i < 300; ++i) {
    if (i % 7 < 4) scattered.push_back(299 - i);
  }
  Random random(16);
  random.shuffle(std::span(scattered));
  for (const auto& rows : {range, scattered}) {
    const Problem part = part_of(all_rows, rows);
    for (const bool bias : {true, false}) check_optimal(part, solve(part, 1e-6, bias), 1e-6, bias);
  }
}

void test_warm_starts() {
  const Problem problem = make_two_clouds({200, 3, Kernel::gaussian, 2.0, 17});
  for (const bool bias : {true, false}) {
    const Solution best = solve(problem, 1e-6, bias);
    const Solution restarted = solve_from(problem, {1.1e-6, unlimited_steps, bias}, best.alpha);
    CHECK(restarted.outcome.steps == 0 && restarted.alpha == best.alpha);
    Problem costlier = problem;
    for (double& cost : costlier.costs) cost *= 3.0;
    const Solution warm = solve_from(costlier, {1e-6, unlimited_steps, bias}, best.alpha);
    check_optimal(costlier, warm, 1e-6, bias);
    CHECK(close(warm.outcome.dual_objective, solve(costlier, 1e-6, bias).outcome.dual_objective, 1e-6));
  }
}

// Only some variables are optimised. The others contribute to gradients and to the equality constraint, whose
// value over the chosen variables must stay as it was at the start.
void test_some_variables_of_a_larger_problem() {
  const Problem all_rows = make_two_clouds({240, 3, Kernel::gaussian, 2.0, 21});
  std::vector<std::int32_t> rows;
  for (std::int32_t i = 0; i < 240; i += 3) rows.push_back(i);
  const Problem part = part_of(all_rows, rows);
  for (const bool bias : {true, false}) {
    Solution s = solve_from(all_rows, {1e-6, 60, bias}, Vector(all_rows.size(), 0.0));
    Vector alpha, gradient;
    for (const std::int32_t row : rows) {
      alpha.push_back(s.alpha[static_cast<std::size_t>(row)]);
      gradient.push_back(s.gradient[static_cast<std::size_t>(row)]);
    }
    const Monitor monitor;
    const PairOutcome outcome =
        minimise_pairs(part.view(), {1e-6, unlimited_steps, bias}, alpha, gradient, monitor);
    CHECK(outcome.converged && outcome.steps > 0);
    for (std::size_t k = 0; k < rows.size(); ++k) s.alpha[static_cast<std::size_t>(rows[k])] = alpha[k];
    const Vector scores = all_rows.scores(s.alpha);
    double balance = 0.0;
    for (std::size_t i = 0; i < all_rows.size(); ++i) balance += all_rows.label(i) * s.alpha[i];
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::size_t i = static_cast<std::size_t>(rows[k]);
      CHECK(close(gradient[k], all_rows.label(i) * scores[i] - 1.0, 1e-10));
    }
    CHECK(!bias || std::abs(balance) <= 1e-10);
  }
}

// Results are consistent after any number of steps, and each step improves the objective.
void test_stops_after_max_steps() {
  const Problem problem = make_two_clouds({400, 3, Kernel::gaussian, 2.0, 18});
  for (const bool bias : {true, false}) {
    double last = 0.0;
    for (const std::int64_t steps : {0, 1, 2, 10, 100, 500, 1000}) {
      const Solution s = solve_from(problem, {1e-12, steps, bias}, Vector(problem.size(), 0.0));
      check_consistent(problem, s, bias);
      CHECK(!s.outcome.converged && s.outcome.steps == steps && s.outcome.violation > 1e-12);
      CHECK(s.outcome.dual_objective >= last);
      last = s.outcome.dual_objective;
    }
  }
}

void test_a_stopped_monitor_interrupts() {
  const Problem problem = make_two_clouds({50, 3, Kernel::gaussian, 2.0, 19});
  Vector alpha(problem.size(), 0.0), gradient(problem.size(), -1.0);
  Monitor monitor;
  monitor.stop();
  CHECK_THROWS(minimise_pairs(problem.view(), {1e-3, unlimited_steps, true}, alpha, gradient, monitor),
               unkernel::Interrupted);
}

void test_invalid_problems_are_refused() {
  const Problem valid = make_two_clouds({20, 3, Kernel::gaussian, 1.0, 20});
  Vector start(valid.size(), 0.0);
  const SmoOptions options{1e-3, unlimited_steps, true};
  Problem problem = valid;
  problem.labels[3] = 0;
  CHECK_THROWS(solve_from(problem, options, start), std::invalid_argument);
  problem = valid;
  problem.costs[3] = -1.0;
  CHECK_THROWS(solve_from(problem, options, start), std::invalid_argument);
  problem = valid;
  problem.diagonal.pop_back();
  CHECK_THROWS(solve_from(problem, options, start), std::invalid_argument);
  start[0] = valid.costs[0] + 1.0;
  CHECK_THROWS(solve_from(valid, options, start), std::invalid_argument);
}

}  // namespace

int main() {
  test_reaches_the_tolerance();
  test_shrinking_reaches_the_tolerance();
  test_known_solutions();
  test_all_variables_at_their_bounds();
  test_a_problem_with_one_class();
  test_no_costs_and_no_rows();
  test_repeated_points();
  test_slightly_indefinite_kernels_converge();
  test_the_diagonal_of_the_square_is_ignored();
  test_some_rows_of_a_shared_square();
  test_warm_starts();
  test_some_variables_of_a_larger_problem();
  test_stops_after_max_steps();
  test_a_stopped_monitor_interrupts();
  test_invalid_problems_are_refused();
  return 0;
}
