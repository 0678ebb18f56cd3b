// The engine of conjunction weights: expanded, pruned, split and trained models alike (the zones of
// ConjunctionTables say which).
//
// Query   head: one load per conjunction of the row's frequent features. Trie: a load or two per pair
//         with a less frequent owner, then a pass over the partners of each pair that exists. Rare
//         owners: a pass over the items of the support vectors that have them.
#pragma once

#include <memory>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/csr.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/prefix_layer.hpp"
#include "unkernel/engines/conjunctions/prefix_trie.hpp"
#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {

// An engine that may remember what frequent beginnings of rows add up to.
class ConjunctionEngine : public Engine {
 public:
  // Null where there is none.
  virtual std::shared_ptr<const PrefixTrie> trie() const = 0;
  // Checks it, and uses it from the next row on. Rows that are being scored go on with the one they began
  // with.
  virtual void set_trie(std::shared_ptr<const PrefixTrie> trie) = 0;
  // The trie that this one becomes with more rows, at most so many nodes of it. Sums of nodes that were there
  // are kept; the others are computed with the routine that scores rows.
  virtual PrefixTrie grown(const PrefixTrie* old, const data::CsrView<std::int32_t, double>& rows,
                           std::size_t most_nodes, Saving saving, int threads, Monitor& monitor) const = 0;
  // With fewer nodes.
  virtual PrefixTrie pruned(const PrefixTrie& old, std::size_t most_nodes, Saving saving) const = 0;
};

// Checks the tables, which must outlive the engine; throws std::invalid_argument.
std::unique_ptr<ConjunctionEngine> make_conjunction_engine(const ConjunctionTables& tables);

}  // namespace unkernel::engines
