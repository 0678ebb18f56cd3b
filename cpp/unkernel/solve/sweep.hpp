// The loops of dual coordinate descent that visit rows, compiled for every kind of row view.
//
// Visit    computes the residual of a row: its score minus its target. If a step would increase the dual, the
//          row makes the step. If the residual holds u_i at a corner of g_i, the row sleeps for 1, 2, 4 .. 16
//          epochs. If the residual is further inside the corner than the largest violation of the last epoch,
//          the row leaves the active set (shrinking).
// Step     sets u_i to its best value for the dual while all other variables are fixed, in closed form (Hsieh
//          et al. 2008, Algorithm 3, extended to rows with both labels).
// Revisit  Rows whose gap was larger than the average are visited again, up to four times, at the end of an
//          epoch: a sixth of the rows that move account for half of the gap. On a kernel matrix, where steps
//          are expensive, the rows whose step gained more than the average are visited again instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/dual_problem.hpp"
#include "unkernel/solve/loss.hpp"

namespace unkernel::solve {

// The value of asleep_until for a row that has left the active set.
inline constexpr std::uint32_t shrunk = std::numeric_limits<std::uint32_t>::max();

// State shared by the loops and the solver.
struct SweepState {
  Coordinates coordinates;
  std::span<double> weights;
  Monitor& monitor;
  Random random;
  std::vector<double> targets{};      // one per row; empty if all are 0
  std::vector<std::int32_t> awake{};  // the rows to visit in this epoch, in order
  std::vector<std::int32_t> busy{};   // the rows to visit again at the end of the epoch
  std::int64_t epoch = 0;
  std::int64_t steps = 0;
  // Rows with a larger urgency become busy: the mean urgency in the last epoch.
  double busy_above = std::numeric_limits<double>::infinity();
  // Rows that are further inside a corner shrink: the largest slope in the last epoch.
  double shrink_beyond = std::numeric_limits<double>::infinity();
  double estimated_gap = 0.0;
  double dual_objective = 0.0;
};

template <class LossKind>
double gap_term(const LossKind& loss, const Coordinate& c, double residual) {
  return loss.loss(c.costs, residual) - loss.dual(c.costs, c.u) + c.u * residual;
}

// Returns the slope of the dual in the direction in which u can move. It is positive if a step increases the
// dual; otherwise, minus the distance by which the residual is inside the corner that holds u.
template <class LossKind>
double slope_of_possible_move(const LossKind& loss, const Coordinate& c, double residual) {
  constexpr double never = -std::numeric_limits<double>::infinity();
  const double up = c.u < loss.high(c.costs) ? loss.right_slope(c.costs, c.u) - residual : never;
  const double down = c.u > loss.low(c.costs) ? residual - loss.left_slope(c.costs, c.u) : never;
  return std::max(up, down);
}

inline void put_to_sleep(Coordinate& c, std::int64_t epoch) {
  constexpr std::uint16_t longest_nap = 16;
  c.nap = c.nap == 0 ? std::uint16_t{1}
                     : std::min<std::uint16_t>(static_cast<std::uint16_t>(2 * c.nap), longest_nap);
  // Skip the first sleep, of one epoch, because many rows stay at a bound for a single epoch only.
  c.asleep_until = c.nap == 1 ? 0 : static_cast<std::uint32_t>(epoch) + 1U + c.nap;
}

template <class LossKind, class Rows>
class RowSweep {
 public:
  RowSweep(const Loss& loss, const Rows& rows, SweepState& state)
      : loss_(loss),
        rows_(rows),
        state_(state),
        coordinates_(state.coordinates.data()),
        weights_(state.weights.data()),
        targets_(state.targets.empty() ? nullptr : state.targets.data()) {}

  void visit_awake_rows() {
    const std::int32_t* awake = state_.awake.data();
    const std::size_t count = state_.awake.size();
    const double shrink_beyond = state_.shrink_beyond;
    const double step_beyond = min_slope_to_step(shrink_beyond);
    const double dual_before_sweep = state_.dual_objective;
    double estimated_gap = 0.0;
    double largest_slope = 0.0;
    std::size_t steps = 0;
    state_.busy.clear();
    for (std::size_t k = 0; k < count; ++k) {
      prefetch_after(awake, k, count);
      if ((k & 255) == 0) state_.monitor.throw_if_stopped();
      const std::int32_t i = awake[k];
      Coordinate& c = coordinates_[i];
      const double residual = residual_of(i);
      const double slope = slope_of_possible_move(loss_, c, residual);
      if (slope < -shrink_beyond) {
        c.asleep_until = shrunk;
        continue;
      }
      const double gap = gap_term(loss_, c, residual);
      estimated_gap += gap;
      if (slope > 0.0) {
        largest_slope = std::max(largest_slope, slope);
        c.nap = 0;
        if (slope <= step_beyond) continue;
        ++steps;
        if (urgency(gap, step(i, residual)) > state_.busy_above) state_.busy.push_back(i);
      } else {
        put_to_sleep(c, state_.epoch);
      }
    }
    state_.monitor.throw_if_stopped();
    state_.estimated_gap = estimated_gap;
    state_.shrink_beyond = std::max(largest_slope, 1e-12);
    state_.busy_above = urgency(
        estimated_gap / static_cast<double>(std::max<std::size_t>(count, 1)),
        (state_.dual_objective - dual_before_sweep) / static_cast<double>(std::max<std::size_t>(steps, 1)));
  }

  void revisit_busy_rows() {
    constexpr int rounds = 4;
    std::vector<std::int32_t>& busy = state_.busy;
    for (int round = 0; round < rounds && !busy.empty(); ++round) {
      state_.random.shuffle(std::span(busy));
      std::size_t still_busy = 0;
      for (std::size_t k = 0; k < busy.size(); ++k) {
        if (k + row_distance < busy.size()) rows_.prefetch(busy[k + row_distance]);
        const std::int32_t i = busy[k];
        const double residual = residual_of(i);
        const double gap = gap_term(loss_, coordinates_[i], residual);
        if (urgency(gap, step(i, residual)) > state_.busy_above) busy[still_busy++] = i;
      }
      busy.resize(still_busy);
      state_.monitor.throw_if_stopped();
    }
  }

 private:
  // The distances, in rows, of the two prefetches.
  static constexpr std::size_t header_distance = 16;
  static constexpr std::size_t row_distance = 8;

  // On a kernel matrix, reading a score is free, but a step is a pass over all rows. So only rows with slopes
  // of at least half the largest slope of the last epoch make steps. In the first epoch, all scores are 0 and
  // slopes are at most 1.
  static constexpr bool has_stored_scores = requires { Rows::has_stored_scores; };
  static double min_slope_to_step(double largest_slope) {
    constexpr double share = 0.5;
    if constexpr (!has_stored_scores) return 0.0;
    return share * (std::isfinite(largest_slope) ? largest_slope : 1.0);
  }

  void prefetch_after(const std::int32_t* awake, std::size_t k, std::size_t count) const {
    if (k + header_distance < count) {
      const std::int32_t ahead = awake[k + header_distance];
      __builtin_prefetch(coordinates_ + ahead, 1);
      rows_.prefetch_header(ahead);
    }
    if (k + row_distance < count) rows_.prefetch(awake[k + row_distance]);
  }

  double residual_of(std::int64_t i) const {
    const double f = rows_.dot(i, weights_);
    return targets_ == nullptr ? f : f - targets_[i];
  }

  // Returns the urgency of a row. Rows above the mean are visited again at the end of an epoch.
  static double urgency(double gap, double gain) { return has_stored_scores ? gain : gap; }

  // Makes the best step of a row, and returns how much the dual objective gains.
  double step(std::int64_t i, double residual) {
    Coordinate& c = coordinates_[i];
    const double old_u = c.u;
    c.u = loss_.best(c.costs, residual - old_u * c.curvature, c.curvature);
    const double change = c.u - old_u;
    if (change == 0.0) return 0.0;
    rows_.axpy(i, change, weights_);
    ++state_.steps;
    const double gain = loss_.dual(c.costs, c.u) - loss_.dual(c.costs, old_u) -
                        change * (residual + 0.5 * change * c.curvature);
    state_.dual_objective += gain;
    return gain;
  }

  const LossKind loss_;
  const Rows& rows_;
  SweepState& state_;
  Coordinate* coordinates_;
  double* weights_;
  const double* targets_;  // null if all are 0
};

}  // namespace unkernel::solve
