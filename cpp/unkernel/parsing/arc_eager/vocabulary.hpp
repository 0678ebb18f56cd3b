// Maps the strings of a sentence to numbers.
//
// Each attribute that the templates use has a table of the strings in the training text, so a word of a
// sentence becomes a row of numbers. The attributes derived from a form are computed once for every form of
// the training text. Words that are not in the training text can have a cluster, if clusters are given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/name_table.hpp"
#include "unkernel/parsing/arc_eager/templates.hpp"
#include "unkernel/parsing/features/lexicon.hpp"

namespace unkernel::parsing {

using Symbol = std::int32_t;
constexpr Symbol unknown_symbol = -1;
constexpr Symbol absent_symbol = 0;  // of a missing word; tables number names from 1

// Returns the value of a string attribute that is derived from the form. The result points into the form or
// into `buffer`.
std::string_view derived(Attribute attribute, std::string_view form, std::string& buffer);

// Flags, by string attribute: whether a template uses it.
using UsedAttributes = std::array<bool, string_attributes>;
UsedAttributes used_attributes(const ParserTemplates& templates);

// Stores, by word, the columns of the templates whose only value is a string of a word. They are looked up
// once per sentence instead of once per decision.
class WordColumns {
 public:
  void resize(std::size_t words, std::size_t templates) {
    templates_ = templates;
    columns_.resize(words * templates);
  }
  std::int32_t& at(std::size_t word, std::size_t number) { return columns_[word * templates_ + number]; }
  std::int32_t of(Word word, std::size_t number) const {
    return columns_[static_cast<std::size_t>(word) * templates_ + number];
  }

 private:
  std::size_t templates_ = 0;
  std::vector<std::int32_t> columns_;
};

// The symbols of a sentence: one per used attribute and word. Word 0 stands for missing words.
class SentenceSymbols {
 public:
  void resize(std::size_t words) {
    for (auto& symbols : symbols_) symbols.resize(words + 1, unknown_symbol);
    words_ = words;
  }
  std::size_t words() const { return words_; }
  Symbol& at(Attribute attribute, std::size_t word) {
    return symbols_[static_cast<std::size_t>(attribute)][word];
  }
  Symbol of(Attribute attribute, Word word) const {
    return symbols_[static_cast<std::size_t>(attribute)][static_cast<std::size_t>(word)];
  }

  WordColumns move_columns;
  WordColumns arc_columns;

 private:
  std::array<std::vector<Symbol>, string_attributes> symbols_;
  std::size_t words_ = 0;
};

class Vocabulary {
 public:
  // Throws std::invalid_argument if clusters are damaged, or if a template needs clusters and there are none.
  Vocabulary(const UsedAttributes& used, Lexicon clusters);
  // Restores strings that names() returned. Throws std::invalid_argument if a string occurs twice.
  void restore(const std::array<std::vector<std::string_view>, string_attributes>& strings);

  // Adds the strings of a sentence to the tables.
  void learn(const data::ColumnText& text, std::int64_t sentence);
  // Must be called after the last learn().
  void precompute_forms();
  // Finds the symbols of a sentence. Strings that are not in the tables get unknown_symbol.
  void look_up(const data::ColumnText& text, std::int64_t sentence, SentenceSymbols& symbols) const;

  const UsedAttributes& used() const { return used_; }
  const data::NameTable& names(Attribute attribute) const {
    return tables_[static_cast<std::size_t>(attribute)];
  }
  // Returns the largest symbol plus one.
  std::size_t symbols(Attribute attribute) const { return names(attribute).size() + 1; }

 private:
  template <class Visit>
  void for_each_derived(std::string_view form, const Visit& visit) const;
  Symbol find(Attribute attribute, std::string_view name) const;

  UsedAttributes used_;
  Lexicon clusters_;
  std::array<data::NameTable, string_attributes> tables_;
  // The forms in the training text, and the symbols of their derived attributes: forms x used attributes.
  data::NameTable forms_;
  std::vector<Symbol> form_symbols_;
};

}  // namespace unkernel::parsing
