// Puts a prefix trie in front of an engine: finds the longest stored prefix of a row, and lets the engine add
// the remaining conjunctions. The engine's own routine for rows computes the sums of the trie's nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/shared_slot.hpp"
#include "unkernel/data/csr.hpp"
#include "unkernel/engines/conjunctions/prefix_trie.hpp"
#include "unkernel/engines/conjunctions/score_rows.hpp"

namespace unkernel::engines {

// Selects how to estimate the time that a node of a prefix trie saves.
enum class Saving {
  counted,  // by the conjunctions of its last feature with earlier ones: delta_d of Yoshinaga & Kitsuregawa
  entries,  // by the table entries that these conjunctions would read
};

class PrefixLayer {
 public:
  // `zones` must outlive the layer.
  PrefixLayer(const ScoringZones& zones, ScoreOnes score_ones) : zones_(zones), score_ones_(score_ones) {}

  // Returns the trie, or null if there is none.
  std::shared_ptr<const PrefixTrie> trie() const { return trie_.get(); }
  // Checks the trie (null: none), and uses it for all later rows.
  void set(std::shared_ptr<const PrefixTrie> trie);

  // Replaces the trie that a thread holds if there is a newer one.
  void refresh(std::shared_ptr<const PrefixTrie>& held) const { trie_.refresh(held); }
  void release_after_fork() { trie_.release_after_fork(); }

  // Returns the longest stored prefix of the row.
  SummedBeginning find(const PrefixTrie& trie, const BinaryRow& row) const {
    StoredPrefix prefix = longest_stored_prefix(trie, {0, 0}, {row.head(), row.head_size()});
    if (prefix.length == row.head_size())
      prefix = longest_stored_prefix(trie, prefix, {row.tail(), row.tail_size()});
    return {prefix.length, trie.sums.data() + prefix.node * zones_.scores()};
  }

  // See ConjunctionEngine for these two functions.
  PrefixTrie grow(const PrefixTrie* old, const data::CsrView<std::int32_t, double>& rows,
                  std::size_t most_nodes, Saving saving, int threads, Monitor& monitor) const;
  PrefixTrie prune(const PrefixTrie& old, std::size_t most_nodes, Saving saving) const;

 private:
  void check_rows_are_sequences() const;
  Sequences sequences(const data::CsrView<std::int32_t, double>& rows) const;
  PrefixCost cost_of(Saving saving) const;
  double entries_of(Rank owner, std::size_t depth) const;
  void fill_sums(const PrefixTrie* old, int threads, Monitor& monitor, PrefixTrie& trie) const;

  const ScoringZones& zones_;
  ScoreOnes score_ones_;
  SharedSlot<const PrefixTrie> trie_;
};

}  // namespace unkernel::engines
