// Dual coordinate descent: selects and orders the rows that an epoch visits.
#include <algorithm>
#include <limits>
#include <numeric>

#include "unkernel/solve/dual_coordinate_descent.hpp"

namespace unkernel::solve {

// Removes shrunk rows from active_ and sleeping rows from awake. The two lists stay in storage order.
void DualCoordinateDescent::collect_awake_rows() {
  std::size_t remaining = 0;
  state_.awake.clear();
  for (const std::int32_t i : active_) {
    const std::uint32_t asleep_until = coordinate(i).asleep_until;
    if (asleep_until == shrunk) continue;
    active_[remaining++] = i;
    if (asleep_until <= state_.epoch) state_.awake.push_back(i);
  }
  active_.resize(remaining);
}

// Shuffles blocks of a thousand neighbours and the rows in each block, if there are many rows: convergence is
// as good as with a full shuffle, and an epoch takes half the time, because neighbours share pages and cache
// lines.
void DualCoordinateDescent::shuffle_neighbours() {
  constexpr std::size_t neighbours = 1024;
  std::vector<std::int32_t>& awake = state_.awake;
  if (awake.size() <= 16 * neighbours) return state_.random.shuffle(std::span(awake));
  std::vector<std::size_t> blocks((awake.size() + neighbours - 1) / neighbours);
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  state_.random.shuffle(std::span(blocks));
  shuffled_.clear();
  for (const std::size_t block : blocks) {
    const std::size_t first = block * neighbours;
    const auto rows = std::span(awake).subspan(first, std::min(neighbours, awake.size() - first));
    state_.random.shuffle(rows);
    shuffled_.insert(shuffled_.end(), rows.begin(), rows.end());
  }
  awake.swap(shuffled_);
}

void DualCoordinateDescent::wake_all_rows() {
  active_.resize(state_.coordinates.size());
  std::iota(active_.begin(), active_.end(), 0);
  state_.shrink_beyond = std::numeric_limits<double>::infinity();
  for (Coordinate& c : state_.coordinates) c.asleep_until = 0;
}

void DualCoordinateDescent::reactivate_awake_rows() {
  active_.clear();
  for (std::size_t i = 0; i < state_.coordinates.size(); ++i) {
    if (state_.coordinates[i].asleep_until != shrunk) active_.push_back(static_cast<std::int32_t>(i));
  }
  state_.shrink_beyond = std::numeric_limits<double>::infinity();
}

}  // namespace unkernel::solve
