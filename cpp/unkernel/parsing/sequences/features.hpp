// The features of decisions that are made word by word, and their numbers.
//
// The values of a word are looked up once. Each attribute has a table of the values that occurred in
// training, and the code of a value is its number in this table. A feature index (features/feature_index.hpp)
// maps templates with codes to columns, in the order of their first occurrence in training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/name_table.hpp"
#include "unkernel/parsing/features/feature_index.hpp"
#include "unkernel/parsing/features/feature_rows.hpp"
#include "unkernel/parsing/features/lexicon.hpp"
#include "unkernel/parsing/sequences/templates.hpp"

namespace unkernel::parsing {

// Codes of positions before the first word and after the last word, and of values that did not occur in
// training. Codes of other values begin at `first_code`.
constexpr std::int32_t before_first = 0;
constexpr std::int32_t behind_last = 1;
constexpr std::int32_t first_code = 2;
constexpr std::int32_t unknown = -1;
constexpr std::int32_t most_sequence_classes = 1 << 16;  // a limit, so that files cannot create huge tables

// A sentence in reading direction: the codes of each word's attributes, and the code of its tag if it is
// known.
class Sequence {
 public:
  void reset(std::size_t attributes, std::size_t words);
  std::size_t words() const { return words_; }
  // Return the codes of a word, one per attribute. The tag comes last.
  std::int32_t* codes(std::size_t word) { return codes_.data() + (margin + word) * stride_; }
  const std::int32_t* codes(std::size_t word) const { return codes_.data() + (margin + word) * stride_; }
  void set_tag(std::size_t word, std::int32_t code) { codes(word)[stride_ - 1] = code; }
  // Returns the code at an address, whose offset counts from `word`.
  std::int32_t code(std::size_t word, const SequenceAddress& address) const {
    return codes(word)[address.offset * static_cast<std::ptrdiff_t>(stride_) +
                       static_cast<std::ptrdiff_t>(address.attribute)];
  }

 private:
  static constexpr std::size_t margin = farthest_offset;

  std::vector<std::int32_t> codes_;
  std::size_t words_ = 0;
  std::size_t stride_ = 0;
};

// The features of one template, as files store them: a tree of joined values. The first level has the codes
// of the first value. Each further level numbers pairs: a number of the previous level, and a code of the
// next value. A number of the last level stands for a feature.
struct SequenceTableArrays {
  std::vector<std::vector<std::uint64_t>> joins;  // by further value: its pairs, number << 32 | code
  std::vector<std::int32_t> ids;                  // by number of the last level: the feature, or -1
};

// Where a text has its words and the columns of templates; and the lexicons.
struct SequenceSources {
  int word_column = 0;
  std::vector<int> columns;  // in the order of SequenceNames
  std::vector<Lexicon> lexicons;

  int column_of(const SequenceAttribute& attribute) const {
    return columns[static_cast<std::size_t>(attribute.number)];
  }
};

// Returns the field of a text in a column; empty if the column does not exist.
inline std::string_view field(const data::ColumnText& text, std::int64_t token, int column) {
  return column < text.columns() ? text.field(token, column) : std::string_view();
}

// A text, and the direction in which its sentences are read.
struct SequenceText {
  const data::ColumnText& text;
  bool backward = false;
};

class SequenceFeatures {
 public:
  SequenceFeatures(SequenceTemplates templates, SequenceSources sources);
  // Restores stored features. Throws std::invalid_argument if the parts are inconsistent.
  SequenceFeatures(SequenceTemplates templates, SequenceSources sources, std::vector<data::NameTable> values,
                   std::span<const SequenceTableArrays> tables, std::int32_t features);

  // Learns the features of a text, and returns the rows of all words. Numbers features template by template,
  // and within a template by descending frequency. Drops features that occur fewer than `min_count` times.
  // `answers` has the class of each word, which is its tag as a previous word.
  FeatureRows learn(const SequenceText& text, std::span<const std::int32_t> answers, std::int64_t min_count,
                    const Monitor& monitor);

  // Returns the value of an attribute that depends only on the word itself.
  std::string_view value(const SequenceAttribute& attribute, std::string_view word,
                         std::string& buffer) const;
  // Returns the code of a value of this attribute; `unknown` if it did not occur in training.
  std::int32_t code(std::size_t attribute, std::string_view value) const {
    const std::int32_t number = values_[attribute].find(value);
    return number < 0 ? unknown : first_code + number;
  }
  // Returns the code of a class as a tag; `unknown` if it did not occur in training.
  std::int32_t tag_code(std::int32_t answer) const {
    return answer >= 0 && answer < tags_ ? first_code + answer : unknown;
  }
  // Lists the features of a word, ascending. All words before it must have tags.
  void row(const Sequence& sentence, std::size_t word, std::vector<std::int32_t>& ids) const;
  // Returns the rows of all words of a text, in the order of the text. `answers` has the tags of previous
  // words; -1 stands for no class.
  FeatureRows rows(const SequenceText& text, std::span<const std::int32_t> answers,
                   const Monitor& monitor) const;

  std::int32_t features() const { return index_.columns(); }
  // Returns the end of the core. Columns before it are joined with all others, later columns only with the
  // core.
  std::int32_t core_columns() const;
  // Returns a number above all classes that occur as tags of previous words.
  std::int32_t tags() const { return tags_; }
  // Returns of how many previous words the features may use the tags.
  std::size_t tags_seen() const;
  // Returns whether the features of a word depend on other words or their tags.
  bool look_around() const;
  const std::vector<SequenceAttribute>& attributes() const { return templates_.attributes; }
  const std::vector<data::NameTable>& values() const { return values_; }
  std::vector<SequenceTableArrays> tables() const;
  const SequenceSources& sources() const { return sources_; }
  // Returns the values of a column in the training text; null if the templates do not use the column.
  const data::NameTable* find_values(std::size_t column) const;

 private:
  // Adds the values of all words to the tables of values.
  void learn_values(const data::ColumnText& text, const Monitor& monitor);
  void check_sources() const;
  // Sets the codes of a sentence's tags.
  void set_tags(std::span<const std::int32_t> answers, bool backward, Sequence& sentence) const;
  std::vector<TemplateRanges> ranges() const;
  void restore_table(std::size_t which, const SequenceTableArrays& arrays, std::int32_t features,
                     std::vector<std::uint8_t>& found);
  void store_table(std::size_t which, SequenceTableArrays& arrays) const;

  SequenceTemplates templates_;
  SequenceSources sources_;
  std::vector<data::NameTable> values_;
  std::int32_t tags_ = 0;  // number of classes seen in training
  FeatureIndex index_;
};

}  // namespace unkernel::parsing
