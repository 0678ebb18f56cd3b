// Dual coordinate descent for the logistic loss against slow references: bisection for one row, and
// objectives computed from scratch for all rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "solve/dense_problem.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/logistic_descent.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::solve;
using namespace dense_problem;

double minus_derivative(const Costs& c, double t) {
  return c.positive / (1.0 + std::exp(t)) - c.negative / (1.0 + std::exp(-t));
}

// Returns the best u by two hundred bisections of h(t) = 0 (logistic_sweep.hpp).
double best_by_bisection(const LogisticCoordinate& c, double score) {
  double low = score - c.curvature * (c.u + c.costs.negative) - 1.0;
  double high = score + c.curvature * (c.costs.positive - c.u) + 1.0;
  for (int round = 0; round < 200; ++round) {
    const double t = 0.5 * (low + high);
    (t - score + c.curvature * (c.u - minus_derivative(c.costs, t)) > 0.0 ? high : low) = t;
  }
  return minus_derivative(c.costs, low);
}

double uniform(Random& random, double low, double high) {
  return low + (high - low) * (random.below(1'000'001) / 1e6);
}

void test_steps_equal_those_of_bisection() {
  Random random(5);
  for (int round = 0; round < 20'000; ++round) {
    LogisticCoordinate c;
    const double size = std::exp(uniform(random, -12.0, 12.0));
    c.costs = {random.below(3) == 0 ? 0.0 : size, size * uniform(random, 0.0, 1.0)};
    c.curvature = random.below(10) == 0 ? 0.0 : std::exp(uniform(random, -12.0, 12.0));
    c.u = uniform(random, -c.costs.negative, c.costs.positive);
    const double score = uniform(random, -30.0, 30.0) * std::exp(uniform(random, -3.0, 3.0));
    const double u = best_logistic_u(c, score, LogisticPoint(c.costs, score));
    const double total = c.costs.positive + c.costs.negative;
    CHECK(u >= -c.costs.negative && u <= c.costs.positive);
    CHECK(std::abs(u - best_by_bisection(c, score)) <= 1e-4 * total);
  }
}

double loss_of_row(const Costs& c, double f) {
  const double bend = std::log1p(std::exp(-std::abs(f)));
  return c.positive * (std::max(-f, 0.0) + bend) + c.negative * (std::max(f, 0.0) + bend);
}

double times_log(double share) { return share > 0.0 ? share * std::log(share) : 0.0; }

struct Problem {
  DenseRows rows;
  std::vector<Costs> costs;
};

Problem make_problem(std::int64_t count, std::size_t width, double C, std::uint64_t seed) {
  Problem problem{DenseRows(count, width, 1.0, seed), {}};
  for (const Coordinate& c : costs_for(problem.rows, C, seed)) problem.costs.push_back(c.costs);
  return problem;
}

struct Solved {
  Outcome outcome;
  std::vector<double> duals, weights;
};

Solved solve(const Problem& problem, const std::vector<double>& start, const LogisticOptions& options) {
  Monitor monitor;
  const PassesOver<DenseRows> passes(problem.rows);
  Solved solved;
  solved.weights.assign(problem.rows.width(), 0.0);
  LogisticDescent descent(passes, problem.costs, start, solved.weights, options, monitor);
  solved.outcome = descent.run(Progress{});
  solved.duals = descent.duals();
  return solved;
}

// Recomputes feasibility, w and both objectives from the dual variables.
void check_certificate(const Problem& problem, const Solved& solved) {
  std::vector<double> w(problem.rows.width(), 0.0);
  double dual = 0.0;
  for (std::size_t i = 0; i < problem.costs.size(); ++i) {
    const Costs& c = problem.costs[i];
    const double u = solved.duals[i];
    CHECK(u >= -c.negative && u <= c.positive);
    problem.rows.axpy(static_cast<std::int64_t>(i), u, w.data());
    const double total = c.positive + c.negative;
    dual -= total * (times_log((c.positive - u) / total) + times_log((c.negative + u) / total));
  }
  double primal = 0.0;
  for (std::size_t k = 0; k < w.size(); ++k) {
    CHECK(close(w[k], solved.weights[k]));
    primal += 0.5 * w[k] * w[k];
    dual -= 0.5 * w[k] * w[k];
  }
  for (std::size_t i = 0; i < problem.costs.size(); ++i)
    primal += loss_of_row(problem.costs[i], problem.rows.dot(static_cast<std::int64_t>(i), w.data()));
  CHECK(close(solved.outcome.objective, primal));
  CHECK(std::abs(solved.outcome.dual_objective - std::max(dual, 0.0)) <= 1e-10 * primal);
}

void test_the_certified_gap_is_that_of_the_definitions() {
  for (const double C : {1e-4, 0.1, 1.0, 30.0, 1e4}) {
    const Problem problem = make_problem(300, 40, C, 3);
    for (const std::int64_t epochs : {0, 1, 4, 10'000}) {
      const Solved solved = solve(problem, std::vector<double>(300, 0.0), {1e-5, epochs, 7, 1});
      check_certificate(problem, solved);
      CHECK(solved.outcome.epochs <= epochs);
      CHECK(solved.outcome.converged == (solved.outcome.relative_gap() <= 1e-5));
    }
  }
}

void test_moderate_costs_are_solved() {
  for (const double C : {1e-4, 0.01, 0.1, 1.0}) {
    const Problem problem = make_problem(300, 40, C, 3);
    const Solved solved = solve(problem, std::vector<double>(300, 0.0), {1e-6, 1000, 7, 1});
    CHECK(solved.outcome.converged);
    // At the solution u is minus the derivative of the loss.
    for (std::size_t i = 0; i < problem.costs.size(); ++i) {
      const double f = problem.rows.dot(static_cast<std::int64_t>(i), solved.weights.data());
      const Costs& c = problem.costs[i];
      CHECK(std::abs(solved.duals[i] - minus_derivative(c, f)) <= 0.05 * (c.positive + c.negative));
    }
  }
}

void test_a_start_at_the_solution_needs_no_epoch() {
  const Problem problem = make_problem(300, 40, 0.5, 3);
  const Solved first = solve(problem, std::vector<double>(300, 0.0), {1e-6, 1000, 7, 1});
  const Solved again = solve(problem, first.duals, {1e-6, 1000, 7, 1});
  CHECK(first.outcome.epochs > 0 && again.outcome.epochs == 0 && again.outcome.converged);
  CHECK(again.duals == first.duals);
}

void test_results_do_not_depend_on_the_number_of_threads() {
  const Problem problem = make_problem(20'000, 30, 0.01, 9);
  const std::vector<double> start(20'000, 0.0);
  const Solved one = solve(problem, start, {1e-4, 100, 7, 1});
  const Solved three = solve(problem, start, {1e-4, 100, 7, 3});
  CHECK(one.weights == three.weights && one.duals == three.duals);
  CHECK(one.outcome.objective == three.outcome.objective);
  CHECK(one.outcome.dual_objective == three.outcome.dual_objective);
}

void test_rows_of_zero_cost_are_ignored() {
  Problem problem = make_problem(50, 5, 1.0, 3);
  std::fill(problem.costs.begin(), problem.costs.end(), Costs{});
  const Solved solved = solve(problem, std::vector<double>(50, 1.0), {1e-3, 10, 7, 1});
  CHECK(solved.outcome.converged && solved.outcome.objective == 0.0);
  CHECK(std::all_of(solved.duals.begin(), solved.duals.end(), [](double u) { return u == 0.0; }));
}

void test_costs_that_overflow_are_refused() {
  const Problem problem = make_problem(50, 5, 1.5e308, 3);
  bool refused = false;
  try {
    solve(problem, std::vector<double>(50, 0.0), {1e-3, 10, 7, 1});
  } catch (const std::invalid_argument&) { refused = true; }
  CHECK(refused);
}

}  // namespace

int main() {
  test_steps_equal_those_of_bisection();
  test_the_certified_gap_is_that_of_the_definitions();
  test_moderate_costs_are_solved();
  test_a_start_at_the_solution_needs_no_epoch();
  test_results_do_not_depend_on_the_number_of_threads();
  test_rows_of_zero_cost_are_ignored();
  test_costs_that_overflow_are_refused();
  return 0;
}
