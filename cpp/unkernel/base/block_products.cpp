#include "unkernel/base/block_products.hpp"

#include <algorithm>
#include <cstring>

#include "unkernel/base/cpu.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel {
namespace {

constexpr std::size_t tile = Panel::tile;

// One number per vector of a block, in one wide register or several narrow ones. In plain loops, GCC would
// shuffle the numbers between registers.
using TileRow [[gnu::vector_size(tile * sizeof(double))]] = double;

[[gnu::always_inline]] inline TileRow row_at(const double* numbers) {
  TileRow row;
  std::memcpy(&row, numbers, sizeof row);
  return row;
}

// sums[r * tile + s] = product of vector r of the left block with vector s of the right block.
[[gnu::noinline]] UNKERNEL_CLONES void multiply_blocks(const double* left, const double* right,
                                                       std::size_t places, double* sums) {
  constexpr std::size_t half = tile / 2;  // number of rows of sums that stay in registers
  for (std::size_t first = 0; first < tile; first += half) {
    TileRow part[half] = {};
    for (std::size_t c = 0; c < places; ++c) {
      const TileRow numbers = row_at(right + c * tile);
      for (std::size_t r = 0; r < half; ++r) part[r] += left[c * tile + first + r] * numbers;
    }
    std::memcpy(sums + first * tile, part, sizeof part);
  }
}

void add_block(const Panel& panel, std::size_t left, std::size_t right, std::size_t vectors, double sign,
               const LowerTriangle& matrix) {
  double sums[tile * tile];
  multiply_blocks(panel.block(left), panel.block(right), panel.places(), sums);
  const std::size_t rows = std::min(tile, vectors - left * tile);
  const std::size_t columns = std::min(tile, vectors - right * tile);
  for (std::size_t r = 0; r < rows; ++r) {
    double* row = matrix.entries + (left * tile + r) * matrix.stride + right * tile;
    for (std::size_t s = 0; s < columns; ++s) row[s] += sign * sums[r * tile + s];
  }
}

}  // namespace

void Panel::clear() { std::ranges::fill(entries_, 0.0); }

void add_products(std::size_t vectors, std::size_t places, const FillPanel& fill, double sign, int threads,
                  const LowerTriangle& matrix) {
  Panel panel(vectors, std::min(places, Panel::most_places));
  const std::size_t blocks = (vectors + tile - 1) / tile;
  for (std::size_t begin = 0; begin < places; begin += panel.places()) {
    panel.clear();
    fill(panel, begin, std::min(begin + panel.places(), places));
    parallel_for(threads, static_cast<std::int64_t>(blocks), [&](std::int64_t b) {
      const auto left = static_cast<std::size_t>(b);
      for (std::size_t right = 0; right <= left; ++right) {
        add_block(panel, left, right, vectors, sign, matrix);
      }
    });
  }
}

}  // namespace unkernel
