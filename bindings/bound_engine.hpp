// Engines that Python objects own; parsers take such engines as arguments.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "csr_rows.hpp"
#include "tables.hpp"
#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {
class CachedEngine;
class ConjunctionEngine;
struct PrefixTrie;
}  // namespace unkernel::engines

namespace unkernel::bindings {

class RowScorer;

// An engine and the Python objects whose memory it reads.
class BoundEngine {
 public:
  // Caches the scores of at most `cached_rows` rows; 0 for no cache.
  BoundEngine(std::shared_ptr<engines::Engine> engine, nb::object tables, std::size_t cached_rows = 0);
  ~BoundEngine();

  const engines::Engine& engine() const;
  // Python's lock admits one caller at a time, so all callers share one scorer.
  RowScorer& one_row() { return *row_scorer_; }

  nb::ndarray<nb::numpy, double> score(const CsrRows& rows, int threads) const;
  // Returns scores for decisions: only the sign of a single score, or the index of the largest, is correct.
  nb::ndarray<nb::numpy, double> score_until_decided(const CsrRows& rows, int threads) const;

  // --- The cache of answers ---

  // Returns this engine behind a cache. After this call, the trie of this engine must not be changed, because
  // the cache would keep the scores of the old trie.
  std::unique_ptr<BoundEngine> add_cache(std::size_t rows) const;
  // Returns hits, misses, the capacity in rows and the number of stored rows, or None without a cache.
  nb::object cache_counts() const;
  void clear_cache();

  // --- The prefix trie ---

  // Returns the arrays of the trie by name, or None if there is no trie.
  nb::object trie() const;
  void set_trie(const Table& table);
  void drop_trie() { replace_trie(nullptr); }
  void release_after_fork();
  std::size_t trie_nodes() const;
  // Rows are scored with the old trie until the new trie is complete.
  void grow_trie(const CsrRows& csr_rows, std::size_t most_nodes, const std::string& saving, int threads);
  void prune_trie(std::size_t most_nodes, const std::string& saving);

 private:
  template <class Fill>
  nb::ndarray<nb::numpy, double> fill_scores(const CsrRows& rows, const Fill& fill) const;
  void replace_trie(std::shared_ptr<const engines::PrefixTrie> trie);
  engines::ConjunctionEngine& conjunctions() const;

  nb::object tables_;
  std::shared_ptr<engines::Engine> engine_;
  std::unique_ptr<engines::CachedEngine> cached_;  // null without a cache
  std::unique_ptr<RowScorer> row_scorer_;
};

// Returns the engines of a list, null for None.
std::vector<const engines::Engine*> list_engines(const nb::typed<nb::list, nb::any>& list);

}  // namespace unkernel::bindings
