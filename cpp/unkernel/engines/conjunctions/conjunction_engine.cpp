#include "unkernel/engines/conjunctions/conjunction_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "unkernel/engines/conjunctions/owner_bounds.hpp"
#include "unkernel/engines/conjunctions/score_rows.hpp"

namespace unkernel::engines {
namespace {

struct EngineScratch : ConjunctionScratch {
  std::shared_ptr<const PrefixTrie> trie;  // the current trie when the rows arrived
};

// Scores rows with the zones of the tables, which conjunction_tables.hpp defines. If there is a prefix trie,
// looks up the sums of the longest stored prefix of a row.
class TableEngine final : public EngineOf<TableEngine, EngineScratch, ConjunctionEngine> {
 public:
  explicit TableEngine(const ConjunctionTables& tables)
      : zones_(tables),
        score_ones_(score_ones_for(tables.scores())),
        score_valued_(score_valued_for(tables.scores())),
        prefixes_(zones_, score_ones_) {}

  std::size_t scores() const override { return zones_.scores(); }
  std::size_t bytes() const override { return zones_.bytes() + (trie() ? trie()->bytes() : 0); }

  EngineScratch make_scratch() const { return {zones_.make_scratch(), nullptr}; }

  template <class Index>
  void score_row(const SparseRow<Index>& row, EngineScratch& scratch, double* out) const {
    prefixes_.refresh(scratch.trie);
    score_sorted(row, scratch, out);
  }

  template <class Index>
  void score_range(const RowRange<Index>& range, EngineScratch& scratch, double* out) const {
    prefixes_.refresh(scratch.trie);
    for (std::size_t row = range.first; row < range.last; ++row, out += scores())
      score_sorted(range[row], scratch, out);
  }

  void stop_early(bool early, EngineScratch& scratch) const { scratch.bounds = early ? &bounds() : nullptr; }

  std::shared_ptr<const PrefixTrie> trie() const override { return prefixes_.trie(); }
  void set_trie(std::shared_ptr<const PrefixTrie> trie) override { prefixes_.set(std::move(trie)); }
  void release_after_fork() override { prefixes_.release_after_fork(); }
  PrefixTrie grow(const PrefixTrie* old, const data::CsrView<std::int32_t, double>& rows,
                  std::size_t most_nodes, Saving saving, int threads, Monitor& monitor) const override {
    return prefixes_.grow(old, rows, most_nodes, saving, threads, monitor);
  }
  PrefixTrie prune(const PrefixTrie& old, std::size_t most_nodes, Saving saving) const override {
    return prefixes_.prune(old, most_nodes, saving);
  }

 private:
  // Not inlined: otherwise each loop over rows would get its own copy of this function.
  template <class Index>
  [[gnu::noinline]] void score_sorted(const SparseRow<Index>& row, EngineScratch& scratch,
                                      double* out) const {
    std::copy(zones_.tables.intercept.begin(), zones_.tables.intercept.end(), out);
    if (!zones_.load(row, scratch)) return score_valued_(zones_, scratch, out);
    const SummedBeginning beginning =
        scratch.trie != nullptr ? prefixes_.find(*scratch.trie, scratch.binary) : SummedBeginning{};
    score_ones_(zones_, beginning, scratch, out);
  }

  // Returns the bounds of the owners; computes them on first use.
  const OwnerBounds& bounds() const {
    std::call_once(bounds_once_, [&] { bounds_ = std::make_unique<OwnerBounds>(zones_.tables); });
    return *bounds_;
  }

  ScoringZones zones_;
  ScoreOnes score_ones_;
  ScoreValued score_valued_;
  PrefixLayer prefixes_;
  mutable std::once_flag bounds_once_;
  mutable std::unique_ptr<const OwnerBounds> bounds_;
};

}  // namespace

std::unique_ptr<ConjunctionEngine> make_conjunction_engine(const ConjunctionTables& tables) {
  check(tables);
  return std::make_unique<TableEngine>(tables);
}

}  // namespace unkernel::engines
