// Reads Japanese sentences that are segmented into bunsetsu, with the head of each bunsetsu.
//
//   # S-ID:950101003-001
//   * 0 1D                                  bunsetsu 0 depends on 1, with the type D (or P, I, A ...)
//   日本 にほん 日本 名詞 地名 * *              surface reading lemma POS subPOS ctype cform
//   の の の 助詞 接続助詞 * *
//   * 1 -1D                                 the root
//   ...
//   EOS
//
// Morphemes may also have the eleven or more fields of JUMAN and KNP, where a number follows each of the last
// four fields. KNP's basic phrases (`+ 0 1D ...`), and anything after the head in a line, are copied
// unchanged. docs/formats/bunsetsu.md specifies what the reader accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/text/name_table.hpp"

namespace unkernel::data {

enum class MorphemeField : std::size_t { surface, reading, lemma, pos, subpos, ctype, cform };
inline constexpr std::size_t morpheme_fields = 7;
inline constexpr std::int32_t no_head = -1;

// Selects how to treat an invalid sentence.
enum class BadSentence {
  fail,  // throw FormatError
  skip,  // copy its bytes unchanged and record it
};

// Owns the text. Takes 28 bytes per morpheme and 21 per bunsetsu in addition, and stores each distinct string
// once.
class BunsetsuText {
 public:
  struct Skipped {
    std::int64_t line;
    std::int64_t column;
    std::string reason;
  };

  // `first_line` is the number of the first line, for a text that is a part of a file.
  BunsetsuText(std::string text, std::string file, std::int64_t first_line, BadSentence bad);

  std::size_t sentences() const { return sentences_.size(); }
  std::size_t bunsetsu() const { return heads_.size(); }
  std::size_t morphemes() const { return symbols_.size() / morpheme_fields; }
  // Return where a sentence (or bunsetsu) begins. The argument may be the number of sentences (or of
  // bunsetsu); the result is then the end of the text.
  std::size_t first_bunsetsu(std::size_t sentence) const {
    return sentence == sentences() ? bunsetsu() : sentences_[sentence].first_bunsetsu;
  }
  std::size_t first_morpheme(std::size_t bunsetsu) const { return first_morphemes_[bunsetsu]; }

  // Returns the head of each bunsetsu, counted from 0 in its sentence; the root has no_head. Corpora contain
  // bunsetsu that depend on themselves, on earlier bunsetsu, or on missing ones, so such heads are accepted.
  std::span<const std::int32_t> heads() const { return heads_; }
  std::string_view types() const { return types_; }
  // Returns the symbol of a string. Equal strings have equal symbols, even in different fields.
  std::int32_t symbol(std::size_t morpheme, MorphemeField field) const {
    return symbols_[morpheme * morpheme_fields + static_cast<std::size_t>(field)];
  }
  const NameTable& names() const { return names_; }
  std::string_view field(std::size_t morpheme, MorphemeField which) const {
    return names_.name(symbol(morpheme, which));
  }

  const std::string& text() const { return text_; }
  // Returns the lines of a sentence, from its comments to its EOS.
  std::string_view sentence_text(std::size_t sentence) const;
  std::int64_t sentence_line(std::size_t sentence) const { return sentences_[sentence].line; }
  // Returns the number of lines of the text.
  std::int64_t lines() const { return lines_; }
  const std::vector<Skipped>& skipped() const { return skipped_; }

  // Return the text, or one of its sentences, with other heads and types, which must pass check_heads(). All
  // other bytes stay the same.
  std::string with_heads(std::span<const std::int32_t> heads, std::string_view types) const;
  std::string sentence_with_heads(std::size_t sentence, std::span<const std::int32_t> heads,
                                  std::string_view types) const;
  // Throws std::invalid_argument unless there is one head and one type per bunsetsu. A head must be a
  // bunsetsu of the sentence, no_head, or the head that was read; types must be letters.
  void check_heads(std::span<const std::int32_t> heads, std::string_view types) const;

 private:
  struct Sentence {
    std::size_t first_bunsetsu;
    std::size_t begin;  // in bytes of the text
    std::size_t end;
    std::int64_t line;
  };
  struct Line {
    std::string_view text;  // without the newline
    std::size_t begin;
    std::int64_t number;
  };

  // Returns the text from `begin` to `end`, with heads and types replaced.
  std::string rewrite(std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                      std::span<const std::int32_t> heads, std::string_view types) const;
  void check_counts(std::span<const std::int32_t> heads, std::string_view types) const;
  bool next_line(std::size_t& at, Line& line);
  void read_sentence(std::span<const Line> lines);
  void keep_or_skip(std::span<const Line> lines, std::size_t end, BadSentence bad);
  bool read_bunsetsu(const Line& line, std::int32_t number);
  void read_morpheme(const Line& line);
  [[noreturn]] void fail(const Line& line, std::size_t column, const std::string& why) const;

  std::string text_;
  std::string file_;
  std::int64_t first_line_;
  std::int64_t lines_ = 0;
  NameTable names_;
  std::vector<Sentence> sentences_;
  std::vector<std::int32_t> heads_;
  std::string types_;
  std::vector<std::size_t> head_begins_;      // where the number of the head starts in the text
  std::vector<std::size_t> first_morphemes_;  // bunsetsu + 1 entries
  std::vector<std::int32_t> symbols_;         // morpheme_fields per morpheme
  std::vector<Skipped> skipped_;
};

// Returns the length of the longest prefix that consists of whole sentences, up to the last EOS line. For a
// text that grows: looks for EOS only from `from` on, or a few bytes earlier, because EOS may have arrived
// before its newline.
std::size_t size_of_whole_sentences(std::string_view text, std::size_t from);

}  // namespace unkernel::data
