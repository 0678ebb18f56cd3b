// Reads text with one word per line and its properties in columns. A blank line ends a sentence.
//
//   conllu   CoNLL-U: ten columns separated by tabs, words numbered 1, 2, 3, ...; multiword tokens (1-2),
//            empty nodes (1.1) and comments (#) are not words, and are copied unchanged
//   conllx   CoNLL-X: the same without multiword tokens and empty nodes
//   chunks   CoNLL-2000, YamCha: the same number of columns in every line, separated by spaces or tabs; no
//            comments
//
// docs/formats/columns.md specifies what the reader accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "unkernel/base/error.hpp"
#include "unkernel/data/growing_array.hpp"
#include "unkernel/data/text/head_check.hpp"

namespace unkernel::data {

enum class ColumnFormat { conllu, conllx, chunks };

// Numbers of the columns of conllu and conllx. upos and xpos are columns 4 and 5, which CoNLL-X calls cpostag
// and postag.
namespace conll {
constexpr int id = 0, form = 1, lemma = 2, upos = 3, xpos = 4, feats = 5, head = 6, deprel = 7, deps = 8,
              misc = 9;
constexpr int columns = 10;
}  // namespace conll

constexpr std::int64_t longest_line = std::numeric_limits<std::int32_t>::max();  // bytes

struct ColumnOptions {
  ColumnFormat format;
  int columns;              // chunks only: columns per line, or 0 for as many as the first line has
  TreeCheck trees;          // conllu and conllx only
  bool skip_bad_sentences;  // instead of throwing
  std::int64_t first_line;  // number of the text's first line in its file
};

// A range of lines: its bytes, and the number of its first line.
struct LinePlace {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t line;
};

// The index of a text: 8 + 4 * columns bytes per token, 4 for its head, and 32 bytes per sentence.
struct ColumnIndex {
  int columns = 0;
  GrowingArray<std::int64_t> token_begins;
  GrowingArray<std::uint32_t> cuts;  // by token and column: where the next column begins in the token
  GrowingArray<std::int32_t> heads;
  GrowingArray<std::int64_t> first_tokens;  // by sentence, then the total number of tokens
  GrowingArray<LinePlace> sentences;
  GrowingArray<LinePlace> skipped;
};

// A text and its index. Immutable, so threads can share it.
class ColumnText {
 public:
  // Throws FormatError at the first bad line, unless bad sentences are to be skipped.
  ColumnText(std::string text, std::string file, const ColumnOptions& options);
  // Creates a copy of `original` with another text, whose index is given.
  ColumnText(std::string text, const ColumnText& original, ColumnIndex index);

  const std::string& text() const { return text_; }
  const std::string& file() const { return file_; }
  const ColumnOptions& options() const { return options_; }
  ColumnFormat format() const { return options_.format; }
  int columns() const { return index_.columns; }
  std::int64_t first_line() const { return options_.first_line; }
  std::int64_t sentences() const { return static_cast<std::int64_t>(index_.sentences.size()); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(index_.token_begins.size()); }

  // Returns the first token of a sentence. Its last token is first_token(sentence + 1) - 1; `sentence` may be
  // sentences().
  std::int64_t first_token(std::int64_t sentence) const {
    return index_.first_tokens.span()[static_cast<std::size_t>(sentence)];
  }
  std::span<const std::int64_t> first_tokens() const { return index_.first_tokens.span(); }

  std::string_view field(std::int64_t token, int column) const;
  // Returns the head of each token of conllu and conllx, counted from 1 in its sentence: 0 is the root, -1 is
  // `_`. Empty for chunks.
  std::span<const std::int32_t> heads() const { return index_.heads.span(); }

  // Returns the line of a token in the file. Takes time linear in the length of the sentence; for error
  // messages.
  std::int64_t line(std::int64_t token) const;
  std::int64_t sentence_line(std::int64_t sentence) const { return place(sentence).line; }
  // Returns the lines of a sentence, with its comments but without the blank lines that follow.
  std::string_view sentence_text(std::int64_t sentence) const;

  // Returns the lines of the skipped bad sentences. Their bytes are in the text, but they have no tokens.
  std::span<const LinePlace> skipped() const { return index_.skipped.span(); }
  // Returns the error of a skipped sentence.
  FormatError why_skipped(std::size_t number) const;

  // Throws FormatError unless heads form trees. Needed only if the text was read without this check.
  void check_trees(TreeCheck check) const;
  // Returns a FormatError at the position of a field.
  FormatError fault(std::int64_t token, int column, const std::string& reason) const;

  const ColumnIndex& index() const { return index_; }
  const LinePlace& place(std::int64_t sentence) const {
    return index_.sentences.span()[static_cast<std::size_t>(sentence)];
  }

 private:
  std::int64_t sentence_of(std::int64_t token) const;

  std::string text_;
  std::string file_;
  ColumnOptions options_;
  ColumnIndex index_;
};

inline bool is_column_blank(char c) { return c == ' ' || c == '\t'; }

inline std::string_view ColumnText::field(std::int64_t token, int column) const {
  const auto number = static_cast<std::size_t>(token);
  const std::uint32_t* cuts = index_.cuts.span().data() + number * static_cast<std::size_t>(index_.columns);
  const char* line = text_.data() + index_.token_begins.span()[number];
  const char* begin = line + (column == 0 ? 0 : cuts[column - 1]);
  const char* end = line + cuts[column] - 1;
  // Chunks may have several blanks between columns.
  while (options_.format == ColumnFormat::chunks && is_column_blank(end[-1])) --end;
  return {begin, static_cast<std::size_t>(end - begin)};
}

// Returns the length of the prefix of `text` that ends with its last complete sentence, or 0 if it is
// uncertain whether any sentence is complete. For texts that are read block by block. Comments between blank
// lines belong to the next sentence.
std::size_t size_of_whole_sentences(std::string_view text, ColumnFormat format);

// One string per token, as an index into `names`; -1 stands for `_`.
struct TokenNames {
  std::span<const std::int32_t> numbers;  // -1: `_`
  std::span<const std::string> names;
};

// Values of a column.
struct ColumnValues {
  int column;
  TokenNames values;
};

// Return a copy of the text with other heads and relations; with other values of columns, whose numbers must
// ascend; or with other values of one column. All other bytes stay the same. For chunks, `column` may be
// text.columns(), which appends a column. The copy keeps the sentences and the skipped sentences. Throw
// std::invalid_argument if values do not fit the text.
ColumnText replace_trees(const ColumnText& text, std::span<const std::int32_t> heads,
                         const TokenNames& relations);
ColumnText replace_columns(const ColumnText& text, std::span<const ColumnValues> columns);
ColumnText replace_column(const ColumnText& text, int column, const TokenNames& values);

}  // namespace unkernel::data
