// Reads sentences of a text as codes of features.
//
// Most words of a text repeat, so a reader caches their codes: the pieces of a word are extracted and looked
// up once per distinct word.
//
// Cost    for a cached word, one lookup, and one more per column of the text.
// Bytes   per cached word, 4 per attribute and about 60 for the word itself.
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

// A column that replaces a column of the text: the number in `names` of each token's value.
struct GivenColumn {
  int column;
  std::span<const std::int32_t> values;
  const data::NameTable& names;
};

class SequenceReader {
 public:
  // The features and the given columns must outlive the reader.
  explicit SequenceReader(const SequenceFeatures& features, std::span<const GivenColumn> given = {});

  // Reads a sentence, without tags.
  void read(const SequenceText& text, std::int64_t sentence, Sequence& to);
  // Return the number and the form of a word of the last sentence. A form keeps its number until the cache is
  // cleared.
  std::int32_t number(std::size_t word) const { return numbers_[word]; }
  std::string_view form(std::size_t word) const { return words_.name(numbers_[word]); }
  // Clears the cache if it has too many words. Returns whether it was cleared.
  bool forget_words_if_many();

 private:
  // An attribute whose values come from a column of the text or from a given column.
  struct Column {
    std::size_t attribute;
    int column;
    std::span<const std::int32_t> values;  // of a given column; empty if the text has the values
    std::vector<std::int32_t> codes;       // of the names of a given column
  };

  std::int32_t look_up(std::string_view word);

  const SequenceFeatures& features_;
  std::size_t attributes_;
  std::vector<Column> columns_;
  data::NameTable words_;
  std::vector<std::int32_t> codes_;  // words x attributes; unused for attributes from columns
  std::vector<std::int32_t> numbers_;
  std::string buffer_;
};

}  // namespace unkernel::parsing
