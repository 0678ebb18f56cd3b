// Ordinal regression: penalises pairs of rows that are not ordered by a sufficient margin.
//
//   R(s) = scale * sum over pairs (i, j), y_i > y_j, in the same group:  v_ij max(0, 1 - (s_i - s_j))
//   v_ij = weight_i weight_j [pair_weights(y_i, y_j)] [(gain_i - gain_j)(discount_i - discount_j)]
//   scale = sum weight_i / sum v_ij
//
// With scale * C = C_paper / m this is OP5 of Joachims (2006), and two ranks without groups optimise the area
// under the ROC curve.
//
// Algorithm 2 of the paper sweeps over the sorted scores once per rank. Here one sweep serves all ranks: a
// row enters a Fenwick tree over the ranks when the sweep is a margin ahead of the row, and a prefix sum
// counts the ordered pairs. O(n log R) after sorting, for any number R of ranks; O(n R) if classes of pairs
// have weights, where R counts only the ranks of the group if the weights are products of differences. In
// large groups, bins of scores replace most of the sorting (binned_pairs.hpp) if bins are accurate enough.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/cutplane/oracle.hpp"

namespace unkernel::cutplane {

struct Ranking {
  std::span<const std::int32_t> ranks;   // 0 .. R-1, one per row
  std::span<const std::int32_t> groups;  // one per row; empty for a single group
  std::span<const double> weights;       // one per row; empty for ones
  std::span<const double> pair_weights;  // R x R, for (higher, lower); empty for ones
  std::int32_t rank_count;
  // One per row, equal for all rows of a group with the same rank. Each pair is also weighted by (gain_i -
  // gain_j)(discount_i - discount_j). Gains and discounts are empty if all these factors are 1, and must be
  // empty if pair_weights is not.
  std::span<const double> gains;
  std::span<const double> discounts;
};

// `accuracy` is the relative amount by which the risk may be overestimated; 0 for an exact risk. Throws
// std::invalid_argument if all pairs have weight 0.
std::unique_ptr<Oracle> ordinal_oracle(const Ranking& ranking, double accuracy);

// The total weight of all pairs, and the weight of pairs that `scores` orders correctly; ties count half.
struct PairCount {
  double pairs = 0.0;
  double ordered = 0.0;
};
PairCount count_pairs(const Ranking& ranking, std::span<const double> scores);

}  // namespace unkernel::cutplane
