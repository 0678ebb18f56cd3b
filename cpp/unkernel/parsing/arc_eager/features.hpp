// Features of a parser's state: templates filled with values, as columns of a binary row.
//
// A feature is a template with a value for each of its parts. The values form one number, the key. Training
// counts keys, and frequent keys become columns. The columns of a template are contiguous, by descending
// frequency, and templates keep their order, so rows are created in ascending order. Features without a
// column are ignored. A lookup takes one load if the template has one part, and a probe of a hash table if it
// has several.
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

// The state before a move, or the arc whose label is chosen.
struct Situation {
  const ArcEagerState& state;
  const SentenceSymbols& symbols;
  const WordColumns& columns;
  Arc arc;
};

// The columns of a situation, and the words at the addresses of the templates. Reused to avoid allocations.
struct FeatureRow {
  std::vector<std::int32_t> columns;
  std::vector<Word> words;
};

// How often each key occurs, in one table per template.
using FeatureCounts = std::vector<FlatMap<FeatureKey, std::int64_t>>;

class FeatureSpace {
 public:
  // `labels` is the number of labels, which may be values of features. Throws std::invalid_argument if the
  // joined values of a template do not fit into a key.
  FeatureSpace(const TemplateSet& set, const Vocabulary& vocabulary, std::size_t labels);

  FeatureCounts no_counts() const { return FeatureCounts(set_.templates.size()); }
  void count(const Situation& situation, FeatureRow& row, FeatureCounts& counts) const;
  // Assigns columns to the keys that were counted at least `min_count` times.
  void assign_columns(const FeatureCounts& counts, std::int64_t min_count);

  // Finds the columns of templates with one part that is a string attribute of a word, such as its form. Must
  // be called for a sentence before extract().
  void look_up(const SentenceSymbols& symbols, WordColumns& columns) const;
  // Writes the columns of a situation to the row, in ascending order.
  void extract(const Situation& situation, FeatureRow& row) const;

  std::size_t columns() const { return keys_.size(); }
  // Returns the end of the core. Columns of the core are joined with all columns, later columns only with the
  // core.
  std::int32_t core_columns() const { return static_cast<std::int32_t>(begins_[set_.core]); }
  const TemplateSet& set() const { return set_; }
  // Return the key of each column; and the first column of each template, followed by the number of columns.
  const std::vector<FeatureKey>& keys() const { return keys_; }
  const std::vector<std::int64_t>& begins() const { return begins_; }
  // Restores stored keys. Throws std::invalid_argument if they are inconsistent.
  void restore(std::span<const FeatureKey> keys, std::span<const std::int64_t> begins);

 private:
  void find_words(const Situation& situation, std::vector<Word>& words) const;
  std::vector<TemplateRanges> ranges(const Vocabulary& vocabulary, std::size_t labels) const;
  void clear_index();  // removes all columns, and sizes the index for the current ranges
  void fill_index();

  TemplateSet set_;
  std::vector<std::size_t> word_templates_;       // templates with one part, a string attribute of a word
  std::vector<std::size_t> word_template_index_;  // by template: its index in word_templates_
  std::vector<TemplateRanges> ranges_;
  FeatureIndex index_;
  std::vector<FeatureKey> keys_;
  std::vector<std::int64_t> begins_;
};

}  // namespace unkernel::parsing
