#include "unkernel/solve/dual_coordinate_descent.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "unkernel/base/parallel.hpp"
#include "unkernel/base/random.hpp"

namespace unkernel::solve {

DualCoordinateDescent::DualCoordinateDescent(const RowPasses& rows, Loss loss, Coordinates coordinates,
                                             std::span<double> weights, const DescentOptions& options,
                                             Monitor& monitor)
    : rows_(rows),
      loss_(loss),
      options_(options),
      state_{std::move(coordinates), weights, monitor, Random(options.seed)} {
  for (std::int64_t i = 0; i < rows_.size(); ++i) {
    Coordinate& c = coordinate(i);
    c.curvature = rows_.squared_norm(i);
    if (!std::isfinite(c.curvature)) {
      throw std::invalid_argument(
          "the kernel of a row with itself is not finite: scale the features, or lower gamma or coef0");
    }
  }
  wake_everyone();
}

Outcome DualCoordinateDescent::run(Progress progress) {
  if (const double squared_weights = squared_weights_of_start(); squared_weights > 0.0) {
    state_.dual_objective = dual_value() - 0.5 * squared_weights;
  } else {
    state_.dual_objective = dual_value();
    grow_box(progress);
  }
  while (state_.epoch < options_.max_epochs) {
    sweep();
    publish(progress);
    if (seems_done() || finished_in_kernel_space()) {
      if (const Outcome outcome = certify(); outcome.converged) return outcome;
    }
    if (second_order_pays()) {
      solve_by_interior_point();
      if (const Outcome outcome = certify(); outcome.converged) return outcome;
    }
  }
  return certify();
}

void DualCoordinateDescent::run_part(double target) {
  while (state_.epoch < options_.max_epochs) {
    sweep();
    if (state_.estimated_gap <= target && pass_over_all_rows().gap <= target) return;
  }
}

void DualCoordinateDescent::sweep() {
  ++state_.epoch;
  collect_awake_rows();
  shuffle_nearby();
  rows_.visit_awake_rows(loss_, state_);
  rows_.revisit_busy_rows(loss_, state_);
}

// One pass over all rows: computes the exact gap and wakes every row that wants to move. Sums pieces of fixed
// size, so that the result does not depend on the number of threads.
GapSums DualCoordinateDescent::pass_over_all_rows() {
  constexpr std::int64_t grain = 4096;
  const std::int64_t pieces = (rows_.size() + grain - 1) / grain;
  std::vector<GapSums> parts(static_cast<std::size_t>(pieces));
  parallel_ranges(options_.threads, rows_.size(), grain, [&](std::int64_t begin, std::int64_t end) {
    state_.monitor.throw_if_stopped();
    parts[static_cast<std::size_t>(begin / grain)] = rows_.certify(loss_, state_, begin, end);
  });
  reactivate_awake_rows();
  GapSums total;
  for (const GapSums& part : parts) {
    total.gap += part.gap;
    total.loss += part.loss;
    total.squared_weights += part.squared_weights;
  }
  return total;
}

Outcome DualCoordinateDescent::certify() {
  const GapSums sums = pass_over_all_rows();
  Outcome outcome;
  outcome.objective = 0.5 * sums.squared_weights + sums.loss;
  outcome.dual_objective = outcome.objective - sums.gap;
  if (!std::isfinite(outcome.objective)) {
    throw std::invalid_argument("the objective is not finite: lower C or the sample weights");
  }
  outcome.epochs = state_.epoch;
  outcome.converged = sums.gap <= options_.tolerance * std::max(outcome.objective, 0.0);
  if (state_.estimated_gap > 0.0) underestimate_ = std::clamp(sums.gap / state_.estimated_gap, 1.0, 1.5);
  state_.estimated_gap = sums.gap;
  state_.dual_objective = outcome.dual_objective;  // removes the rounding errors of the running value
  return outcome;
}

double DualCoordinateDescent::squared_weights_of_start() {
  const bool cold = std::ranges::all_of(state_.coordinates, [](const Coordinate& c) { return c.u == 0.0; });
  return cold ? 0.0 : pass_over_all_rows().squared_weights;
}

// The dual objective without the term -1/2 w'w.
double DualCoordinateDescent::dual_value() const {
  double value = 0.0;
  for (const Coordinate& c : state_.coordinates) value += dual_of(loss_, c.costs, c.u);
  return value;
}

bool DualCoordinateDescent::seems_done() const {
  return underestimate_ * state_.estimated_gap <=
         options_.tolerance * (state_.dual_objective + state_.estimated_gap);
}

void DualCoordinateDescent::publish(Progress& progress) {
  progress.epoch = state_.epoch;
  progress.active = static_cast<std::int64_t>(active_.size());
  const double objective = state_.dual_objective + state_.estimated_gap;
  progress.relative_gap = objective > 0.0 ? state_.estimated_gap / objective : 0.0;
  state_.monitor.report(progress);
}

}  // namespace unkernel::solve
