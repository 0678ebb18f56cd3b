// Features of pairs of bunsetsu (the phrases of a Japanese sentence), as columns of a row.
//
// Columns are numbered template by template, and templates are in the order in which a row is assembled. So
// rows are created in ascending order, as engines need them, without sorting. Features of a single bunsetsu
// are looked up once; the row of a pair then takes four copies and a few comparisons.
//
// Bytes   4 per template and symbol, plus the symbols themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/bunsetsu_text.hpp"
#include "unkernel/data/text/name_table.hpp"
#include "unkernel/parsing/bunsetsu/templates.hpp"
#include "unkernel/parsing/features/feature_index.hpp"

namespace unkernel::parsing {

// Maps the values of each template to columns.
class BunsetsuFeatures {
 public:
  // The columns from begins[t] to begins[t + 1] belong to template t, and column c has the symbol values[c].
  // The symbols of a template must ascend. Throws std::invalid_argument for other input.
  BunsetsuFeatures(std::vector<BunsetsuTemplate> templates, data::NameTable symbols,
                   std::vector<std::int32_t> begins, std::vector<std::int32_t> values);
  // Returns all possible columns: every template with every name.
  static BunsetsuFeatures all_of(std::vector<BunsetsuTemplate> templates, const data::NameTable& names);
  // Returns the features of the columns c whose new_numbers[c] is not no_column, in the order of this object.
  // Drops symbols that no kept column has.
  BunsetsuFeatures keep_columns(std::span<const std::int32_t> new_numbers) const;

  std::span<const BunsetsuTemplate> templates() const { return templates_; }
  const data::NameTable& symbols() const { return symbols_; }
  std::span<const std::int32_t> begins() const { return begins_; }
  std::span<const std::int32_t> values() const { return values_; }
  std::size_t columns() const { return values_.size(); }
  // Returns the name of a column, for example "modifier.content.surface=本".
  std::string name(std::size_t column) const;

  std::int32_t column(std::size_t template_index, std::int32_t symbol) const {
    return table_[static_cast<std::size_t>(symbol) * templates_.size() + template_index];
  }
  // Returns the column of a category's value, or no_column if there is none.
  std::int32_t column(std::size_t template_index, std::string_view value) const {
    const std::int32_t symbol = symbols_.find(value);
    return symbol < 0 ? no_column : column(template_index, symbol);
  }

 private:
  std::vector<BunsetsuTemplate> templates_;
  data::NameTable symbols_;
  std::vector<std::int32_t> begins_;
  std::vector<std::int32_t> values_;
  // Ordered by symbol, then by template, unlike a FeatureIndex. The columns of one word in all templates are
  // adjacent, which makes parsing 10 % faster.
  std::vector<std::int32_t> table_;
};

// Maps the symbols of a text to symbols of the features and to kinds of morphemes, once per distinct string.
// The text and the features must outlive this object.
class BunsetsuSymbols {
 public:
  enum Class : std::uint8_t { mark = 1, particle = 2, comma = 4, period = 8, opening = 16, closing = 32 };

  BunsetsuSymbols(const data::BunsetsuText& text, const BunsetsuFeatures& features);

  const data::BunsetsuText& text() const { return text_; }
  const BunsetsuFeatures& features() const { return features_; }
  // Returns the features' symbol for a symbol of the text; -1 if the string did not occur in training.
  std::int32_t known(std::int32_t symbol) const { return known_[static_cast<std::size_t>(symbol)]; }
  bool is(std::int32_t symbol, Class kind) const {
    return (classes_[static_cast<std::size_t>(symbol)] & kind) != 0;
  }

 private:
  const data::BunsetsuText& text_;
  const BunsetsuFeatures& features_;
  std::vector<std::int32_t> known_;  // -1 if unknown
  std::vector<std::uint8_t> classes_;
};

// Counts bunsetsu whose function word has a part of speech that did not occur in training, with examples of
// such parts of speech. All counts are 0 if no template uses the part of speech of function words.
struct UnknownPos {
  std::size_t decided = 0;  // bunsetsu whose head is decided: all but the last of each sentence
  std::size_t bunsetsu = 0;
  std::vector<std::string> examples;
};
UnknownPos unknown_pos(const BunsetsuSymbols& symbols, std::size_t most_examples);

// Prepares a sentence, and creates rows for its pairs. Reuses its buffers for each sentence.
class BunsetsuRows {
 public:
  explicit BunsetsuRows(const BunsetsuSymbols& symbols);

  void load(std::size_t sentence);
  std::size_t size() const { return bunsetsu_.size(); }

  // Begins the pairs of the next candidate, on which no bunsetsu depends yet.
  void begin_candidate() { competitors_.clear(); }
  // Records that the bunsetsu depends on the candidate. Its particles compete with the particles of the
  // bunsetsu to its left.
  void add_dependent(std::size_t bunsetsu);
  // Returns the columns of a pair, ascending; valid until the next call.
  std::span<const std::int32_t> row(std::size_t modifier, std::size_t candidate);

 private:
  static constexpr std::int64_t no_morpheme = -1;

  struct Range {
    std::uint32_t begin;
    std::uint32_t end;
  };
  // A bunsetsu: its words, marks and particles, and its columns in each role.
  struct Bunsetsu {
    std::int64_t words[bunsetsu_words];  // morphemes
    std::int32_t content;                // symbol of the content word in the text, or -1
    bool comma, period;
    std::int32_t openings, closings;
    std::int32_t openings_before, closings_before;  // brackets in the sentence before this bunsetsu
    Range particles;                                // symbols
    Range parts[bunsetsu_roles];                    // columns
    Range competing;  // columns of its particles, where bunsetsu compete for a head
  };
  // The columns of a template that has a few fixed values.
  struct Categories {
    std::int32_t yes, no;
    std::int32_t brackets[4], punctuation[4], distances[3];
  };

  void read_morphemes(std::size_t begin, std::size_t end, Bunsetsu& bunsetsu);
  void fill_part(std::size_t number, BunsetsuRole role, Bunsetsu& bunsetsu);
  void add(std::int32_t column) {
    if (column != no_column) columns_.push_back(column);
  }
  void add_word(std::size_t template_index, const BunsetsuTemplate& feature, const Bunsetsu& bunsetsu);
  void add_particles(std::size_t template_index, const Bunsetsu& bunsetsu);
  void add_pair(std::size_t template_index, std::size_t modifier, std::size_t candidate);
  void append(Range part);
  const Bunsetsu* in_role(BunsetsuRole role, std::size_t modifier, std::size_t candidate) const;
  static std::size_t bracket_state(std::int32_t openings, std::int32_t closings);

  const BunsetsuSymbols& symbols_;
  std::vector<Categories> categories_;              // of each template
  std::size_t first_template_[bunsetsu_roles + 2];  // of each role
  std::size_t competing_template_;                  // equals the number of templates if there is none
  std::vector<Bunsetsu> bunsetsu_;
  std::vector<std::int32_t> particles_;
  std::vector<std::int32_t> columns_;
  std::vector<std::int32_t> competitors_;
  std::vector<std::int32_t> row_;
};

}  // namespace unkernel::parsing
