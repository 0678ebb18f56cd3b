// Builds ConjunctionTables: assigns ranks to features, and adds the entries of the trie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/data/csr.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/feature_groups.hpp"

namespace unkernel::engines {

// The zones, and the column of each rank. Features with frequency 0 have no rank.
struct Zones {
  std::uint32_t fused = 0;
  std::uint32_t head = 0;
  std::uint32_t rare = 0;
  std::vector<std::int64_t> columns;  // rank -> column, an index into the frequencies
  FeatureGroups groups;               // of the first ranks, if any
};

// The size of the dense part: the number of fused ranks, and the number of all head ranks.
struct HeadPlan {
  std::uint32_t fused;
  std::uint64_t ranks;
  bool by_frequency;  // for a prefix trie; requires at most most_sorted_head ranks and no fused ranks
};

// Orders the features: first fused features; then the other head features, by column, so that the ranks of a
// row ascend; then all other features, by descending frequency. Features that occur fewer than `rare_below`
// times are rare.
Zones choose_zones(std::span<const std::uint32_t> frequencies, HeadPlan head, std::uint32_t rare_below);

// Groups the most frequent head ranks by their co-occurrence in these rows, and moves the groups to the
// front. Does nothing if the head is too large for groups, or if ranks are fused.
void group_zones(Zones& zones, std::span<const std::uint32_t> frequencies,
                 const data::CsrView<std::int32_t, double>& rows, const GroupPlan& plan, int degree);

// Returns groups of the features with ranks below `plan.features`.
FeatureGroups group_rows(const data::CsrView<std::int32_t, double>& rows, const Ranking& ranking,
                         const GroupPlan& plan, int degree);

// Stores the groups, and sums the head's weights by the states of the groups. The head must be filled.
void sum_states(FeatureGroups&& groups, int threads, ConjunctionArrays& arrays);

// Returns the largest number of head ranks whose dense tables take at most `bytes`.
std::uint64_t head_within(double bytes, const HeadIndex& index, std::uint32_t fused, std::size_t scores,
                          std::uint64_t used);

// Replaces the weights of U ∪ T at state T by their sums over all T ⊆ m at state m.
void sum_over_subsets(double* states, std::uint32_t fused, std::size_t scores);

// Writes the trie for a range of owners. Conjunctions must be added owner by owner, and within an owner in
// trie order: a prefix before its extensions.
class TrieWriter {
 public:
  TrieWriter(std::size_t scores, std::uint32_t first_owner)
      : scores_(scores), first_owner_(first_owner), next_owner_(first_owner) {}

  // Adds the conjunction of the descending `ranks`. A prefix that is never added gets the weight 0.
  void add(const Rank* ranks, std::size_t size, const double* weights);

  std::size_t bytes() const;

  // Concatenates the content of the writers in the order of their owners, and invalidates the writers.
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

// Completes the tables: narrows ranks, builds hash tables for owners with many partners, and adds empty
// arrays of postings if there are none.
void finish(ConjunctionArrays& arrays);

}  // namespace unkernel::engines
