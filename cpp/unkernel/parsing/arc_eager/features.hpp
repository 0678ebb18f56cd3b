// Features of a parser's state: templates filled with values, as column numbers of a binary row.
//
// A feature is a template and the values in its places, which together are one number, the key. In training,
// keys are counted; those that are frequent enough become columns. The columns of a template lie together, in
// the order of the templates and by descending frequency, so that a row comes out in ascending order. What
// was not seen in training is no feature. Looking up takes one load for a template of one value, and a probe
// of a hash table for one of several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/parsing/arc_eager/templates.hpp"
#include "unkernel/parsing/arc_eager/vocabulary.hpp"
#include "unkernel/parsing/features/feature_index.hpp"

namespace unkernel::parsing {

// A state between two transitions, or the arc of one that has been chosen.
struct Situation {
  const ArcEagerState& state;
  const SentenceSymbols& symbols;
  Arc arc;
};

// The columns of a situation, and the words at the templates' addresses; kept from one to the next.
struct FeatureRow {
  std::vector<std::int32_t> columns;
  std::vector<Word> words;
};

// How often each key was seen, one table per template.
using FeatureCounts = std::vector<FlatMap<FeatureKey, std::int64_t>>;

class FeatureSpace {
 public:
  // Labels are values too. Throws std::invalid_argument if a template has more values than there are keys.
  FeatureSpace(const TemplateSet& set, const Vocabulary& vocabulary, std::size_t labels);

  FeatureCounts no_counts() const { return FeatureCounts(set_.templates.size()); }
  void count(const Situation& situation, FeatureRow& row, FeatureCounts& counts) const;
  // Gives columns to the keys that were counted so often.
  void number(const FeatureCounts& counts, std::int64_t min_count);

  // The columns come in ascending order.
  void extract(const Situation& situation, FeatureRow& row) const;

  std::size_t columns() const { return keys_.size(); }
  // Those before this one are joined with all others, those from it on only with these.
  std::int32_t core_columns() const { return static_cast<std::int32_t>(begins_[set_.core]); }
  const TemplateSet& set() const { return set_; }
  // The key of each column, and where the columns of each template begin; the last is where they end.
  const std::vector<FeatureKey>& keys() const { return keys_; }
  const std::vector<std::int64_t>& begins() const { return begins_; }
  // As they were; throws std::invalid_argument if that cannot be.
  void restore(std::span<const FeatureKey> keys, std::span<const std::int64_t> begins);

 private:
  void find_words(const Situation& situation, std::vector<Word>& words) const;
  std::vector<TemplateRanges> ranges(const Vocabulary& vocabulary, std::size_t labels) const;
  void fill_index();

  TemplateSet set_;
  FeatureIndex index_;
  std::vector<FeatureKey> keys_;
  std::vector<std::int64_t> begins_;
};

}  // namespace unkernel::parsing
