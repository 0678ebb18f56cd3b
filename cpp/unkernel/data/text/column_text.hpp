// Text with a word a line and its properties in columns; a blank line ends a sentence.
//
//   conllu   CoNLL-U: ten columns apart by tabs, words numbered 1, 2, 3, ...; lines of multiword tokens (1-2)
//   and empty
//            nodes (1.1) are no words, they and comments (#) are bytes that pass through
//   conllx   CoNLL-X: as above, without multiword tokens and empty nodes
//   chunks   CoNLL-2000, YamCha: as many columns in every line, apart by spaces or tabs; nothing is a comment
//
// docs/formats/columns.md says what is accepted and what is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "unkernel/base/error.hpp"
#include "unkernel/data/growing_array.hpp"
#include "unkernel/data/text/head_check.hpp"

namespace unkernel::data {

enum class ColumnFormat { conllu, conllx, chunks };

// Of conllu and conllx. Column 4 of CoNLL-X (cpostag) is upos here, column 5 (postag) xpos.
namespace conll {
constexpr int id = 0, form = 1, lemma = 2, upos = 3, xpos = 4, feats = 5, head = 6, deprel = 7, deps = 8,
              misc = 9;
constexpr int columns = 10;
}  // namespace conll

struct ColumnOptions {
  ColumnFormat format;
  int columns;              // of chunks: how many a line must have; 0: as many as the first has
  TreeCheck trees;          // of conllu and conllx
  bool skip_bad_sentences;  // leaves them out, instead of throwing
  std::int64_t first_line;  // the number that the text's first line has in the file
};

// A run of lines: its bytes, and the number of its first line.
struct LinePlace {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t line;
};

// Where everything is in a text: 8 + 4 * columns bytes a token and 4 for its head, 32 bytes a sentence.
struct ColumnIndex {
  int columns = 0;
  GrowingArray<std::int64_t> token_begins;
  GrowingArray<std::uint32_t>
      cuts;  // for every column of every token: where the next one begins, counted from the token's begin
  GrowingArray<std::int32_t> heads;
  GrowingArray<std::int64_t> first_tokens;  // of each sentence, and the number of tokens
  GrowingArray<LinePlace> sentences;
  GrowingArray<LinePlace> skipped;
};

// The text and its index; never changes, so that threads can share it.
class ColumnText {
 public:
  // Throws FormatError at the first line that is bad, unless bad sentences are to be skipped.
  ColumnText(std::string text, std::string file, const ColumnOptions& options);

  const std::string& text() const { return text_; }
  const std::string& file() const { return file_; }
  const ColumnOptions& options() const { return options_; }
  ColumnFormat format() const { return options_.format; }
  int columns() const { return index_.columns; }
  std::int64_t first_line() const { return options_.first_line; }
  std::int64_t sentences() const { return static_cast<std::int64_t>(index_.sentences.size()); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(index_.token_begins.size()); }

  // Sentence s has the tokens first_token(s) .. first_token(s + 1) - 1; s may be sentences().
  std::int64_t first_token(std::int64_t sentence) const {
    return index_.first_tokens.span()[static_cast<std::size_t>(sentence)];
  }
  std::span<const std::int64_t> first_tokens() const { return index_.first_tokens.span(); }

  std::string_view field(std::int64_t token, int column) const;
  // One a token of conllu and conllx, counted from 1 in the sentence: 0 is the root, -1 is `_`. Empty for
  // chunks.
  std::span<const std::int32_t> heads() const { return index_.heads.span(); }

  // The number of a token's line in the file. Takes time in proportion to the sentence: for messages.
  std::int64_t line(std::int64_t token) const;
  std::int64_t sentence_line(std::int64_t sentence) const { return place(sentence).line; }
  // The lines of a sentence, its comments included; without blank lines behind it.
  std::string_view sentence_text(std::int64_t sentence) const;

  // Bad sentences that were left out: their bytes are in the text, their tokens are not here.
  std::span<const LinePlace> skipped() const { return index_.skipped.span(); }
  // What was wrong with one of them.
  FormatError why_skipped(std::size_t number) const;

  // Throws FormatError where heads make no trees. For a text that was read without this check.
  void check_trees(TreeCheck check) const;
  // A FormatError that names the place of a field.
  FormatError fault(std::int64_t token, int column, const std::string& reason) const;

 private:
  const LinePlace& place(std::int64_t sentence) const {
    return index_.sentences.span()[static_cast<std::size_t>(sentence)];
  }
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
  // Chunks have any number of blanks between columns.
  while (options_.format == ColumnFormat::chunks && is_column_blank(end[-1])) --end;
  return {begin, static_cast<std::size_t>(end - begin)};
}

// The bytes that `text` begins with up to the end of its last sentence that certainly is whole, for streams
// that are read block by block; 0 where there is none. Comments that stand alone stay with the sentence
// behind them.
std::size_t whole_sentences(std::string_view text, ColumnFormat format);

// A string for every token, by its number in `names`.
struct TokenNames {
  std::span<const std::int32_t> numbers;  // -1: `_`
  std::span<const std::string> names;
};

// The text with other heads and relations, every other byte as it was. Throws std::invalid_argument.
std::string write_trees(const ColumnText& text, std::span<const std::int32_t> heads,
                        const TokenNames& relations);

// The text with another column; text.columns() puts one behind the last, of chunks only. Throws
// std::invalid_argument.
std::string write_column(const ColumnText& text, int column, const TokenNames& values);

}  // namespace unkernel::data
