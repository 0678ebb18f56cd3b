// Ordinal regression: pairs of rows that should be ordered and are not, far enough.
//
//   R(s) = scale * sum over pairs (i, j), y_i > y_j, in the same group:  v_ij max(0, 1 - (s_i - s_j))
//   v_ij = weight_i weight_j [pair_weights(y_i, y_j)],     scale = sum weight_i / sum v_ij
//
// With scale * C = C_paper / m this is OP5 of Joachims (2006), and two ranks without groups optimise the area
// under the ROC curve.
//
// Algorithm 2 of the paper walks the sorted scores once for every rank. Here one walk serves all ranks: rows
// enter a Fenwick tree over the ranks as the walk leaves them a margin behind, and a prefix sum counts those
// that are in order. O(n log R) after sorting, for any number R of ranks; O(n R) where classes of pairs have
// weights of their own. In large groups, bins of scores take the place of most of the sorting
// (binned_pairs.hpp) as long as that is accurate enough.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/cutplane/oracle.hpp"

namespace unkernel::cutplane {

struct Ranking {
  std::span<const std::int32_t> ranks;   // 0 .. R-1, one a row
  std::span<const std::int32_t> groups;  // one a row; empty for one group
  std::span<const double> weights;       // one a row; empty for ones
  std::span<const double> pair_weights;  // R x R, for (higher, lower); empty for ones
  std::int32_t rank_count;
};

// `accuracy`: by how much of itself the risk may be overestimated; 0 for never.
// Throws std::invalid_argument where no pair has any weight.
std::unique_ptr<Oracle> ordinal_oracle(const Ranking& ranking, double accuracy);

// Pairs by weight: how many there are, and how many of those `scores` has in the right order; ties count
// half.
struct PairCount {
  double pairs = 0.0;
  double ordered = 0.0;
};
PairCount count_pairs(const Ranking& ranking, std::span<const double> scores);

}  // namespace unkernel::cutplane
