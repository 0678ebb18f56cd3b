#include "unkernel/cutplane/score_grid.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "unkernel/base/cpu.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel::cutplane {
namespace {

// Fixed, so that sums do not depend on the number of threads.
constexpr std::int64_t rows_per_piece = 1 << 18;
constexpr std::int64_t most_levels = 1000;    // 2^levels is a double
constexpr std::int64_t most_cells = 1 << 20;  // 2 cells * levels is an int32

// Rows are placed in small batches, by loops without table lookups, which compilers vectorise.
constexpr std::size_t rows_at_once = 256;

struct GridPlaces {
  std::array<std::int32_t, rows_at_once> edge;  // the edge below the score
  std::array<double, rows_at_once> share;       // position between this edge and the next: 0 .. 1
  std::array<double, rows_at_once> change;      // proposed - current
  std::int32_t outside;
};

// The parameters that place scores on a grid.
struct Placing {
  explicit Placing(const ScoreGrid& grid)
      : centre(grid.centre),
        scale(1.0 / grid.width),
        cells(static_cast<double>(grid.cells)),
        end(std::ldexp(1.0, static_cast<int>(grid.levels))),
        middle(static_cast<double>(grid.cells * grid.levels)),
        last(static_cast<std::int32_t>(grid.edges()) - 2) {}

  // Reads the place off the bits of the distance: its exponent is the level, and its fraction the share of
  // the level's cells.
  double place_of(double distance) const {
    constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
    constexpr double two_to_52 = 4503599627370496.0;
    const auto bits = std::bit_cast<std::uint64_t>(distance);
    const auto rest = std::bit_cast<double>((bits & fraction) | std::bit_cast<std::uint64_t>(1.0)) - 1.0;
    const auto exponent = std::bit_cast<double>((bits >> 52) | std::bit_cast<std::uint64_t>(two_to_52));
    return cells * ((exponent - (two_to_52 + 1023.0)) + rest);
  }

  double centre;
  double scale;
  double cells;
  double end;
  double middle;
  std::int32_t last;
};

// Places the rows [begin, begin + count) on the grid.
UNKERNEL_CLONES void place_rows(const Placing& grid, const ScoreLine& line, std::size_t begin,
                                std::size_t count, GridPlaces& places) {
  const double* const current = line.current.data() + begin;
  const double* const proposed = line.proposed.data() + begin;
  std::int32_t outside = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const double change = proposed[k] - current[k];
    const double from_centre = current[k] + line.step * change - grid.centre;
    const double distance = 1.0 + std::abs(from_centre) * grid.scale;  // level l is [2^l, 2^(l+1))
    const bool inside = distance <= grid.end;                          // false for NaN, too
    const double place =
        grid.middle + std::copysign(grid.place_of(inside ? distance : grid.end), from_centre);
    const std::int32_t edge = std::min(static_cast<std::int32_t>(place), grid.last);
    outside += !inside;
    places.edge[k] = edge;
    places.share[k] = place - static_cast<double>(edge);
    places.change[k] = change;
  }
  places.outside = outside;
}

// Adds rows with these ranks and weights to a table of pairs: the weight, and the change.
UNKERNEL_CLONES void add_rows(const std::int32_t* ranks, const double* weights, const GridPlaces& places,
                              std::size_t count, std::size_t edges, double* table) {
  for (std::size_t k = 0; k < count; ++k) {
    double* const cell =
        table + 2 * (static_cast<std::size_t>(ranks[k]) * edges + static_cast<std::size_t>(places.edge[k]));
    const double upper = weights[k] * places.share[k];
    const double lower = weights[k] - upper;
    cell[0] += lower;
    cell[1] += lower * places.change[k];
    cell[2] += upper;
    cell[3] += upper * places.change[k];
  }
}

std::int64_t grid_pieces(std::size_t rows) {
  return (static_cast<std::int64_t>(rows) + rows_per_piece - 1) / rows_per_piece;
}

}  // namespace

RowsOnGrid::RowsOnGrid(std::vector<std::int32_t> ranks, std::int32_t rank_count, std::vector<double> weights)
    : ranks_(std::move(ranks)),
      rank_count_(static_cast<std::size_t>(rank_count)),
      weights_(std::move(weights)) {
  const auto is_valid_rank = [&](std::int32_t rank) { return rank >= 0 && rank < rank_count; };
  if (!std::ranges::all_of(ranks_, is_valid_rank))
    throw std::invalid_argument("a rank is outside of its range");
  if (weights_.empty()) weights_.assign(ranks_.size(), 1.0);
  if (weights_.size() != ranks_.size()) throw std::invalid_argument("there must be one weight per rank");
}

void RowsOnGrid::check(const ScoreLine& line, const ScoreGrid& grid) const {
  if (line.current.size() != size() || line.proposed.size() != size())
    throw std::invalid_argument("there must be one score per rank");
  if (!(grid.width > 0.0) || grid.cells < 1 || grid.levels < 1 || grid.levels > most_levels ||
      grid.cells > most_cells)
    throw std::invalid_argument("a grid of scores has a width, cells and levels");
}

GridCounts RowsOnGrid::count(const ScoreLine& line, const ScoreGrid& grid, int threads) const {
  check(line, grid);
  const Placing placing(grid);
  const std::size_t edges = grid.edges();
  struct Piece {
    std::int64_t outside = 0;
    std::vector<double> table;  // of pairs: the weight, and the change
  };
  std::vector<Piece> pieces(static_cast<std::size_t>(grid_pieces(size())));
  parallel_for(threads, static_cast<std::int64_t>(pieces.size()), [&](std::int64_t number) {
    Piece& piece = pieces[static_cast<std::size_t>(number)];
    piece.table.assign(2 * rank_count_ * edges, 0.0);
    const auto begin = static_cast<std::size_t>(number * rows_per_piece);
    const std::size_t end = std::min(begin + static_cast<std::size_t>(rows_per_piece), size());
    GridPlaces places;
    for (std::size_t first = begin; first < end; first += rows_at_once) {
      const std::size_t count = std::min(rows_at_once, end - first);
      place_rows(placing, line, first, count, places);
      piece.outside += places.outside;
      add_rows(ranks_.data() + first, weights_.data() + first, places, count, edges, piece.table.data());
    }
  });
  GridCounts result{0, std::vector<double>(rank_count_ * edges), std::vector<double>(rank_count_ * edges)};
  for (const Piece& piece : pieces) {
    result.outside += piece.outside;
    for (std::size_t k = 0; k < result.weights.size(); ++k) {
      result.weights[k] += piece.table[2 * k];
      result.changes[k] += piece.table[2 * k + 1];
    }
  }
  return result;
}

std::vector<double> RowsOnGrid::interpolate(const ScoreLine& line, const ScoreGrid& grid,
                                            std::span<const double> table, int threads) const {
  check(line, grid);
  const std::size_t edges = grid.edges();
  if (table.size() != rank_count_ * edges) throw std::invalid_argument("the table is not of this grid");
  const Placing placing(grid);
  std::vector<double> result(size());
  parallel_ranges(threads, static_cast<std::int64_t>(size()), rows_per_piece,
                  [&](std::int64_t begin, std::int64_t end) {
                    GridPlaces places;
                    for (auto first = static_cast<std::size_t>(begin); first < static_cast<std::size_t>(end);
                         first += rows_at_once) {
                      const std::size_t count = std::min(rows_at_once, static_cast<std::size_t>(end) - first);
                      place_rows(placing, line, first, count, places);
                      for (std::size_t k = 0; k < count; ++k) {
                        const double* const corner = table.data() + cell_of(first + k, places.edge[k], edges);
                        const double upper = weights_[first + k] * places.share[k];
                        result[first + k] = (weights_[first + k] - upper) * corner[0] + upper * corner[1];
                      }
                    }
                  });
  return result;
}

}  // namespace unkernel::cutplane
