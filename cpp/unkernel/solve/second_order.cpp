// Dual coordinate descent: decides when to switch to the interior-point method, and runs it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "unkernel/solve/dual_coordinate_descent.hpp"
#include "unkernel/solve/interior_point.hpp"
#include "unkernel/solve/system_plan.hpp"

namespace unkernel::solve {

// Returns the expected remaining cost of sweeps, assuming that the gap falls as a power of the number of
// epochs.
double DualCoordinateDescent::cost_of_sweeps() {
  const double gap = state_.estimated_gap / std::max(state_.dual_objective + state_.estimated_gap, 1e-300);
  const double previous_gap = std::exchange(gap_at_comparison_, gap);
  if (previous_gap == 0.0) return 0.0;  // there is no earlier gap to compare with
  const double power = std::max(std::log2(previous_gap / gap), 0.2);
  const double epochs =
      std::pow(std::max(gap / options_.tolerance, 1.0), 1.0 / power) * static_cast<double>(state_.epoch);
  constexpr double overhead = 1000.0;  // multiplications per epoch, even if it visits few rows
  const double epoch_cost = 4.0 * static_cast<double>(state_.awake.size()) * rows_.mean_map_size() + overhead;
  // If sweeps would not converge within max_epochs, count their cost ten times.
  constexpr double penalty_factor = 10.0;
  const auto most_epochs = static_cast<double>(options_.max_epochs);
  return epoch_cost * (epochs > most_epochs ? penalty_factor * most_epochs : epochs);
}

// Returns the cheapest method. Compares the methods each time the number of epochs has doubled.
Finish DualCoordinateDescent::cheapest_finish() {
  if (!rows_.has_kernel() || state_.epoch < next_comparison_) return Finish::sweeps;
  next_comparison_ = 2 * state_.epoch;
  const double sweeps = cost_of_sweeps();
  const double infinity = std::numeric_limits<double>::infinity();
  const double second_order = allows(Finish::second_order) ? interior_point_plan().cost : infinity;
  const bool in_kernel_space = allows(Finish::kernel_space) && !rows_.is_gram();
  const double kernel_space = in_kernel_space ? kernel_space_cost(moving_rows()) : infinity;
  if (sweeps <= std::min(second_order, kernel_space)) return Finish::sweeps;
  if (second_order < kernel_space) return Finish::second_order;
  kernel_space_budget_ = 2.0 * kernel_space;
  return Finish::kernel_space;
}

// By the time of the first comparison, every conjunction that occurs has a weight.
SystemPlan DualCoordinateDescent::interior_point_plan() const {
  constexpr double iterations = 30.0;
  SystemPlan plan = plan_system(rows_, state_.weights, options_.memory);
  plan.cost *= tried_second_order_ ? std::numeric_limits<double>::infinity() : iterations;
  return plan;
}

void DualCoordinateDescent::solve_by_interior_point() {
  const SystemPlan plan = interior_point_plan();
  record_finish(Finish::second_order, plan.bytes);
  tried_second_order_ = true;
  std::vector<Costs> costs;
  std::vector<std::int32_t> all_rows;
  for (const Coordinate& c : state_.coordinates) {
    costs.push_back(c.costs);
    all_rows.push_back(static_cast<std::int32_t>(all_rows.size()));
  }
  const std::unique_ptr<NormalSystem> system = make_system(rows_, plan, options_.threads);
  InteriorPoint solver(loss_, costs, state_.targets, *system, state_.monitor);
  if (!solver.run(0.1 * options_.tolerance)) return;
  // Start from zero instead of the current w, in which badly scaled rows leave rounding errors.
  for (double& w : state_.weights) w = 0.0;
  for (Coordinate& c : state_.coordinates) c.u = 0.0;
  adopt_solution(all_rows, solver.duals());
}

}  // namespace unkernel::solve
