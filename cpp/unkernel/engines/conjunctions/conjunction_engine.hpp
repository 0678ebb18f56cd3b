// The engine for conjunction weights. It serves expanded, pruned, split and trained models, which differ only
// in the zones of their ConjunctionTables. The owner of a conjunction is its rarest feature.
//
// Query   head: one load per conjunction of the row's frequent features. Trie: one or two loads per pair with
//         a less frequent owner, then a pass over the partners of each pair that exists. Rare owners: a pass
//         over the items of the support vectors that contain them.
#pragma once

#include <memory>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/csr.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/prefix_layer.hpp"
#include "unkernel/engines/conjunctions/prefix_trie.hpp"
#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {

// An engine that can use a prefix trie, which stores the sums of frequent row prefixes.
class ConjunctionEngine : public Engine {
 public:
  // Returns the trie, or null if there is none.
  virtual std::shared_ptr<const PrefixTrie> trie() const = 0;
  // Checks the trie and uses it from the next row on. Rows that are being scored continue with the previous
  // trie.
  virtual void set_trie(std::shared_ptr<const PrefixTrie> trie) = 0;
  // Must be called in the child process after a fork, because other threads may have been using the trie.
  virtual void release_after_fork() = 0;
  // Returns a trie of at most `most_nodes` nodes with the prefixes of the old trie (null: none) and of these
  // rows. Copies the sums of old nodes; the routine that scores rows computes the sums of new nodes.
  virtual PrefixTrie grow(const PrefixTrie* old, const data::CsrView<std::int32_t, double>& rows,
                          std::size_t most_nodes, Saving saving, int threads, Monitor& monitor) const = 0;
  // Returns the trie, pruned to `most_nodes` nodes.
  virtual PrefixTrie prune(const PrefixTrie& old, std::size_t most_nodes, Saving saving) const = 0;
};

// Checks the tables, which must outlive the engine. Throws std::invalid_argument if they are invalid.
std::unique_ptr<ConjunctionEngine> make_conjunction_engine(const ConjunctionTables& tables);

}  // namespace unkernel::engines
