// Reads sentences of a text as codes of features.
//
// Most words of a text repeat, so a reader remembers their codes: the pieces of a word are extracted and
// looked up once per distinct word.
//
// Cost    for a remembered word, one lookup, and one more per column of the text.
// Bytes   per remembered word, 4 per attribute and about 60 for the word itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/name_table.hpp"
#include "unkernel/parsing/sequences/features.hpp"

namespace unkernel::parsing {

// A column that replaces a column of the text: for each token the number of its value in `names`.
struct GivenColumn {
  int column;
  std::span<const std::int32_t> values;
  const data::NameTable& names;
};

class SequenceReader {
 public:
  // Features and given columns must outlive the reader.
  explicit SequenceReader(const SequenceFeatures& features, std::span<const GivenColumn> given = {});

  // Reads a sentence, without tags.
  void read(const SequenceText& text, std::int64_t sentence, Sequence& to);
  // Returns the number of a word of the sentence read last; a form keeps its number until words are
  // forgotten.
  std::int32_t number(std::size_t word) const { return numbers_[word]; }
  std::string_view form(std::size_t word) const { return words_.name(numbers_[word]); }
  // Forgets all words if too many are remembered. Returns whether words were forgotten.
  bool forget_words_if_many();

 private:
  // An attribute whose values are read from a column of the text, or from a given column.
  struct Column {
    std::size_t attribute;
    int column;
    std::span<const std::int32_t> values;  // of a given column; empty if the values come from the text
    std::vector<std::int32_t> codes;       // of the names of a given column
  };

  std::int32_t look_up(std::string_view word);

  const SequenceFeatures& features_;
  std::size_t attributes_;
  std::vector<Column> columns_;
  data::NameTable words_;
  std::vector<std::int32_t> codes_;  // words x attributes; the codes of columns are not set
  std::vector<std::int32_t> numbers_;
  std::string buffer_;
};

}  // namespace unkernel::parsing
