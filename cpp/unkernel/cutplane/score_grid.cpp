#include "unkernel/cutplane/score_grid.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "unkernel/base/parallel.hpp"

namespace unkernel::cutplane {
namespace {

constexpr std::int64_t rows_a_piece = 1 << 18;  // the same for any number of threads, and so are the sums
constexpr std::int64_t most_levels = 1000;      // 2^levels is a double

struct GridPlace {
  std::size_t edge;  // the lower one
  double share;      // of the way to the next
  bool outside;
};

class Placing {
 public:
  explicit Placing(const ScoreGrid& grid)
      : centre_(grid.centre),
        scale_(1.0 / grid.width),
        cells_(static_cast<double>(grid.cells)),
        end_(std::ldexp(1.0, static_cast<int>(grid.levels))),
        middle_(static_cast<double>(grid.cells * grid.levels)),
        last_(grid.edges() - 2) {}

  GridPlace operator()(double score) const {
    const double from_centre = score - centre_;
    double distance = 1.0 + std::abs(from_centre) * scale_;  // level l is [2^l, 2^(l+1))
    const bool inside = distance <= end_;                    // false for NaN, too
    if (!inside) distance = end_;
    constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
    const auto bits = std::bit_cast<std::uint64_t>(distance);
    const auto one_and_rest = std::bit_cast<double>((bits & fraction) | std::bit_cast<std::uint64_t>(1.0));
    const double level = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
    const double place = middle_ + std::copysign(cells_ * (level + (one_and_rest - 1.0)), from_centre);
    const std::size_t edge = std::min(static_cast<std::size_t>(place), last_);
    return {edge, place - static_cast<double>(edge), !inside};
  }

 private:
  double centre_;
  double scale_;
  double cells_;
  double end_;
  double middle_;
  std::size_t last_;
};

std::int64_t grid_pieces(std::size_t rows) {
  return (static_cast<std::int64_t>(rows) + rows_a_piece - 1) / rows_a_piece;
}

}  // namespace

RowsOnGrid::RowsOnGrid(std::vector<std::int32_t> ranks, std::int32_t rank_count, std::vector<double> weights)
    : ranks_(std::move(ranks)),
      rank_count_(static_cast<std::size_t>(rank_count)),
      weights_(std::move(weights)) {
  const auto fits = [&](std::int32_t rank) { return rank >= 0 && rank < rank_count; };
  if (!std::ranges::all_of(ranks_, fits)) throw std::invalid_argument("a rank is outside of its range");
  if (weights_.empty()) weights_.assign(ranks_.size(), 1.0);
  if (weights_.size() != ranks_.size()) throw std::invalid_argument("there must be one weight per rank");
}

void RowsOnGrid::check(const ScoreLine& line, const ScoreGrid& grid) const {
  if (line.here.size() != size() || line.there.size() != size())
    throw std::invalid_argument("there must be one score per rank");
  if (!(grid.width > 0.0) || grid.cells < 1 || grid.levels < 1 || grid.levels > most_levels)
    throw std::invalid_argument("a grid of scores has a width, cells and levels");
}

GridCounts RowsOnGrid::count(const ScoreLine& line, const ScoreGrid& grid, int threads) const {
  check(line, grid);
  const Placing place_of(grid);
  const std::size_t edges = grid.edges();
  struct Piece {
    std::int64_t outside = 0;
    std::vector<double> table;  // of pairs: the weight, and the change
  };
  std::vector<Piece> pieces(static_cast<std::size_t>(grid_pieces(size())));
  parallel_for(threads, static_cast<std::int64_t>(pieces.size()), [&](std::int64_t number) {
    Piece& piece = pieces[static_cast<std::size_t>(number)];
    piece.table.assign(2 * rank_count_ * edges, 0.0);
    const auto begin = static_cast<std::size_t>(number * rows_a_piece);
    const std::size_t end = std::min(begin + static_cast<std::size_t>(rows_a_piece), size());
    for (std::size_t i = begin; i < end; ++i) {
      const double change = line.there[i] - line.here[i];
      const GridPlace place = place_of(line.here[i] + line.step * change);
      piece.outside += place.outside;
      double* const cell =
          piece.table.data() + 2 * (static_cast<std::size_t>(ranks_[i]) * edges + place.edge);
      const double upper = weights_[i] * place.share;
      const double lower = weights_[i] - upper;
      cell[0] += lower;
      cell[1] += lower * change;
      cell[2] += upper;
      cell[3] += upper * change;
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
  const Placing place_of(grid);
  std::vector<double> result(size());
  parallel_ranges(
      threads, static_cast<std::int64_t>(size()), rows_a_piece, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const double change = line.there[i] - line.here[i];
          const GridPlace place = place_of(line.here[i] + line.step * change);
          const double* const at = table.data() + static_cast<std::size_t>(ranks_[i]) * edges + place.edge;
          const double upper = weights_[i] * place.share;
          result[i] = (weights_[i] - upper) * at[0] + upper * at[1];
        }
      });
  return result;
}

}  // namespace unkernel::cutplane
