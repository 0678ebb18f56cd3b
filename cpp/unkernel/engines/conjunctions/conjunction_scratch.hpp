// The buffers of one thread that scores rows with conjunction tables, reused for each row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/engines/conjunctions/dense_head.hpp"
#include "unkernel/engines/conjunctions/owner_bounds.hpp"
#include "unkernel/engines/conjunctions/remaining_bounds.hpp"
#include "unkernel/engines/row_ranks.hpp"

namespace unkernel::engines {

// The ascending ranks of a row of ones. Owners from position `next` on have not been added to the scores yet.
struct TailRanks {
  std::span<const Rank> ranks;
  std::size_t next;  // position in `ranks`
  std::size_t rare;  // position of the first rare rank
};

struct ConjunctionScratch {
  BinaryRow binary;
  ValuedRow valued;
  DenseScratch dense;
  std::vector<double> value_of_rank;  // the row's value of each rank, 0 elsewhere
  std::vector<Rank> tail_ranks;       // storage of TailRanks
  // By support vector: how many of the row's rare ranks it contains.
  std::vector<std::uint16_t> rare_overlaps;
  std::vector<double> rare_products;    // by support vector: product with the row over rare ranks
  const OwnerBounds* bounds = nullptr;  // null unless scoring may stop once the decision is certain
  RemainingBounds<double> remaining;    // bounds of the owners in the tail
  std::size_t first_remaining = 0;      // position in the tail of the first owner in `remaining`
  std::vector<double> partial_scores;
};

}  // namespace unkernel::engines
