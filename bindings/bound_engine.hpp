// Engines as Python holds them; parsers take them as arguments.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "csr_rows.hpp"
#include "feature_ids.hpp"
#include "tables.hpp"
#include "unkernel/engines/cached_engine.hpp"
#include "unkernel/engines/conjunctions/conjunction_engine.hpp"
#include "unkernel/engines/vectors/pair_scores.hpp"

namespace unkernel::bindings {

// The scores of one row, and what follows from them. Scores that are not finite are a ValueError.
class RowScores {
 public:
  explicit RowScores(std::size_t count) : scores_(count) {}

  std::size_t size() const { return scores_.size(); }
  double* data() { return scores_.data(); }

  nb::object as_python() const {
    check_finite();
    return scores_.size() == 1 ? nb::object(nb::float_(scores_[0])) : list_of(scores_);
  }
  // The score, where there is one.
  double only() const {
    check_finite();
    return scores_.at(0);
  }
  // One number per class, by votes and sums of pairs of classes.
  nb::object sum_votes(std::size_t classes) const {
    check_pairs(classes);
    check_finite();
    std::vector<double> merits(classes);
    engines::sum_votes(scores_, merits);
    return list_of(std::move(merits));
  }
  // The number of the largest score; of a single one, whether it is positive (or zero, if that counts).
  std::size_t choose(bool zero_is_positive) const {
    check_finite();
    if (scores_.size() == 1) return scores_[0] > 0.0 || (zero_is_positive && scores_[0] == 0.0) ? 1 : 0;
    return static_cast<std::size_t>(std::max_element(scores_.begin(), scores_.end()) - scores_.begin());
  }
  // The number of the class that wins most of its pairs.
  std::size_t choose_by_pairs(std::size_t classes, bool by_sums) const {
    check_pairs(classes);
    check_finite();
    return by_sums ? engines::most_votes_and_sums(scores_, classes) : engines::most_votes(scores_, classes);
  }

 private:
  void check_pairs(std::size_t classes) const {
    if (classes > std::size_t{1} << 31 || scores_.size() != classes * (classes - 1) / 2)
      throw std::invalid_argument("the number of scores does not fit the number of classes");
  }
  void check_finite() const {
    for (const double score : scores_) {
      if (!std::isfinite(score))
        throw std::invalid_argument(
            "a score is not finite: the values are too large for the kernel; scale them");
    }
  }
  // A copy: making a list may run Python code, which may score other rows.
  static nb::object list_of(std::vector<double> numbers) {
    nb::list list;
    for (const double number : numbers) list.append(number);
    return list;
  }

  std::vector<double> scores_;
};

// An engine's worker and the room for a row from Python. Not for two threads at a time.
class RowScorer {
 public:
  explicit RowScorer(const engines::Engine& engine)
      : engine_(engine), worker_(engine.worker()), scores_(engine.scores()) {}

  nb::object score(nb::handle ids, nb::handle values) { return scores_of(ids, values).as_python(); }
  nb::object sum_votes(nb::handle ids, nb::handle values, std::size_t classes) {
    return scores_of(ids, values).sum_votes(classes);
  }
  std::size_t choose(nb::handle ids, nb::handle values, bool zero_is_positive) {
    return scores_of(ids, values).choose(zero_is_positive);
  }
  std::size_t choose_by_pairs(nb::handle ids, nb::handle values, std::size_t classes, bool by_sums) {
    return scores_of(ids, values).choose_by_pairs(classes, by_sums);
  }

 private:
  const RowScores& scores_of(nb::handle ids, nb::handle given_values) {
    // Values first: what reads them may run Python code, and a list of plain ints is read without.
    const std::vector<double> values = values_of(ids, given_values);
    const FeatureIds features(ids, ids_);
    if (!given_values.is_none() && values.size() != features.size())
      throw std::invalid_argument("the row changed while it was read");
    const double* x = given_values.is_none() ? nullptr : values.data();
    if (features.wide()) {
      engine_.score(engines::SparseRow<std::int64_t>{features.wide_ids(), x}, *worker_, scores_.data());
    } else {
      engine_.score(engines::SparseRow<std::int32_t>{features.narrow_ids(), x}, *worker_, scores_.data());
    }
    return scores_;
  }

  std::vector<double> values_of(nb::handle ids, nb::handle values) {
    if (values.is_none()) return {};
    std::vector<std::int64_t> room;
    return read_values(values, FeatureIds(ids, room).size());
  }

  const engines::Engine& engine_;
  std::unique_ptr<engines::Worker> worker_;
  RowScores scores_;
  std::vector<std::int64_t> ids_;
};

// An engine and the Python objects whose memory it reads.
class BoundEngine {
 public:
  // With `remembered` above 0, the answers of so many rows are remembered.
  BoundEngine(std::shared_ptr<engines::Engine> engine, nb::object tables, std::size_t remembered = 0)
      : tables_(std::move(tables)),
        engine_(std::move(engine)),
        cached_(remembered == 0 ? nullptr : std::make_unique<engines::CachedEngine>(engine_, remembered)),
        one_(this->engine()) {}

  const engines::Engine& engine() const { return cached_ == nullptr ? *engine_ : *cached_; }
  RowScorer& one_row() { return one_; }

  nb::ndarray<nb::numpy, double> score(const CsrRows& rows, int threads) const {
    return scores_of(rows, [&](const auto& view, auto out, const Monitor& monitor) {
      engine().score(view, out, {threads, &monitor});
    });
  }
  // Scores that are only good for decisions.
  nb::ndarray<nb::numpy, double> score_until_decided(const CsrRows& rows, int threads) const {
    return scores_of(rows, [&](const auto& view, auto out, const Monitor& monitor) {
      engine().score_until_decided(view, out, {threads, &monitor});
    });
  }

  // --- The cache of answers ---

  // The same engine behind a cache. From then on, this one must not change its trie.
  std::unique_ptr<BoundEngine> cached(std::size_t rows) const {
    if (rows == 0) throw std::invalid_argument("a cache has room for at least one row");
    return std::make_unique<BoundEngine>(engine_, tables_, rows);
  }
  // Hits, misses, the most rows and those that are stored now; None without a cache.
  nb::object cache_counts() const {
    if (cached_ == nullptr) return nb::none();
    const auto counts = cached_->cache().counts();
    return nb::make_tuple(counts.hits, counts.misses, cached_->cache().most_rows(), counts.rows);
  }
  void clear_cache() {
    if (cached_ != nullptr) cached_->cache().clear();
  }

  // --- The prefix trie ---

  // By name; None where there is none.
  nb::object trie() const {
    const auto trie = conjunctions().trie();
    if (trie == nullptr) return nb::none();
    Table table;
    table["first_child"] = give(std::vector(trie->first_child));
    table["ranks"] = give(std::vector(trie->ranks));
    table["counts"] = give(std::vector(trie->counts));
    table["sums"] = give(std::vector(trie->sums));
    return table;
  }

  void set_trie(const Table& table) {
    const auto copy = [](const auto& values) { return std::vector(values.begin(), values.end()); };
    auto trie = std::make_shared<engines::PrefixTrie>();
    trie->first_child = copy(array<std::uint32_t>(table, "first_child"));
    trie->ranks = copy(array<std::uint32_t>(table, "ranks"));
    trie->counts = copy(array<std::uint32_t>(table, "counts"));
    trie->sums = copy(array<double>(table, "sums"));
    replace_trie(std::move(trie));
  }
  void drop_trie() { replace_trie(nullptr); }
  void release_after_fork() { conjunctions().release_after_fork(); }

  std::size_t trie_nodes() const {
    const auto trie = conjunctions().trie();
    return trie == nullptr ? 0 : trie->nodes() - 1;
  }

  // Rows are scored with the old trie until the new one is there.
  void grow_trie(const CsrRows& given, std::size_t most_nodes, const std::string& saving, int threads) {
    const auto rows = given.narrow();
    watched([&](Monitor& monitor) {
      const auto old = conjunctions().trie();
      replace_trie(std::make_shared<const engines::PrefixTrie>(
          conjunctions().grown(old.get(), rows, most_nodes, saving_of(saving), threads, monitor)));
    });
  }

  void prune_trie(std::size_t most_nodes, const std::string& saving) {
    const Unlocked unlocked;
    const auto old = conjunctions().trie();
    if (old != nullptr)
      replace_trie(std::make_shared<const engines::PrefixTrie>(
          conjunctions().pruned(*old, most_nodes, saving_of(saving))));
  }

 private:
  template <class Fill>
  nb::ndarray<nb::numpy, double> scores_of(const CsrRows& rows, const Fill& fill) const {
    std::vector<double> out;
    std::size_t count = 0;
    const std::size_t width = engine_->scores();
    rows.visit([&](const auto& view) {
      count = static_cast<std::size_t>(view.rows());
      out.resize(count * width);
      watched_pieces(view.rows(), [&](std::int64_t begin, std::int64_t end, const Monitor& monitor) {
        const auto [first, last] = std::pair(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
        auto piece = view;  // offsets of a piece need not begin with 0
        piece.offsets = view.offsets.subspan(first, last - first + 1);
        fill(piece, std::span<double>(out).subspan(first * width, (last - first) * width), monitor);
      });
    });
    return to_numpy(std::move(out), {count, width});
  }

  // With another trie, sums are rounded differently, so remembered answers would not be those of the engine.
  void replace_trie(std::shared_ptr<const engines::PrefixTrie> trie) {
    conjunctions().set_trie(std::move(trie));
    clear_cache();
  }

  static engines::Saving saving_of(const std::string& name) {
    if (name != "counted" && name != "entries")
      throw std::invalid_argument("saving must be 'counted' or 'entries'");
    return name == "counted" ? engines::Saving::counted : engines::Saving::entries;
  }
  engines::ConjunctionEngine& conjunctions() const {
    auto* found = dynamic_cast<engines::ConjunctionEngine*>(engine_.get());
    if (found == nullptr) throw std::invalid_argument("only engines of conjunctions have a prefix trie");
    return *found;
  }

  nb::object tables_;
  std::shared_ptr<engines::Engine> engine_;
  std::unique_ptr<engines::CachedEngine> cached_;  // null if no answers are remembered
  RowScorer one_;
};

}  // namespace unkernel::bindings
