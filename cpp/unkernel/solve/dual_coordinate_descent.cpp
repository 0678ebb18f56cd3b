#include "unkernel/solve/dual_coordinate_descent.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "unkernel/base/parallel.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/neighbour_order.hpp"

namespace unkernel::solve {
namespace {

constexpr double unit_of_rounding = 0x1p-53;

double objective_of(const GapSums& sums) { return 0.5 * sums.squared_weights + sums.loss; }

// Computes the exact gap of the rows [begin, end) with these scores, and wakes rows whose step would increase
// the dual.
template <class LossKind>
GapSums certify_rows(const LossKind& loss, SweepState& state, std::span<const double> scores,
                     std::int64_t begin, std::int64_t end) {
  GapSums sums;
  const double* targets = state.targets.empty() ? nullptr : state.targets.data();
  for (std::int64_t i = begin; i < end; ++i) {
    Coordinate& c = state.coordinates[static_cast<std::size_t>(i)];
    const double f = scores[static_cast<std::size_t>(i)];
    const double residual = targets == nullptr ? f : f - targets[i];
    sums.gap += gap_term(loss, c, residual);
    sums.loss += loss.loss(c.costs, residual);
    sums.squared_weights += c.u * f;
    if (slope_of_possible_move(loss, c, residual) > 0.0) c.asleep_until = 0;
  }
  return sums;
}

}  // namespace

DualCoordinateDescent::DualCoordinateDescent(const RowPasses& rows, const Loss& loss, Coordinates coordinates,
                                             std::span<double> weights, const DescentOptions& options,
                                             Monitor& monitor, std::vector<double> targets)
    : rows_(rows),
      loss_(loss),
      options_(options),
      state_{std::move(coordinates), weights, monitor, Random(options.seed), std::move(targets)} {
  for (std::int64_t i = 0; i < rows_.size(); ++i) {
    Coordinate& c = coordinate(i);
    c.curvature = rows_.squared_norm(i);
    if (!std::isfinite(c.curvature)) {
      throw std::invalid_argument(
          "the kernel of a row with itself is not finite: scale the features, or lower gamma or coef0");
    }
  }
  wake_all_rows();
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
    report_progress(progress);
    history_.note({state_.epoch, state_.dual_objective + state_.estimated_gap, state_.dual_objective});
    if (is_probably_converged() || try_kernel_space()) {
      if (const Outcome outcome = certify(); outcome.converged) return outcome;
    }
    move_free_rows();
    const Finish finish = cheapest_finish();
    if (finish == Finish::sweeps) continue;
    if (finish == Finish::second_order) {
      solve_by_interior_point();
    } else {
      finish_in_kernel_space(moving_rows());
    }
    if (const Outcome outcome = certify(); outcome.converged) return outcome;
  }
  return certify();
}

void DualCoordinateDescent::run_part(double target) {
  while (state_.epoch < options_.max_epochs) {
    sweep();
    if (state_.estimated_gap <= target && pass_over_all_rows().gap <= target) return;
    move_free_rows();
  }
}

void DualCoordinateDescent::sweep() {
  ++state_.epoch;
  collect_awake_rows();
  shuffle_neighbours(state_.random, state_.awake, shuffled_);
  rows_.sweep(loss_, state_);
}

// Makes one pass over all rows: computes the exact gap, and wakes every row whose step would increase the
// dual. Sums over blocks of fixed size, so that the result does not depend on the number of threads.
GapSums DualCoordinateDescent::pass_over_all_rows() {
  constexpr std::int64_t grain = 4096;
  const std::int64_t blocks = (rows_.size() + grain - 1) / grain;
  std::vector<GapSums> block_sums(static_cast<std::size_t>(blocks));
  std::vector<double> scores(static_cast<std::size_t>(rows_.size()));
  parallel_ranges(options_.threads, rows_.size(), grain, [&](std::int64_t begin, std::int64_t end) {
    state_.monitor.throw_if_stopped();
    rows_.dots(begin, end, state_.weights.data(), scores.data());
    block_sums[static_cast<std::size_t>(begin / grain)] =
        with_loss(loss_, [&](const auto& loss) { return certify_rows(loss, state_, scores, begin, end); });
  });
  reactivate_awake_rows();
  GapSums total;
  for (const GapSums& block_sum : block_sums) {
    total.gap += block_sum.gap;
    total.loss += block_sum.loss;
    total.squared_weights += block_sum.squared_weights;
  }
  return total;
}

Outcome DualCoordinateDescent::certify() {
  // Compare the rounding error with the dual objective, because the primal objective is known only after the
  // pass over all rows.
  const double rounding_of_steps = bound_rounding_of_steps();
  constexpr double max_share_of_rounding = 0.01;  // of the allowed gap
  const bool recompute =
      !(rounding_of_steps <= max_share_of_rounding * options_.tolerance * state_.dual_objective);
  if (recompute) recompute_weights();
  const GapSums sums = pass_over_all_rows();
  const double rounding = recompute ? bound_rounding_of_sum(sums) : rounding_of_steps;
  Outcome outcome;
  outcome.objective = objective_of(sums);
  // The dual objective at u = 0 is 0.
  outcome.dual_objective = std::max(outcome.objective - sums.gap - rounding, 0.0);
  if (!std::isfinite(outcome.objective)) {
    throw std::invalid_argument("the objective is not finite: lower C or the sample weights");
  }
  outcome.solved_gap = sums.gap;
  outcome.epochs = state_.epoch;
  outcome.finish = finish_;
  outcome.largest_matrices = largest_matrices_;
  const double certain_gap = rows_.is_gram() ? sums.gap : sums.gap + rounding;
  outcome.converged = certain_gap <= options_.tolerance * std::max(outcome.objective, 0.0);
  if (state_.estimated_gap > 0.0) gap_correction_ = std::clamp(sums.gap / state_.estimated_gap, 1.0, 1.5);
  state_.estimated_gap = sums.gap;
  state_.dual_objective = outcome.objective - sums.gap;  // without the rounding errors of the updates
  history_.note({outcome.epochs, outcome.objective, outcome.dual_objective});
  outcome.history = history_;
  return outcome;
}

// Returns a bound on the effect of the rounding errors of all steps on the gap P - D. |w| stays below sqrt(2
// P(0)), where P(0) is the loss of w = 0: the dual objective rises from 0, and is at most P(0) - 1/2 w'w.
double DualCoordinateDescent::bound_rounding_of_steps() const {
  const LengthSums lengths = sum_lengths();
  const auto steps = static_cast<double>(state_.steps + rows_.size());
  const double longest = 3.0 * std::sqrt(2.0 * lengths.loss_at_zero) + largest_joint_change_;
  return steps * unit_of_rounding * longest * (lengths.duals + lengths.losses);
}

// Returns a bound on the effect of rounding errors on the gap P - D, for weights w that have just been summed
// over the rows. The computed scores belong to some w whose distance from the true sum is at most |rows| *
// unit * sum_i |u_i phi_i|. The distance changes D, but P is the objective of the computed w. On a kernel
// matrix, every score is a separate sum, and its error changes P, too.
double DualCoordinateDescent::bound_rounding_of_sum(const GapSums& sums) const {
  const LengthSums lengths = sum_lengths();
  const auto terms = static_cast<double>(rows_.size());
  if (rows_.is_gram()) {
    // A kernel value is a power of a sum, with several rounding errors.
    constexpr double errors_of_kernel = 256.0;
    return unit_of_rounding * (terms + errors_of_kernel) * lengths.duals * (lengths.duals + lengths.losses);
  }
  const double weight_error = terms * lengths.duals;
  const double weights = std::sqrt(std::max(sums.squared_weights, 0.0));
  return unit_of_rounding * weights * (2.0 * weight_error + 8.0 * lengths.losses);
}

DualCoordinateDescent::LengthSums DualCoordinateDescent::sum_lengths() const {
  LengthSums lengths;
  for (std::int64_t i = 0; i < rows_.size(); ++i) {
    const Coordinate& c = state_.coordinates[static_cast<std::size_t>(i)];
    const double length = std::sqrt(c.curvature);
    const double slope = loss_.squared ? 2.0 * std::abs(c.u) : c.costs.positive + c.costs.negative;
    lengths.loss_at_zero += loss_of(loss_, c.costs, -target(i));
    lengths.duals += std::abs(c.u) * length;
    lengths.losses += slope * length;
  }
  return lengths;
}

void DualCoordinateDescent::recompute_weights() {
  std::ranges::fill(state_.weights, 0.0);
  for (std::int64_t i = 0; i < rows_.size(); ++i) {
    if (const double u = coordinate(i).u; u != 0.0) rows_.axpy(i, u, state_.weights.data());
  }
}

double DualCoordinateDescent::squared_weights_of_start() {
  const bool is_zero =
      std::ranges::all_of(state_.coordinates, [](const Coordinate& c) { return c.u == 0.0; });
  return is_zero ? 0.0 : pass_over_all_rows().squared_weights;
}

// Returns the dual objective without the term -1/2 w'w.
double DualCoordinateDescent::dual_value() const {
  double value = 0.0;
  for (std::int64_t i = 0; i < rows_.size(); ++i) {
    const Coordinate& c = state_.coordinates[static_cast<std::size_t>(i)];
    value += dual_of(loss_, c.costs, c.u) + c.u * target(i);
  }
  return value;
}

std::vector<double> DualCoordinateDescent::select_targets(std::span<const std::int32_t> rows) const {
  std::vector<double> targets;
  if (state_.targets.empty()) return targets;
  for (const std::int32_t i : rows) targets.push_back(target(i));
  return targets;
}

bool DualCoordinateDescent::is_probably_converged() const {
  return gap_correction_ * state_.estimated_gap <=
         options_.tolerance * (state_.dual_objective + state_.estimated_gap);
}

void DualCoordinateDescent::record_finish(Finish finish, double bytes) {
  finish_ = finish;
  largest_matrices_ = std::max(largest_matrices_, bytes);
}

void DualCoordinateDescent::report_progress(Progress& progress) {
  progress.epoch = state_.epoch;
  progress.active = static_cast<std::int64_t>(active_.size());
  const double objective = state_.dual_objective + state_.estimated_gap;
  progress.relative_gap = objective > 0.0 ? state_.estimated_gap / objective : 0.0;
  state_.monitor.report(progress);
}

}  // namespace unkernel::solve
