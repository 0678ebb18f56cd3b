// Counts rows on a grid of scores. Workers send these counts instead of all scores.
//
// Grid   Edges q = -levels * cells .. levels * cells, at centre + sign(q) width (2^l (1 + j / cells) - 1)
//        where |q| = l * cells + j. So cells of level l are 2^l width / cells wide, and few levels cover
//        any range of scores.
// Rows   A row between two edges counts at both edges, with shares that add up to 1 and a weighted mean equal
//        to the row's score. If shares are probabilities of the edges, then by Jensen's inequality the risk
//        of pairs on the edges is an upper bound of the risk. A cut that takes each pair with the probability
//        that it is misordered on the edges is a valid cut; its coefficients are interpolated between the
//        coefficients of the edges.
// Error  Only pairs whose cells are a margin apart are overestimated, by a twelfth of a cell on average if
//        rows are evenly spread within cells. The error falls with the square of the width of cells.
// Costs  O(rows + ranks x edges); 16 bytes per rank and edge, for each piece of 2^18 rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::cutplane {

struct ScoreGrid {
  double centre;
  double width;  // of level 0 on each side of the centre
  std::int64_t cells;
  std::int64_t levels;

  std::size_t edges() const { return static_cast<std::size_t>(2 * cells * levels + 1); }
};

// The point current + step (proposed - current).
struct ScoreLine {
  std::span<const double> current;
  std::span<const double> proposed;
  double step;
};

// Tables of ranks x edges.
struct GridCounts {
  std::int64_t outside = 0;     // rows beyond the last edges, which the tables count at these edges
  std::vector<double> weights;  // of the rows
  std::vector<double> changes;  // weight times proposed - current
};

class RowsOnGrid {
 public:
  // Ranks are 0 .. rank_count - 1; empty weights are ones. Throws std::invalid_argument if sizes or ranks are
  // inconsistent.
  RowsOnGrid(std::vector<std::int32_t> ranks, std::int32_t rank_count, std::vector<double> weights);

  std::size_t size() const { return ranks_.size(); }
  // Counts the rows at their scores on the line, and the changes of their scores along the line.
  GridCounts count(const ScoreLine& line, const ScoreGrid& grid, int threads) const;
  // Interpolates a table of ranks x edges at the score of each row, and multiplies by the row's weight.
  std::vector<double> interpolate(const ScoreLine& line, const ScoreGrid& grid, std::span<const double> table,
                                  int threads) const;

 private:
  void check(const ScoreLine& line, const ScoreGrid& grid) const;
  std::size_t cell_of(std::size_t row, std::int32_t edge, std::size_t edges) const {
    return static_cast<std::size_t>(ranks_[row]) * edges + static_cast<std::size_t>(edge);
  }

  std::vector<std::int32_t> ranks_;
  std::size_t rank_count_;
  std::vector<double> weights_;
};

}  // namespace unkernel::cutplane
