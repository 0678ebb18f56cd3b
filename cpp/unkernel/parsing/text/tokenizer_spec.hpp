// The learnt parts of a tokenizer, without the weights of its classifier: pairs of characters between which
// the boundary is known, uses of words, and the columns of features.
//
// Most characters need no classifier: if the boundary between two kinds of characters (two letters, for
// example) is the same in at least 999 of 1000 cases in training, a tokenizer always chooses it. Three tables
// store these boundaries: of two characters without a blank between them, with blanks, and with blanks that
// include a line end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/parsing/features/feature_rows.hpp"
#include "unkernel/parsing/text/boundary_features.hpp"
#include "unkernel/parsing/text/characters.hpp"
#include "unkernel/parsing/text/stretches.hpp"

namespace unkernel::parsing {

// A gold text: where each token ends, in ascending bytes, and the boundary after it.
struct SplitText {
  std::string_view text;
  std::span<const std::int64_t> ends;
  std::span<const std::uint8_t> boundaries;
};

// One row of features per decision, and its gold boundary.
struct BoundaryRows {
  FeatureRows rows;
  std::vector<std::int32_t> answers;
};

class TokenizerSpec {
 public:
  // The value of pairs for which the classifier decides the boundary.
  static constexpr std::uint8_t use_classifier = boundary_count;

  struct Stored {
    CharacterTables characters;
    std::span<const std::uint8_t> pairs;  // 3 x kinds x kinds
    std::span<const std::uint64_t> words;
    std::span<const std::uint8_t> uses;       // by word
    std::span<const std::uint64_t> features;  // in the order of their columns
  };

  // Throws std::invalid_argument if the stored parts are inconsistent.
  explicit TokenizerSpec(const Stored& stored);

  // Learns everything except the kinds of characters. Throws std::invalid_argument if the ends of tokens are
  // invalid.
  void learn(const SplitText& given, std::int64_t min_count, const Monitor& monitor);
  // Returns the decisions that need a classifier.
  BoundaryRows rows(const SplitText& given, const Monitor& monitor) const;

  const CharacterKinds& characters() const { return characters_; }
  BoundaryFeatures features() const { return BoundaryFeatures(characters_, uses_); }
  std::size_t columns() const { return features_.size(); }

  // Returns the known boundary after a character, or use_classifier. The character must not be the last of
  // its paragraph.
  std::uint8_t known_answer(const CharacterWindow& text, std::size_t at) const {
    return pairs_[pair(text, at)];
  }
  const FlatMap<std::uint64_t, std::int32_t>& column_of() const { return column_of_; }

  std::span<const std::uint8_t> pairs() const { return pairs_; }
  std::span<const std::uint64_t> words() const { return words_; }
  std::span<const std::uint8_t> word_uses() const { return word_uses_; }
  std::span<const std::uint64_t> feature_hashes() const { return features_; }

 private:
  std::size_t pair(const CharacterWindow& text, std::size_t at) const {
    const Kind next = text[at + 1].kind;
    const std::size_t table = next == blank_kind ? 1 : next == line_end_kind ? 2 : 0;
    const Kind second = table == 0 ? next : text[at + 2].kind;
    return (table * characters_.kinds() + text[at].kind) * characters_.kinds() + second;
  }
  void learn_pairs(const SplitText& given, const Monitor& monitor);
  void learn_uses(const SplitText& given, const Monitor& monitor);
  void learn_features(const SplitText& given, std::int64_t min_count, const Monitor& monitor);
  void index_words();
  void index_features();

  CharacterKinds characters_;
  std::vector<std::uint8_t> pairs_;
  std::vector<std::uint64_t> words_;  // ascending
  std::vector<std::uint8_t> word_uses_;
  WordUses uses_;
  std::vector<std::uint64_t> features_;
  FlatMap<std::uint64_t, std::int32_t> column_of_;
};

// A token: the number of its first character, its bytes, and the boundary after it.
struct TokenFound {
  std::size_t first;
  TokenPlace place;
  Boundary boundary;
  bool ends_paragraph;
};

// Visits the paragraphs of a text that does not begin with a blank. `decide(window, at, sentence)` returns
// the boundary after a character that is not the last of a paragraph; `end(window, token)` receives each
// token. Every step advances by a character, and every paragraph has at least one byte, even if the kinds of
// characters are damaged.
template <class Decide, class End>
void scan_text(const CharacterKinds& kinds, std::string_view text, Decide&& decide, End&& end,
               const Monitor& monitor) {
  CharacterWindow window(kinds);
  for (std::size_t begin = 0; begin < text.size(); begin = window.next_paragraph()) {
    monitor.throw_if_stopped();
    window.open(text, begin);
    SentenceSoFar sentence;
    std::size_t token_byte = begin;
    for (std::size_t at = 0; at < window.last();) {
      window.move_to(at);
      if (at % 4096 < 2) monitor.throw_if_stopped();
      const bool last = at + 1 == window.last();
      // Blanks after the character belong to this step, too.
      const bool apart = at + 2 < window.last() && window[at + 1].kind <= line_end_kind;
      const Boundary found = last ? Boundary::sentence : decide(window, at, sentence);
      if (found != Boundary::inside) {
        const std::size_t until = window.end_of(at);
        const std::size_t next = last ? window.next_paragraph() : apart ? window.end_of(at + 1) : until;
        end(window, TokenFound{sentence.token_begin, {token_byte, until, next}, found, last});
        sentence.end_token(kinds, window, at + 1, found == Boundary::sentence);
        sentence.token_begin = at + 1 + apart;
        token_byte = next;
      }
      at += 1 + apart;
    }
  }
}

}  // namespace unkernel::parsing
