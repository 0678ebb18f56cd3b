#include "unkernel/engines/row_ranks.hpp"

#include <algorithm>

namespace unkernel::engines {

void BinaryRow::sort_many(Rank* ranks, std::size_t count) { std::sort(ranks, ranks + count); }

void ValuedRow::split_entries() {
  const auto by_rank = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(entries_.begin(), entries_.end(), by_rank))
    std::sort(entries_.begin(), entries_.end(), by_rank);
  ranks_.clear();
  values_.clear();
  for (const auto& [rank, value] : entries_) {
    ranks_.push_back(rank);
    values_.push_back(value);
  }
}

}  // namespace unkernel::engines
