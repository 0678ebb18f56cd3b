// Dual coordinate descent on a kernel matrix: moves all free rows together. A row is free if its u_i can move
// in both directions.
//
// As long as every row stays on its linear (hinge) or quadratic (squared hinge) piece of g_i, the dual is
// quadratic in the moves d of the free rows F. With slope_i the slope of g_i, D its curvature, K_FF the
// kernel matrix of the free rows, and r_i the residual of row i (its score minus its target), it is
//
//   max_d  sum_i (slope_i - r_i) d_i - 1/2 d'(K_FF + D) d        r_i = f_i - t_i
//
// One factorisation gives the best d. The new u is u + t d, clipped at the ends of the pieces, for the
// largest t of 1, 1/2, 1/4 .. that increases the dual. Sweeps between such joint moves find the free rows. A
// joint move is made when the sweeps since the last joint move have cost as much as the move will cost. So
// the total cost is at most twice the cost of the cheaper method alone.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "unkernel/solve/dual_coordinate_descent.hpp"
#include "unkernel/solve/normal_system.hpp"

namespace unkernel::solve {
namespace {

struct Piece {
  double low, high;
  double slope;      // of g at u
  double curvature;  // minus the second derivative of g

  bool contains(double u) const { return low < u && u < high; }
};

Piece piece_at(const Loss& loss, const Costs& costs, double u) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto [p, q] = costs;
  if (!loss.squared) {
    const LinearLoss linear(loss);
    const double kink = linear.kink(costs);
    return u < kink ? Piece{-q, kink, linear.left_slope(costs, u), 0.0}
                    : Piece{kink, p, linear.right_slope(costs, u), 0.0};
  }
  const bool overlaps = loss.low > loss.high;
  if (p > 0.0 && (overlaps ? q == 0.0 : u > 0.0)) return {0.0, infinity, loss.low - 0.5 * u / p, 0.5 / p};
  if (q > 0.0 && (overlaps ? p == 0.0 : u < 0.0)) return {-infinity, 0.0, loss.high - 0.5 * u / q, 0.5 / q};
  return {u, u, 0.0, 0.0};  // sweeps alone move rows with both labels, and rows at corners
}

}  // namespace

std::vector<std::int32_t> DualCoordinateDescent::free_rows() const {
  std::vector<std::int32_t> free;
  for (std::size_t i = 0; i < state_.coordinates.size(); ++i) {
    const Coordinate& c = state_.coordinates[i];
    if (piece_at(loss_, c.costs, c.u).contains(c.u)) free.push_back(static_cast<std::int32_t>(i));
  }
  return free;
}

void DualCoordinateDescent::move_free_rows() {
  constexpr std::size_t max_free_rows = 2048;
  const double rows = static_cast<double>(rows_.size());
  constexpr double overhead = 500.0;  // the visits per step take as long as this many multiplications
  const double work = static_cast<double>(state_.steps - steps_at_last_joint_move_) * (rows + overhead);
  if (!rows_.is_gram() || work < work_before_free_rows_) return;
  const std::vector<std::int32_t> free = free_rows();
  const auto count = static_cast<double>(free.size());
  const double cost = count * count * count / (3.0 * block_speed) + 2.0 * count * rows;
  work_before_free_rows_ = cost;
  if (free.empty() || free.size() > max_free_rows || work < cost ||
      !fits_into_memory(2.0 * sizeof(double) * count * count))
    return;
  state_.monitor.throw_if_stopped();
  if (!step_in_direction(free, best_direction(free))) work_before_free_rows_ = 4.0 * cost;
  steps_at_last_joint_move_ = state_.steps;
}

std::vector<double> DualCoordinateDescent::best_direction(std::span<const std::int32_t> free) const {
  const std::size_t count = free.size();
  const std::vector<double> kernel = rows_.gram(free, 1);
  Cholesky matrix(count);
  std::vector<double> direction(count);
  double largest = 0.0;
  for (std::size_t k = 0; k < count; ++k) {
    const Coordinate& c = state_.coordinates[static_cast<std::size_t>(free[k])];
    const Piece piece = piece_at(loss_, c.costs, c.u);
    std::copy_n(kernel.data() + k * count, k + 1, matrix.row(k));
    matrix.row(k)[k] += piece.curvature;
    largest = std::max(largest, matrix.row(k)[k]);
    direction[k] = piece.slope - (state_.weights[static_cast<std::size_t>(free[k])] - target(free[k]));
  }
  constexpr double pivot_of_dependent_rows = 1e-9;
  matrix.factor(pivot_of_dependent_rows * largest);
  matrix.solve(direction);
  return direction;
}

// Moves the free rows along the direction; returns whether the dual increased.
bool DualCoordinateDescent::step_in_direction(std::span<const std::int32_t> free,
                                              std::span<const double> direction) {
  constexpr double min_length = 1.0 / 64.0;
  std::vector<double> change(free.size());
  std::vector<double> score_changes(state_.weights.size());
  for (double length = 1.0; length >= min_length; length *= 0.5) {
    std::ranges::fill(score_changes, 0.0);
    double gain = 0.0;
    for (std::size_t k = 0; k < free.size(); ++k) {
      const Coordinate& c = coordinate(free[k]);
      const Piece piece = piece_at(loss_, c.costs, c.u);
      const double u = std::clamp(c.u + length * direction[k], piece.low, piece.high);
      change[k] = u - c.u;
      gain += dual_of(loss_, c.costs, u) - dual_of(loss_, c.costs, c.u);
      rows_.axpy(free[k], change[k], score_changes.data());
    }
    for (std::size_t k = 0; k < free.size(); ++k) {
      const auto i = static_cast<std::size_t>(free[k]);
      gain -= change[k] * (state_.weights[i] - target(free[k]) + 0.5 * score_changes[i]);
    }
    if (!(gain > 0.0)) continue;
    for (std::size_t k = 0; k < free.size(); ++k) {
      Coordinate& c = coordinate(free[k]);
      const Piece piece = piece_at(loss_, c.costs, c.u);
      c.u = std::clamp(c.u + length * direction[k], piece.low, piece.high);
    }
    for (std::size_t i = 0; i < score_changes.size(); ++i) state_.weights[i] += score_changes[i];
    state_.dual_objective += gain;
    state_.steps += static_cast<std::int64_t>(free.size());
    return true;
  }
  return false;
}

}  // namespace unkernel::solve
