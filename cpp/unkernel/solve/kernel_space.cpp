// Dual coordinate descent: finishes the last moving rows on their kernel matrix.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "unkernel/solve/dual_coordinate_descent.hpp"
#include "unkernel/solve/gram_rows.hpp"

namespace unkernel::solve {

template class PassesOver<GramRows>;

bool DualCoordinateDescent::is_kernel_space_worthwhile(std::size_t moving) const {
  constexpr double largest_gram = 4096;  // rows; 128 MiB
  constexpr double saved_epochs = 16;    // kernel space saves at least this many epochs
  const auto rows = static_cast<double>(moving);
  if (rows_.is_gram()) {  // on a kernel matrix, a step takes time in proportion to the number of rows
    constexpr int most_failures = 3;
    return 4.0 * rows <= static_cast<double>(rows_.size()) && kernel_space_failures_ < most_failures &&
           fits_into_memory(3.0 * sizeof(double) * rows * rows);
  }
  return rows <= largest_gram && fits_into_memory(3.0 * sizeof(double) * rows * rows) &&
         rows <= rows_.mean_map_size() &&
         rows * rows_.mean_row_size() <= saved_epochs * rows_.mean_map_size();
}

// Returns the cost, in multiplications, of computing the kernel of all pairs of moving rows and then moving
// the free rows together a few times. Infinite if the matrix would be too large.
double DualCoordinateDescent::kernel_space_cost(std::span<const std::int32_t> moving) const {
  constexpr double largest_gram = 4096;
  constexpr double rounds = 10.0;
  const auto rows = static_cast<double>(moving.size());
  if (rows > largest_gram || !fits_into_memory(3.0 * sizeof(double) * rows * rows)) {
    return std::numeric_limits<double>::infinity();
  }
  const double factorisation = rows * rows * rows / (3.0 * block_speed);
  const double cost =
      0.5 * rows * rows * rows_.mean_row_size() + rounds * (factorisation + 2.0 * rows * rows);
  return cost * std::pow(4.0, kernel_space_failures_);
}

// Returns the rows that moved at their last visit. All other rows are at a corner of g_i.
std::vector<std::int32_t> DualCoordinateDescent::moving_rows() const {
  std::vector<std::int32_t> moving;
  for (const std::int32_t i : active_) {
    if (state_.coordinates[static_cast<std::size_t>(i)].nap == 0) moving.push_back(i);
  }
  return moving;
}

// Finishes in kernel space if that is cheaper than sweeps. Returns whether kernel space was used.
bool DualCoordinateDescent::try_kernel_space() {
  if (!allows(Finish::kernel_space) || !rows_.has_kernel()) return false;
  if (state_.epoch < next_kernel_finish_) return false;
  const std::vector<std::int32_t> moving = moving_rows();
  const bool is_in_budget = kernel_space_budget_ > 0.0 && kernel_space_cost(moving) < kernel_space_budget_;
  if (!is_in_budget && !is_kernel_space_worthwhile(moving.size())) return false;
  constexpr double min_progress = 0.8;  // factor by which kernel space must lower the gap
  const bool has_progress = state_.estimated_gap <= min_progress * gap_before_kernel_space_;
  if ((is_in_budget || rows_.is_gram()) && !has_progress) {
    // Wait until cheapest_finish compares the methods again.
    ++kernel_space_failures_;
    kernel_space_budget_ = 0.0;
    gap_before_kernel_space_ = std::numeric_limits<double>::infinity();
    return false;
  }
  finish_in_kernel_space(moving);
  return true;
}

void DualCoordinateDescent::finish_in_kernel_space(std::span<const std::int32_t> moving) {
  gap_before_kernel_space_ = state_.estimated_gap;
  record_finish(Finish::kernel_space,
                3.0 * sizeof(double) * static_cast<double>(moving.size() * moving.size()));
  Coordinates part;
  std::vector<double> scores;
  for (const std::int32_t i : moving) {
    part.push_back(coordinate(i));
    scores.push_back(rows_.dot(i, state_.weights.data()));
  }
  const GramRows gram(rows_.gram(moving, options_.threads), moving.size());
  const PassesOver<GramRows> passes(gram);
  constexpr std::int64_t epochs = 1000;  // one epoch costs less than a few visits to mapped rows
  const DescentOptions options{options_.tolerance, epochs, state_.random.next(), 1, 0.0, Finish::sweeps};
  DualCoordinateDescent solver(passes, loss_, std::move(part), scores, options, state_.monitor,
                               select_targets(moving));
  constexpr double share_of_gap = 0.3;  // that the moving rows may keep
  solver.run_part(share_of_gap * options_.tolerance * std::max(state_.dual_objective, 0.0));
  std::vector<double> solution;
  for (const Coordinate& c : solver.coordinates()) solution.push_back(c.u);
  adopt_solution(moving, solution);
  next_kernel_finish_ = state_.epoch + 3;  // first sweep the rows that the certifying pass wakes
}

void DualCoordinateDescent::adopt_solution(std::span<const std::int32_t> moving,
                                           std::span<const double> solution) {
  double length = 0.0;
  for (std::size_t k = 0; k < moving.size(); ++k) {
    Coordinate& c = coordinate(moving[k]);
    const double u = std::clamp(solution[k], low_of(loss_, c.costs), high_of(loss_, c.costs));
    const double change = u - c.u;
    if (change == 0.0) continue;
    c.u = u;
    rows_.axpy(moving[k], change, state_.weights.data());
    length += std::abs(change) * std::sqrt(c.curvature);
  }
  largest_joint_change_ = std::max(largest_joint_change_, length);
}

}  // namespace unkernel::solve
