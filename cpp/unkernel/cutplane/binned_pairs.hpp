// Counts misordered pairs among many rows by bins of their scores, without sorting all scores.
//
// Bins have width h = 1/k, so the margin 1 is k bins. A pair (i above j) counts as ordered iff
// bin_j <= bin_i - k. Any choice of misordered pairs gives a valid cut. This cut is nearly optimal, because
// only pairs that are exactly k bins apart are misjudged, each by less than h. The number of pairs that are
// exactly k bins apart gives an upper bound of the risk, so the gap is still certified.
//
// Rows are sorted by ascending rank, in blocks of consecutive ranks. Pairs of different blocks are counted
// with a table of cumulative counts, blocks x bins; pairs within a block of several ranks must be counted by
// sorting its rows. Costs O(n + blocks x bins). The table has 8 bytes per entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::cutplane {

struct RankBlock {
  std::size_t begin;  // rows
  std::size_t end;
  bool has_several_ranks;
};

// Divides rows with ascending ranks into blocks: one per rank if there are few ranks, else blocks of about
// equal size.
std::vector<RankBlock> rank_blocks(std::span<const std::int32_t> ascending_ranks);

class BinnedPairs {
 public:
  // Prepares the table for these scores, in the order of the blocks. Returns false if the table would be too
  // large, because the scores span too many bins.
  bool prepare(std::span<const RankBlock> blocks, std::span<const double> scores,
               std::span<const double> weights, std::int64_t bins_per_unit);

  // Computes c+ - c- of each row, for pairs of different blocks. Returns the sum of c+.
  double coefficients(std::span<const double> weights, std::span<double> result) const;

  // Returns an upper bound of the difference between the risk and the risk of the chosen pairs.
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
