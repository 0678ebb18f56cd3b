// Makes ConjunctionTables: which feature gets which rank, and the trie, entry by entry.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/data/csr.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/feature_groups.hpp"

namespace unkernel::engines {

// Ranks and zones for features that occur so often (0: not at all, and such have no rank).
struct Zones {
  std::uint32_t fused = 0;
  std::uint32_t head = 0;
  std::uint32_t rare = 0;
  std::vector<std::int64_t> columns;  // rank -> place in the given list
  FeatureGroups groups;               // of the first ranks, if any
};

// The dense part: how many ranks are fused into one feature, and how many there are with those.
struct HeadPlan {
  std::uint32_t fused;
  std::uint64_t ranks;
  bool by_frequency;  // for a prefix trie; at most most_sorted_head ranks then, and none fused
};

// The most frequent features come first: those to be fused; then the rest of the head, by column, so
// that rows stay in order; then the others by descending frequency. Features that occur less than
// `rare_below` times are rare.
Zones choose_zones(std::span<const std::uint32_t> frequencies, HeadPlan head, std::uint32_t rare_below);

// Groups the most frequent ranks of the head, by what occurs together in these rows; they come first then,
// group by group. Nothing is grouped where that would not fit, or where ranks are fused.
void group_zones(Zones& zones, std::span<const std::uint32_t> frequencies,
                 const data::CsrView<std::int32_t, double>& rows, const GroupPlan& plan, int degree);

// Groups of the features whose rank is below the plan's number.
FeatureGroups group_rows(const data::CsrView<std::int32_t, double>& rows, const Ranking& ranking,
                         const GroupPlan& plan, int degree);

// Takes the groups over and sums the head's weights up by their states. The head must be filled.
void sum_states(FeatureGroups&& groups, int threads, ConjunctionArrays& arrays);

// The most head ranks whose dense tables take at most `bytes`.
std::uint64_t head_within(double bytes, const HeadIndex& index, std::uint32_t fused, std::size_t scores,
                          std::uint64_t used);

// From the weights of U ∪ T at state T, for each U, to their sums over all T ⊆ m at each state m.
void sum_over_subsets(double* states, std::uint32_t fused, std::size_t scores);

// The part of the trie that a range of owners has. Conjunctions come owner by owner, each owner's in
// the order of its trie: what begins another stands before it.
class TrieWriter {
 public:
  TrieWriter(std::size_t scores, std::uint32_t first_owner)
      : scores_(scores), first_owner_(first_owner), next_owner_(first_owner) {}

  // `ranks` descend; `weights` are of that conjunction alone. Conjunctions that only lead to this one
  // get the weight 0.
  void add(const Rank* ranks, std::size_t size, const double* weights);

  std::size_t bytes() const;

  // Puts what the writers hold, in the order of their owners, into the arrays; no writer is used after.
  static void join(std::span<TrieWriter> writers, ConjunctionArrays& arrays);

 private:
  struct Level {
    LargeVector<std::uint32_t> keys;
    LargeVector<double> weights;
    LargeVector<std::uint32_t> begins;
  };

  void open_owner(Rank owner);
  void open(std::size_t depth, Rank key);

  std::size_t scores_;
  std::uint32_t first_owner_;
  std::uint32_t next_owner_;
  std::vector<double> owner_weights_;
  std::vector<std::uint32_t> owner_begins_;
  std::array<Level, most_degree - 1> levels_;
  std::array<Rank, most_degree> path_ = {};
  std::size_t path_size_ = 0;
};

// Last steps: ranks as narrow as they can be, hash tables for owners with many partners, and empty
// arrays of postings where there are none.
void finish(ConjunctionArrays& arrays);

}  // namespace unkernel::engines
