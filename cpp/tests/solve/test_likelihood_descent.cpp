// Dual coordinate descent for logistic and Poisson losses against slow references: bisection for one row, and
// objectives computed from scratch for all rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "solve/dense_problem.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/likelihood_descent.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::solve;
using namespace dense_problem;

constexpr Likelihood likelihoods[] = {Likelihood::logistic, Likelihood::poisson};

double minus_derivative(Likelihood likelihood, const Costs& c, double t) {
  if (likelihood == Likelihood::poisson) return c.positive - c.negative * std::exp(t);
  return c.positive / (1.0 + std::exp(t)) - c.negative / (1.0 + std::exp(-t));
}

double lowest_u(Likelihood likelihood, const Costs& c) {
  return likelihood == Likelihood::logistic ? -c.negative : -std::numeric_limits<double>::infinity();
}

// Returns the best u by two hundred bisections of h(t) = 0 (likelihood_step.hpp).
double best_by_bisection(Likelihood likelihood, const LikelihoodCoordinate& c, double score) {
  const double u_of_score = minus_derivative(likelihood, c.costs, score);
  double low = score + c.curvature * std::min(u_of_score - c.u, 0.0) - 1.0;
  double high = score + c.curvature * (c.costs.positive - c.u) + 1.0;
  if (likelihood == Likelihood::poisson) {  // exp(low) must not be negligible: low is the score of u, or less
    const double rest = std::max(c.costs.positive - c.u, 1e-300);
    low = std::max(low, std::min(std::log(rest / c.costs.negative), score) - 1.0);
  }
  for (int round = 0; round < 200; ++round) {
    const double t = 0.5 * (low + high);
    const double h = t - score + c.curvature * (c.u - minus_derivative(likelihood, c.costs, t));
    (h > 0.0 ? high : low) = t;
  }
  return minus_derivative(likelihood, c.costs, low);
}

double uniform(Random& random, double low, double high) {
  return low + (high - low) * (random.below(1'000'001) / 1e6);
}

void test_steps_equal_those_of_bisection() {
  Random random(5);
  for (int round = 0; round < 40'000; ++round) {
    const Likelihood likelihood = likelihoods[round % 2];
    LikelihoodCoordinate c;
    const double size = std::exp(uniform(random, -12.0, 12.0));
    c.costs = {random.below(3) == 0 ? 0.0 : size, size * uniform(random, 1e-6, 1.0)};
    c.curvature = random.below(10) == 0 ? 0.0 : std::exp(uniform(random, -12.0, 12.0));
    c.u = uniform(random, -c.costs.negative, c.costs.positive);
    const double score = uniform(random, -30.0, 30.0) * std::exp(uniform(random, -3.0, 3.0));
    const LikelihoodStep step = best_step(likelihood, c, score);
    const double expected = best_by_bisection(likelihood, c, score);
    const double total = c.costs.positive + c.costs.negative;
    CHECK(step.u >= lowest_u(likelihood, c.costs) && step.u <= c.costs.positive);
    CHECK(std::abs(step.u - expected) <= 1e-4 * std::max(total, std::abs(expected)));
    CHECK(step.gap >= 0.0 && std::isfinite(step.gap));
  }
}

// Close to the best u, the estimate of a gap is exact.
void test_estimates_of_small_gaps_are_exact() {
  Random random(6);
  for (int round = 0; round < 20'000; ++round) {
    const Likelihood likelihood = likelihoods[round % 2];
    LikelihoodCoordinate c;
    c.costs = {uniform(random, 0.1, 3.0), uniform(random, 0.1, 3.0)};
    c.curvature = 1.0;
    const double score = uniform(random, -3.0, 3.0);
    c.u = minus_derivative(likelihood, c.costs, score + uniform(random, -1e-3, 1e-3));
    const double gap = loss_of(likelihood, c.costs, score) - dual_of(likelihood, c.costs, c.u) + c.u * score;
    CHECK(std::abs(best_step(likelihood, c, score).gap - gap) <= 1e-14 + 1e-2 * gap);
  }
}

void test_the_omega_function_solves_its_equation() {
  for (double x = -700.0; x < 1e4; x += x < 50.0 ? 0.01 : 1.7) {
    const double z = wright_omega(x);
    CHECK(z > 0.0 && std::abs(z + std::log(z) - x) <= 1e-14 * std::max(std::abs(x), 1.0));
  }
  CHECK(std::abs(wright_omega(1e300) - 1e300) <= 1e290);
}

double loss_of_row(Likelihood likelihood, const Costs& c, double f) {
  if (likelihood == Likelihood::logistic) {
    const double bend = std::log1p(std::exp(-std::abs(f)));
    return c.positive * (std::max(-f, 0.0) + bend) + c.negative * (std::max(f, 0.0) + bend);
  }
  const double best = c.positive > 0.0 ? c.positive * (1.0 - std::log(c.positive / c.negative)) : 0.0;
  return c.negative * std::exp(f) - c.positive * f - best;
}

double times_log(double share) { return share > 0.0 ? share * std::log(share) : 0.0; }

double dual_of_row(Likelihood likelihood, const Costs& c, double u) {
  if (likelihood == Likelihood::logistic) {
    const double total = c.positive + c.negative;
    return -total * (times_log((c.positive - u) / total) + times_log((c.negative + u) / total));
  }
  const double best = c.positive > 0.0 ? c.positive * (1.0 - std::log(c.positive / c.negative)) : 0.0;
  return (c.positive - u) - c.negative * times_log((c.positive - u) / c.negative) - best;
}

void test_losses_are_those_of_the_formulas() {
  Random random(7);
  for (int round = 0; round < 20'000; ++round) {
    const Likelihood likelihood = likelihoods[round % 2];
    const double size = std::exp(uniform(random, -12.0, 12.0));
    const Costs c{round % 3 == 0 ? 0.0 : size * uniform(random, 0.0, 9.0), size};
    const double f = uniform(random, -9.0, 9.0);
    const double u = c.positive - c.negative * uniform(random, 0.0, 1.0);
    const double unit = 1e-13 * (c.positive + c.negative) * std::exp(std::abs(f));
    const double u_of_logistic = std::max(u, -c.negative);
    const double feasible = likelihood == Likelihood::logistic ? u_of_logistic : u;
    CHECK(std::abs(loss_of(likelihood, c, f) - loss_of_row(likelihood, c, f)) <= unit);
    CHECK(std::abs(dual_of(likelihood, c, feasible) - dual_of_row(likelihood, c, feasible)) <= unit);
    CHECK(loss_of(likelihood, c, f) >= 0.0);
    CHECK(loss_of(likelihood, c, f) - dual_of(likelihood, c, feasible) + feasible * f >= -unit);
  }
  // Differences between large counts keep their digits.
  const Costs large{1e12, 1.0};
  const double best_score = std::log(1e12);
  CHECK(close(loss_of(Likelihood::poisson, large, best_score + 1e-3), 1e12 * (std::expm1(1e-3) - 1e-3)));
  CHECK(loss_of(Likelihood::poisson, large, 1e3) == std::numeric_limits<double>::infinity());
}

struct Problem {
  Likelihood likelihood;
  DenseRows rows;
  std::vector<Costs> costs;
};

Problem make_problem(Likelihood likelihood, std::int64_t count, std::size_t width, double C,
                     std::uint64_t seed) {
  Problem problem{likelihood, DenseRows(count, width, 1.0, seed), {}};
  for (const Coordinate& c : costs_for(problem.rows, C, seed)) problem.costs.push_back(c.costs);
  if (likelihood == Likelihood::poisson) {
    for (Costs& c : problem.costs) c.negative += 0.5 * C;  // a row without this cost would have no best score
  }
  return problem;
}

struct Solved {
  Outcome outcome;
  std::vector<double> duals, weights;
};

Solved solve(const Problem& problem, const std::vector<double>& start, const LikelihoodOptions& options) {
  Monitor monitor;
  const PassesOver<DenseRows> passes(problem.rows);
  Solved solved;
  solved.weights.assign(problem.rows.width(), 0.0);
  LikelihoodDescent descent(passes, problem.likelihood, problem.costs, start, solved.weights, options,
                            monitor);
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
    CHECK(u >= lowest_u(problem.likelihood, c) && u <= c.positive);
    problem.rows.axpy(static_cast<std::int64_t>(i), u, w.data());
    dual += dual_of_row(problem.likelihood, c, u);
  }
  double primal = 0.0;
  for (std::size_t k = 0; k < w.size(); ++k) {
    CHECK(close(w[k], solved.weights[k]));
    primal += 0.5 * w[k] * w[k];
    dual -= 0.5 * w[k] * w[k];
  }
  for (std::size_t i = 0; i < problem.costs.size(); ++i)
    primal += loss_of_row(problem.likelihood, problem.costs[i],
                          problem.rows.dot(static_cast<std::int64_t>(i), w.data()));
  CHECK(close(solved.outcome.objective, primal));
  CHECK(std::abs(solved.outcome.dual_objective - std::max(dual, 0.0)) <= 1e-10 * primal);
}

void test_the_certified_gap_is_that_of_the_definitions(Likelihood likelihood) {
  for (const double C : {1e-4, 0.1, 1.0, 30.0, 1e4}) {
    const Problem problem = make_problem(likelihood, 300, 40, C, 3);
    for (const std::int64_t epochs : {0, 1, 4, 10'000}) {
      const Solved solved = solve(problem, std::vector<double>(300, 0.0), {1e-5, epochs, 7, 1, 0.0});
      check_certificate(problem, solved);
      CHECK(solved.outcome.epochs <= epochs);
      CHECK(solved.outcome.converged == (solved.outcome.relative_gap() <= 1e-5));
    }
  }
}

void test_moderate_costs_are_solved(Likelihood likelihood) {
  for (const double C : {1e-4, 0.01, 0.1, 1.0}) {
    const Problem problem = make_problem(likelihood, 300, 40, C, 3);
    const Solved solved = solve(problem, std::vector<double>(300, 0.0), {1e-6, 1000, 7, 1, 0.0});
    CHECK(solved.outcome.converged);
    // At the solution u is minus the derivative of the loss.
    for (std::size_t i = 0; i < problem.costs.size(); ++i) {
      const double f = problem.rows.dot(static_cast<std::int64_t>(i), solved.weights.data());
      const Costs& c = problem.costs[i];
      CHECK(std::abs(solved.duals[i] - minus_derivative(likelihood, c, f)) <=
            0.05 * (c.positive + c.negative));
    }
  }
}

void test_a_start_at_the_solution_needs_no_epoch(Likelihood likelihood) {
  const Problem problem = make_problem(likelihood, 300, 40, 0.5, 3);
  const Solved first = solve(problem, std::vector<double>(300, 0.0), {1e-6, 1000, 7, 1, 0.0});
  const Solved again = solve(problem, first.duals, {1e-6, 1000, 7, 1, 0.0});
  CHECK(first.outcome.epochs > 0 && again.outcome.epochs == 0 && again.outcome.converged);
  CHECK(again.duals == first.duals);
}

void test_results_do_not_depend_on_the_number_of_threads(Likelihood likelihood) {
  const Problem problem = make_problem(likelihood, 20'000, 30, 0.01, 9);
  const std::vector<double> start(20'000, 0.0);
  const Solved one = solve(problem, start, {1e-4, 100, 7, 1, 0.0});
  const Solved three = solve(problem, start, {1e-4, 100, 7, 3, 0.0});
  CHECK(one.weights == three.weights && one.duals == three.duals);
  CHECK(one.outcome.objective == three.outcome.objective);
  CHECK(one.outcome.dual_objective == three.outcome.dual_objective);
}

void test_rows_of_zero_cost_are_ignored(Likelihood likelihood) {
  Problem problem = make_problem(likelihood, 50, 5, 1.0, 3);
  std::fill(problem.costs.begin(), problem.costs.end(), Costs{});
  const Solved solved = solve(problem, std::vector<double>(50, 1.0), {1e-3, 10, 7, 1, 0.0});
  CHECK(solved.outcome.converged && solved.outcome.objective == 0.0);
  CHECK(std::all_of(solved.duals.begin(), solved.duals.end(), [](double u) { return u == 0.0; }));
}

void test_costs_that_overflow_are_refused(Likelihood likelihood) {
  const Problem problem = make_problem(likelihood, 50, 5, 1.5e308, 3);
  bool refused = false;
  try {
    solve(problem, std::vector<double>(50, 0.0), {1e-3, 10, 7, 1, 0.0});
  } catch (const std::invalid_argument&) { refused = true; }
  CHECK(refused);
}

}  // namespace

int main() {
  test_steps_equal_those_of_bisection();
  test_estimates_of_small_gaps_are_exact();
  test_the_omega_function_solves_its_equation();
  test_losses_are_those_of_the_formulas();
  for (const Likelihood likelihood : likelihoods) {
    test_the_certified_gap_is_that_of_the_definitions(likelihood);
    test_moderate_costs_are_solved(likelihood);
    test_a_start_at_the_solution_needs_no_epoch(likelihood);
    test_results_do_not_depend_on_the_number_of_threads(likelihood);
    test_rows_of_zero_cost_are_ignored(likelihood);
    test_costs_that_overflow_are_refused(likelihood);
  }
  return 0;
}
