// Japanese sentences cut into bunsetsu, with the bunsetsu that each depends on.
//
//   # S-ID:950101003-001
//   * 0 1D                                  bunsetsu 0 depends on 1, in the way D (or P, I, A ...)
//   日本 にほん 日本 名詞 地名 * *              surface reading lemma POS subPOS ctype cform
//   の の の 助詞 接続助詞 * *
//   * 1 -1D                                 the root
//   ...
//   EOS
//
// Morphemes may also have the eleven or more fields of JUMAN and KNP, where numbers stand behind the last
// four; KNP's basic phrases (`+ 0 1D ...`) and whatever follows a head in its line are bytes that pass
// through. docs/formats/bunsetsu.md says what is accepted and what is refused.
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

// What becomes of a sentence that is not what it should be.
enum class BadSentence {
  fail,  // FormatError
  skip,  // it is no sentence, its bytes pass through, and it is listed
};

// Owns the text. A morpheme costs 28 bytes beside it, a bunsetsu 21, and each different string is kept once.
class BunsetsuText {
 public:
  struct Skipped {
    std::int64_t line;
    std::int64_t column;
    std::string reason;
  };

  // `first_line` is the number of the text's first line, for texts that are parts of a file.
  BunsetsuText(std::string text, std::string file, std::int64_t first_line, BadSentence bad);

  std::size_t sentences() const { return sentences_.size(); }
  std::size_t bunsetsu() const { return heads_.size(); }
  std::size_t morphemes() const { return symbols_.size() / morpheme_fields; }
  // For s or b up to and including the number of sentences or bunsetsu.
  std::size_t first_bunsetsu(std::size_t sentence) const {
    return sentence == sentences() ? bunsetsu() : sentences_[sentence].first_bunsetsu;
  }
  std::size_t first_morpheme(std::size_t bunsetsu) const { return first_morphemes_[bunsetsu]; }

  // Within the sentence, from 0; no_head for the root. Nothing else is asked of them: corpora have some that
  // depend on themselves, on what comes before, or on what is not there.
  std::span<const std::int32_t> heads() const { return heads_; }
  std::string_view types() const { return types_; }
  // Equal strings have equal symbols, whatever field they stand in.
  std::int32_t symbol(std::size_t morpheme, MorphemeField field) const {
    return symbols_[morpheme * morpheme_fields + static_cast<std::size_t>(field)];
  }
  const NameTable& names() const { return names_; }
  std::string_view field(std::size_t morpheme, MorphemeField which) const {
    return names_.name(symbol(morpheme, which));
  }

  const std::string& text() const { return text_; }
  // From its comments to its EOS.
  std::string_view sentence_text(std::size_t sentence) const;
  std::int64_t sentence_line(std::size_t sentence) const { return sentences_[sentence].line; }
  // How many lines the text has.
  std::int64_t lines() const { return lines_; }
  const std::vector<Skipped>& skipped() const { return skipped_; }

  // The text, or one of its sentences, with other heads and types, which check_heads() likes: all other bytes
  // as they are.
  std::string with_heads(std::span<const std::int32_t> heads, std::string_view types) const;
  std::string sentence_with_heads(std::size_t sentence, std::span<const std::int32_t> heads,
                                  std::string_view types) const;
  // Throws std::invalid_argument unless there is one of each for every bunsetsu, heads are bunsetsu of the
  // sentence, no_head, or what was read, and types are letters.
  void check_heads(std::span<const std::int32_t> heads, std::string_view types) const;

 private:
  struct Sentence {
    std::size_t first_bunsetsu;
    std::size_t begin;  // bytes of the text
    std::size_t end;
    std::int64_t line;
  };
  struct Line {
    std::string_view text;  // without the newline
    std::size_t begin;
    std::int64_t number;
  };

  // Of the text from `begin` to `end`, where the bunsetsu stand.
  std::string rewritten(std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
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
  std::vector<std::size_t> head_begins_;      // where the head's number stands in the text
  std::vector<std::size_t> first_morphemes_;  // one more than there are bunsetsu
  std::vector<std::int32_t> symbols_;         // morpheme_fields a morpheme
  std::vector<Skipped> skipped_;
};

// How much of a text that goes on is whole sentences: up to the last line that is EOS. Looks at the bytes
// from `from` on, and the few before that a line might have begun with.
std::size_t whole_sentences(std::string_view text, std::size_t from);

}  // namespace unkernel::data
