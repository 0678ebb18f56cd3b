// Pairs of many rows counted by bins of their scores, without sorting them all.
//
// Scores are put into bins of width h = 1/k, so that the margin 1 is k bins. A pair (i above j) counts as in
// order iff bin_j <= bin_i - k. Whatever pairs are chosen make a valid cut, so this one is; and it is nearly
// the best: only pairs k bins apart are misjudged, by less than h each. Their number gives an upper bound of
// the risk, so the gap stays certified.
//
// Rows lie by ascending rank, in blocks of consecutive ranks. Pairs of different blocks are counted by a
// table of cumulative counts, blocks x bins; those inside a block of several ranks are left to whoever sorts
// its rows. Costs O(n + blocks x bins). The table has 8 bytes an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::cutplane {

struct RankBlock {
  std::size_t begin;  // rows
  std::size_t end;
  bool several_ranks;
};

// Blocks of rows with ascending ranks: a rank each where there are few, else about equally many rows.
std::vector<RankBlock> rank_blocks(std::span<const std::int32_t> ascending_ranks);

class BinnedPairs {
 public:
  // Prepares the table for these scores, which lie as the blocks say. False where it would be too large: the
  // scores are too far apart for bins of that width.
  bool prepare(std::span<const RankBlock> blocks, std::span<const double> scores,
               std::span<const double> weights, std::int64_t bins_per_unit);

  // c+ - c- of each row, for pairs of different blocks; gives the sum of c+.
  double coefficients(std::span<const double> weights, std::span<double> result) const;

  // By how much the risk may be larger than the chosen pairs say.
  double uncertainty() const { return uncertainty_; }

 private:
  double* row(std::size_t block) { return table_.data() + block * stride_; }
  const double* row(std::size_t block) const { return table_.data() + block * stride_; }
  void count(std::span<const double> scores, std::span<const double> weights);
  void accumulate();

  std::span<const RankBlock> blocks_;
  std::int64_t bins_per_unit_ = 0;
  std::size_t bins_ = 0;
  std::size_t stride_ = 0;
  double lowest_ = 0.0;
  double uncertainty_ = 0.0;
  std::vector<std::uint32_t> bin_;  // of each row
  // Row b + 1, column x + 1: the weight of rows in blocks 0 .. b and bins 0 .. x. Row and column 0 are zero.
  std::vector<double> table_;
};

}  // namespace unkernel::cutplane
