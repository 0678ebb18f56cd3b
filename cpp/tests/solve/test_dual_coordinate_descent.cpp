// The solver on small dense problems, whose objectives are recomputed here from scratch.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "solve/dense_problem.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/dual_coordinate_descent.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::solve;
using namespace dense_problem;

static_assert(TrainingRows<DenseRows> && !KernelView<DenseRows>);
static_assert(TrainingRows<GramRows> && KernelView<DenseRowsWithKernel> && !MappedView<DenseRowsWithKernel>);
static_assert(MappedView<DenseRowsWithMap>);

template <class Rows>
struct Solved {
  Outcome outcome;
  Coordinates coordinates;
  std::vector<double> weights;
};

DescentOptions options(double tolerance, std::int64_t max_epochs = 100'000, int threads = 1) {
  return {tolerance, max_epochs, 7, threads, 0.0, Finish::automatic};
}

template <class LossKind, class Rows>
Solved<Rows> run_solver(const Rows& rows, Coordinates start, std::vector<double> weights,
                        const DescentOptions& settings, Monitor& monitor) {
  const PassesOver<Rows> passes(rows);
  DualCoordinateDescent solver(passes, LossKind::name, std::move(start), weights, settings, monitor,
                               targets_for<LossKind>(rows));
  const Outcome outcome = solver.run(Progress{});
  return {outcome, solver.coordinates(), std::move(weights)};
}

template <class LossKind, class Rows>
Solved<Rows> run_solver(const Rows& rows, const Coordinates& start, const DescentOptions& settings) {
  Monitor monitor;
  Solved<Rows> solved =
      run_solver<LossKind>(rows, start, std::vector<double>(rows.width(), 0.0), settings, monitor);
  CHECK(monitor.latest().epoch == solved.outcome.epochs);
  return solved;
}

// Recomputes feasibility, w, both objectives and the gap from the dual variables, and compares them with the
// solver's results.
template <class LossKind, class Rows>
void check_certificate(const Rows& rows, const Coordinates& costs, const Solved<Rows>& solved) {
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Coordinate& c = solved.coordinates[i];
    CHECK(c.costs.positive == costs[i].costs.positive && c.costs.negative == costs[i].costs.negative);
    // Growing the box scales u and the costs separately, so their rounding errors differ.
    const double rounding = 1e-14 * (c.costs.positive + c.costs.negative);
    CHECK(c.u >= LossKind::low(c.costs) - rounding && c.u <= LossKind::high(c.costs) + rounding);
  }
  const std::vector<double> w = weights_of(rows, solved.coordinates);
  for (std::size_t k = 0; k < w.size(); ++k) CHECK(close(w[k], solved.weights[k], 1e-8));
  CHECK(close(solved.outcome.objective, primal<LossKind>(rows, solved.coordinates, w), 1e-8));
  // The reported value is lower by a bound of rounding errors, at most a hundredth of the tolerance.
  const double value = dual<LossKind>(rows, solved.coordinates);
  const double rounding = 1e-12 * std::abs(value) + 1e-15 * solved.outcome.objective;
  CHECK(solved.outcome.dual_objective <= value + rounding);
  CHECK(solved.outcome.dual_objective >= value - 1e-4 * solved.outcome.objective);
}

// A slow reference: visits the rows in turn, and finds the best dual variable of each by ternary search,
// until the gap is tiny.
template <class LossKind, class Rows>
double slow_optimum(const Rows& rows, Coordinates coordinates) {
  const std::vector<double> targets = targets_for<LossKind>(rows);
  std::vector<double> w(rows.width(), 0.0);
  for (int sweep = 0; sweep < 4000; ++sweep) {
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      Coordinate& c = coordinates[static_cast<std::size_t>(i)];
      const double f = rows.dot(i, w.data()) - (targets.empty() ? 0.0 : targets[static_cast<std::size_t>(i)]);
      const double curvature = rows.squared_norm(i);
      const auto value = [&](double u) {
        return LossKind::dual(c.costs, u) - (u - c.u) * f - 0.5 * curvature * (u - c.u) * (u - c.u);
      };
      double low = std::max(LossKind::low(c.costs), -500.0);
      double high = std::min(LossKind::high(c.costs), 500.0);
      for (int step = 0; step < 90; ++step) {
        const double left = low + (high - low) / 3.0;
        const double right = high - (high - low) / 3.0;
        if (value(left) < value(right)) {
          low = left;
        } else {
          high = right;
        }
      }
      const double u = 0.5 * (low + high);
      rows.axpy(i, u - c.u, w.data());
      c.u = u;
    }
    const double gap = primal<LossKind>(rows, coordinates, weights_of(rows, coordinates)) -
                       dual<LossKind>(rows, coordinates);
    if (gap < 1e-7) break;
  }
  return dual<LossKind>(rows, coordinates);
}

template <class LossKind>
void test_reaches_the_optimum() {
  for (const double C : {0.01, 1.0, 30.0}) {
    DenseRows rows(40, 5, 1.0, 1);
    rows.clear_row(7);  // curvature 0
    rows.clear_row(8);
    const Coordinates costs = costs_for(rows, C, 2);
    const auto solved = run_solver<LossKind>(rows, costs, options(1e-7));
    check_certificate<LossKind>(rows, costs, solved);
    CHECK(solved.outcome.converged && solved.outcome.relative_gap() <= 1e-7);
    const double optimum = slow_optimum<LossKind>(rows, costs);
    CHECK(close(solved.outcome.objective, optimum, 1e-6));
  }
}

// Long rows and high costs: the box is many steps wide, so it grows (see grow_box).
template <class LossKind>
void test_reaches_the_optimum_in_a_wide_box() {
  for (const auto& [C, tolerance] : {std::pair{1.0, 1e-4}, std::pair{100.0, 1e-2}}) {
    const DenseRows rows(300, 30, 3.0, 3);
    const Coordinates costs = costs_for(rows, C, 4);
    const auto solved = run_solver<LossKind>(rows, costs, options(tolerance));
    check_certificate<LossKind>(rows, costs, solved);
    CHECK(solved.outcome.converged && solved.outcome.relative_gap() <= tolerance);
  }
}

// There are enough rows to shuffle blocks, to shrink rows and to put rows to sleep.
template <class LossKind>
void test_many_rows_give_the_same_result_on_several_threads() {
  const DenseRows rows(20'000, 6, 1.0, 5);
  const Coordinates costs = costs_for(rows, 0.1, 6);
  const auto on_one_thread = run_solver<LossKind>(rows, costs, options(1e-3));
  check_certificate<LossKind>(rows, costs, on_one_thread);
  CHECK(on_one_thread.outcome.converged && on_one_thread.outcome.relative_gap() <= 1e-3);
  const auto on_three_threads = run_solver<LossKind>(rows, costs, options(1e-3, 100'000, 3));
  CHECK(on_three_threads.weights == on_one_thread.weights &&
        on_three_threads.outcome.epochs == on_one_thread.outcome.epochs);
  CHECK(on_three_threads.outcome.objective == on_one_thread.outcome.objective);
}

template <class LossKind>
void test_kernel_space_reaches_the_same_optimum() {
  const DenseRowsWithKernel rows(120, 8, 1.0, 8);
  const Coordinates costs = costs_for(rows, 5.0, 9);
  const auto solved = run_solver<LossKind>(rows, costs, options(1e-7));
  CHECK(rows.gram_calls > 0);
  check_certificate<LossKind>(rows, costs, solved);
  CHECK(solved.outcome.converged && solved.outcome.relative_gap() <= 1e-7);
  const DenseRows rows_without_kernel(120, 8, 1.0, 8);
  const auto by_first_order = run_solver<LossKind>(rows_without_kernel, costs, options(1e-7));
  CHECK(close(solved.outcome.objective, by_first_order.outcome.objective, 1e-6));
}

// Columns have very different scales and costs are large, so first-order steps would take very long.
template <class LossKind, class Rows>
void test_second_order_steps_reach_the_optimum(std::int64_t count, std::size_t width) {
  Rows rows(count, width, 1.0, 21);
  rows.stretch_columns();
  rows.map_size = static_cast<double>(width);
  const Coordinates costs = costs_for(rows, 100.0, 22);
  const auto solved = run_solver<LossKind>(rows, costs, options(1e-6, 1000));
  check_certificate<LossKind>(rows, costs, solved);
  CHECK(solved.outcome.converged && solved.outcome.relative_gap() <= 1e-6);
}

template <class LossKind>
void test_gram_rows_equal_the_rows() {
  const DenseRowsWithKernel rows(50, 4, 1.0, 10);
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < 50; ++i) all.push_back(i);
  const GramRows gram(rows.gram(all, 1), 50);
  std::vector<double> scores(50, 0.0);
  std::vector<double> w(4, 0.0);
  for (std::int64_t i = 0; i < 50; ++i) {
    CHECK(close(gram.squared_norm(i), rows.squared_norm(i)));
    gram.axpy(i, 0.1 * static_cast<double>(i), scores.data());
    rows.axpy(i, 0.1 * static_cast<double>(i), w.data());
  }
  for (std::int64_t i = 0; i < 50; ++i) CHECK(close(gram.dot(i, scores.data()), rows.dot(i, w.data())));

  Monitor monitor;
  std::fill(scores.begin(), scores.end(), 0.0);
  const PassesOver<GramRows> passes(gram);
  DualCoordinateDescent part(passes, LossKind::name, costs_for(rows, 1.0, 11), scores, options(1e-9), monitor,
                             targets_for<LossKind>(rows));
  part.run_part(1e-6);
  const std::vector<double> weights = weights_of(rows, part.coordinates());
  const double gap =
      primal<LossKind>(rows, part.coordinates(), weights) - dual<LossKind>(rows, part.coordinates());
  CHECK(gap >= -1e-9 && gap <= 1e-6 + 1e-9);
}

// A run that starts at the result of another run needs few epochs, also if the costs are slightly larger.
template <class LossKind>
void test_warm_starts_need_few_epochs() {
  const DenseRows rows(300, 10, 1.0, 12);
  const Coordinates costs = costs_for(rows, 1.0, 13);
  const auto cold = run_solver<LossKind>(rows, costs, options(1e-6));
  Monitor monitor;
  const auto restarted = run_solver<LossKind>(rows, cold.coordinates, cold.weights, options(1e-6), monitor);
  check_certificate<LossKind>(rows, costs, restarted);
  CHECK(restarted.outcome.converged && restarted.outcome.epochs <= 5 &&
        10 * restarted.outcome.epochs < cold.outcome.epochs);
  CHECK(restarted.outcome.dual_objective >= cold.outcome.dual_objective - 1e-9 * cold.outcome.objective);

  Coordinates costlier = cold.coordinates;
  for (Coordinate& c : costlier) c.costs = {1.05 * c.costs.positive, 1.05 * c.costs.negative};
  const auto warm = run_solver<LossKind>(rows, costlier, cold.weights, options(1e-6), monitor);
  check_certificate<LossKind>(rows, costlier, warm);
  CHECK(warm.outcome.converged);
  for (Coordinate& c : costlier) c.u = 0.0;
  const auto cold_solution = run_solver<LossKind>(rows, costlier, options(1e-6));
  CHECK(close(warm.outcome.objective, cold_solution.outcome.objective, 3e-6));
}

template <class LossKind>
void test_reports_that_epochs_ran_out() {
  const DenseRows rows(300, 30, 3.0, 14);
  const Coordinates costs = costs_for(rows, 1000.0, 15);
  for (const std::int64_t epochs : {1, 2, 5}) {
    const auto stopped = run_solver<LossKind>(rows, costs, options(1e-12, epochs));
    check_certificate<LossKind>(rows, costs, stopped);
    CHECK(!stopped.outcome.converged && stopped.outcome.epochs <= epochs);
    CHECK(stopped.outcome.relative_gap() > 1e-12);
  }
}

template <class LossKind>
void test_results_depend_on_the_seed() {
  const DenseRows rows(200, 10, 1.0, 16);
  const Coordinates costs = costs_for(rows, 1.0, 17);
  const auto expected = run_solver<LossKind>(rows, costs, options(1e-3));
  CHECK(run_solver<LossKind>(rows, costs, options(1e-3)).weights == expected.weights);
  DescentOptions other_options = options(1e-3);
  other_options.seed = 8;
  CHECK(run_solver<LossKind>(rows, costs, other_options).weights != expected.weights);
}

void test_no_rows() {
  const DenseRows rows(0, 3, 1.0, 18);
  const auto solved = run_solver<Hinge>(rows, Coordinates{}, options(1e-3));
  CHECK(solved.outcome.converged && solved.outcome.objective == 0.0 && solved.outcome.relative_gap() == 0.0);
}

void test_a_stopped_monitor_interrupts() {
  const DenseRows rows(300, 30, 3.0, 19);
  const Coordinates costs = costs_for(rows, 1e6, 20);
  std::vector<double> weights(rows.width(), 0.0);
  Monitor stopped;
  stopped.stop();
  CHECK_THROWS(run_solver<Hinge>(rows, costs, weights, options(1e-3), stopped), Interrupted);

  // Stopped from another thread in the middle of a problem that would never end.
  Monitor monitor;
  std::string message;
  try {
    supervise(
        monitor,
        [&] { (void)run_solver<Hinge>(rows, costs, weights, options(1e-300, 1'000'000'000), monitor); },
        [&](const Progress& progress) {
          if (progress.epoch > 0) throw std::runtime_error("enough");
        });
  } catch (const std::runtime_error& error) { message = error.what(); }
  CHECK(message == "enough");
}

template <class LossKind>
void test_all_with_loss() {
  test_reaches_the_optimum<LossKind>();
  test_reaches_the_optimum_in_a_wide_box<LossKind>();
  test_many_rows_give_the_same_result_on_several_threads<LossKind>();
  test_kernel_space_reaches_the_same_optimum<LossKind>();
  test_second_order_steps_reach_the_optimum<LossKind, DenseRowsWithKernel>(150, 20);
  test_second_order_steps_reach_the_optimum<LossKind, DenseRowsWithMap>(400, 15);
  test_gram_rows_equal_the_rows<LossKind>();
  test_warm_starts_need_few_epochs<LossKind>();
  test_reports_that_epochs_ran_out<LossKind>();
  test_results_depend_on_the_seed<LossKind>();
}

}  // namespace

int main() {
  for_all_losses([]<class LossKind>(LossKind) { test_all_with_loss<LossKind>(); });
  test_no_rows();
  test_a_stopped_monitor_interrupts();
  return 0;
}
