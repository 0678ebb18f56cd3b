// What one thread writes while it scores rows with conjunction tables; kept from row to row.
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

// All ranks of a row of ones, in ascending order, and the owners among them that are still to be added.
struct TailRanks {
  std::span<const Rank> ranks;
  std::size_t next;  // position of the next owner
  std::size_t rare;  // position of the first rare rank
};

struct ConjunctionScratch {
  BinaryRow binary;
  ValuedRow valued;
  DenseScratch dense;
  std::vector<double> value_of_rank;    // the row's value of each rank, 0 elsewhere
  std::vector<Rank> tail_ranks;         // storage of TailRanks
  std::vector<std::uint16_t> rare_met;  // per support vector: at how many of the row's rare ranks it was met
  std::vector<double> rare_products;    // the same for rows of any values
  const OwnerBounds* bounds = nullptr;  // set where scoring may stop once the answer is decided
  RemainingBounds<double> remaining;    // of the owners of the tail
  std::size_t first_remaining = 0;      // the position in the tail of its first owner
  std::vector<double> so_far;
};

}  // namespace unkernel::engines
