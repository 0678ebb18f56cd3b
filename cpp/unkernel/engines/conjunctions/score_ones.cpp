#include <algorithm>
#include <bit>

#include "unkernel/engines/conjunctions/score_rows.hpp"

namespace unkernel::engines {
namespace {

// Adds the sums of the grouped features, and returns how many of the row's head ranks are grouped. If a state
// is not stored, adds nothing and returns 0.
template <std::size_t Width>
std::size_t add_grouped(const ScoringZones& zones, const BinaryRow& row, Sums<Width>& sums) {
  RowStates states;
  if (!zones.grouped.find(row.bits(), states)) return 0;
  zones.grouped.add(states, sums);
  const Rank* end = row.head() + row.head_size();
  return static_cast<std::size_t>(std::lower_bound(row.head(), end, zones.tables.grouped()) - row.head());
}

// Lists all ranks of the row. `from` is the position of the next owner in the tail.
TailRanks list_tail(const ScoringZones& zones, std::size_t from, ConjunctionScratch& scratch) {
  const BinaryRow& row = scratch.binary;
  const std::size_t fused = zones.tables.fused;
  const std::size_t max_ranks = fused + row.head_size() + row.tail_size();
  if (scratch.tail_ranks.size() < max_ranks) scratch.tail_ranks.resize(2 * max_ranks);
  Rank* all = scratch.tail_ranks.data();
  std::size_t count = 0;
  for (std::uint32_t state = row.state(); state != 0; state &= state - 1)
    all[count++] = static_cast<Rank>(std::countr_zero(state));
  for (std::size_t k = 0; k < row.head_size(); ++k) all[count++] = row.head()[k] + static_cast<Rank>(fused);
  const std::size_t first = count;
  for (std::size_t k = 0; k < row.tail_size(); ++k) all[count++] = row.tail()[k];
  const auto rare =
      static_cast<std::size_t>(std::lower_bound(all + first, all + count, zones.tables.rare) - all);
  return {{all, count}, first + from, rare};
}

void compute_remaining(const ScoringZones& zones, const TailRanks& tail, ConjunctionScratch& scratch) {
  scratch.first_remaining = tail.next;
  scratch.remaining.compute(
      tail.ranks.size() - tail.next, zones.scores(),
      [&](std::size_t i) { return scratch.bounds->of(tail.ranks[tail.next + i] - zones.tables.head); },
      // A row shares at most the ranks before a rare owner with a support vector of that owner.
      [&](std::size_t i) { return tail.next + i < tail.rare ? 1.0 : zones.steps.largest(tail.next + i); });
}

// Returns whether only the decision matters, and the owners from this position on cannot change it.
template <std::size_t Width>
bool is_done(const ScoringZones& zones, std::size_t position, ConjunctionScratch& scratch,
             const Sums<Width>& sums) {
  if (scratch.bounds == nullptr) return false;
  scratch.partial_scores.assign(zones.tables.intercept.begin(), zones.tables.intercept.end());
  sums.add_to(scratch.partial_scores.data());
  return is_decided(std::span<const double>(scratch.partial_scores),
                    scratch.remaining.from(position - scratch.first_remaining));
}

// Adds the owners in the trie, and rare owners whose postings are lists of items.
template <std::size_t Width>
void add_keyed_owners(const ScoringZones& zones, TailRanks& tail, ConjunctionScratch& scratch,
                      Sums<Width>& sums) {
  const std::size_t end = zones.tables.has_records() ? tail.rare : tail.ranks.size();
  if (tail.next >= end) return;
  const std::span<const Rank> ranks = tail.ranks;
  double* values = scratch.value_of_rank.data();
  for (const Rank rank : ranks) values[rank] = 1.0;
  for (; tail.next < end && !is_done(zones, tail.next, scratch, sums); ++tail.next) {
    const Rank owner = ranks[tail.next];
    zones.with_keys([&](const auto& keyed) {
      if (tail.next < tail.rare) {
        keyed.trie.add_owner(owner - zones.tables.head, ranks.first(tail.next), values, sums);
      } else {
        keyed.items.add_owner(owner - zones.tables.rare, zones.steps, values, sums);
      }
    });
  }
  for (const Rank rank : ranks) values[rank] = 0.0;
}

template <std::size_t Width>
void add_tail(const ScoringZones& zones, std::size_t from, ConjunctionScratch& scratch, Sums<Width>& sums) {
  TailRanks tail = list_tail(zones, from, scratch);
  if (scratch.bounds != nullptr) compute_remaining(zones, tail, scratch);
  add_keyed_owners(zones, tail, scratch, sums);
  const bool has_records_left =
      zones.tables.has_records() && tail.next == tail.rare && tail.rare < tail.ranks.size();
  if (!has_records_left) return;
  zones.records.add_owners(
      tail, zones.steps, [&](std::size_t position) { return is_done(zones, position, scratch, sums); },
      scratch, sums);
}

template <std::size_t Width>
void score_ones(const ScoringZones& zones, const SummedBeginning& beginning, ConjunctionScratch& scratch,
                double* out) {
  const BinaryRow& row = scratch.binary;
  if (zones.tables.has_records()) zones.records.prefetch(row);
  Sums<Width> sums(zones.scores());
  std::size_t first = beginning.length;  // position of the first owner that has not been summed
  if (beginning.sums != nullptr) {
    sums.add(beginning.sums);
  } else if (zones.tables.grouped() > 0) {
    first = add_grouped(zones, row, sums);
  }
  // At position 0, the head also adds the conjunctions of fused ranks alone.
  if (first < row.head_size() || first == 0) {
    if constexpr (Width == 1) {
      const double sum = zones.head.sum(row, first, scratch.dense);
      sums.add(&sum);
    } else {
      zones.head.add(row, first, sums);
    }
  }
  const std::size_t in_tail = first > row.head_size() ? first - row.head_size() : 0;
  if (row.tail_size() > in_tail) add_tail(zones, in_tail, scratch, sums);
  sums.add_to(out);
}

}  // namespace

ScoreOnes score_ones_for(std::size_t scores) {
  switch (scores) {
    case 1: return score_ones<1>;
    case 2: return score_ones<2>;
    case 3: return score_ones<3>;
    case 4: return score_ones<4>;
    case 6: return score_ones<6>;
    default: return score_ones<0>;
  }
}

}  // namespace unkernel::engines
