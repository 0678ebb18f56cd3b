// Numbers conjunctions of states, with at most one state per group.
//
// All states are numbered consecutively, group by group. The sums of k states are stored in rows: one row per
// conjunction of k - 1 states in descending order of groups. The row has one entry for each state of the
// groups below the last group. The number of the k-th state is its position in the row, so all rows are read
// at the same few positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/engines/conjunctions/feature_groups.hpp"

namespace unkernel::engines {

class StateIndex {
 public:
  StateIndex() = default;

  StateIndex(std::span<const std::uint32_t> state_begins, int degree)
      : begins_(state_begins.begin(), state_begins.end()) {
    counts_.assign(static_cast<std::size_t>(degree), 0);
    counts_[0] = begins_.back();
    bases_.resize(static_cast<std::size_t>(degree));
    std::size_t paths = 1;
    for (std::size_t k = 1; k < bases_.size(); ++k) {
      paths *= groups();
      bases_[k].assign(paths, 0);
    }
    if (degree > 1) {
      for (std::size_t g = 0; g < groups(); ++g) number_rows(1, g, g, states(g));
    }
  }

  std::size_t groups() const { return begins_.size() - 1; }
  std::size_t states(std::size_t group) const { return begins_[group + 1] - begins_[group]; }
  std::size_t first(std::size_t group) const { return begins_[group]; }
  // Returns the number of sums of k + 1 states.
  std::size_t count(std::size_t k) const { return counts_[k]; }

  // Returns the row of sums that extend `size` states. `path` numbers the groups of these states: g1, or g1 *
  // groups + g2, and so on. `place` numbers the states: s1, or s1 * |g2| + s2, and so on, where |g2| is the
  // number of states of g2. `last` is the last group.
  std::size_t row(std::size_t size, std::size_t path, std::size_t place, std::size_t last) const {
    return bases_[size][path] + place * begins_[last];
  }

 private:
  void number_rows(std::size_t size, std::size_t path, std::size_t last, std::size_t places) {
    bases_[size][path] = counts_[size];
    counts_[size] += places * begins_[last];
    if (size + 1 == bases_.size()) return;
    for (std::size_t g = 0; g < last; ++g) number_rows(size + 1, path * groups() + g, g, places * states(g));
  }

  std::vector<std::uint32_t> begins_;
  std::vector<std::size_t> counts_;
  std::vector<std::vector<std::size_t>> bases_;  // by size and path
};

}  // namespace unkernel::engines
