// Orders rows for one epoch of coordinate descent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "unkernel/base/random.hpp"

namespace unkernel::solve {

// Shuffles the rows. If there are many rows, shuffles blocks of a thousand neighbours, and the rows in each
// block: convergence is as good as with a full shuffle, and an epoch takes half the time, because neighbours
// share pages and cache lines.
inline void shuffle_neighbours(Random& random, std::vector<std::int32_t>& rows,
                               std::vector<std::int32_t>& buffer) {
  constexpr std::size_t neighbours = 1024;
  if (rows.size() <= 16 * neighbours) return random.shuffle(std::span(rows));
  std::vector<std::size_t> blocks((rows.size() + neighbours - 1) / neighbours);
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  random.shuffle(std::span(blocks));
  buffer.clear();
  for (const std::size_t block : blocks) {
    const std::size_t first = block * neighbours;
    const auto part = std::span(rows).subspan(first, std::min(neighbours, rows.size() - first));
    random.shuffle(part);
    buffer.insert(buffer.end(), part.begin(), part.end());
  }
  rows.swap(buffer);
}

}  // namespace unkernel::solve
