// Dual coordinate descent: selects and orders the rows that an epoch visits.
#include <algorithm>
#include <limits>
#include <numeric>

#include "unkernel/solve/dual_coordinate_descent.hpp"

namespace unkernel::solve {

// Removes shrunk rows from active_, and sleeping rows from the rows to visit. Both lists stay in storage
// order.
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
