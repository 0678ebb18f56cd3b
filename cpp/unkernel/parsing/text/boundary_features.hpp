// Features for deciding whether a token, or a sentence, ends at a character.
//
// A feature is a 64-bit hash of its kind and its value. Features that are frequent enough in training have a
// column. Features describe the surrounding characters, the token so far, the words before and after, and how
// these words were used in training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/parsing/text/characters.hpp"

namespace unkernel::parsing {

// The kind of boundary after a character.
enum class Boundary : std::uint8_t { inside, token, sentence };
inline constexpr std::size_t boundary_count = 3;

// Hashes characters one after another.
class TextHash {
 public:
  void add(std::uint32_t code) {
    state_ = (state_ ^ code) * 0x9e3779b97f4a7c15ULL;
    state_ ^= state_ >> 32;
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x51ed270b0a1f39c5ULL;
};

// Collects features. The hash of a feature includes its number in the list.
class FeatureList {
 public:
  explicit FeatureList(std::vector<std::uint64_t>& features) : features_(features) { features_.clear(); }
  void add(std::uint64_t value) {
    features_.push_back(Random::mix(value + 0x632be59bd9b4e019ULL * ++number_) >> 1);
  }
  void add(std::uint64_t a, std::uint64_t b) { add(Random::mix(a) + b); }
  void add(std::uint64_t a, std::uint64_t b, std::uint64_t c) { add(Random::mix(a) + b, c); }

 private:
  std::vector<std::uint64_t>& features_;
  std::uint64_t number_ = 0;
};

// Finds the columns of features, ascending. Features that were not frequent in training have no column.
void find_columns(const FlatMap<std::uint64_t, std::int32_t>& column_of,
                  std::span<const std::uint64_t> features, std::vector<std::int32_t>& columns);

// How a word was used in training, as bits.
struct WordUse {
  static constexpr std::uint8_t lower = 1;         // in lower case
  static constexpr std::uint8_t upper_inside = 2;  // with a capital inside a sentence
  static constexpr std::uint8_t first = 4;         // at the beginning of a sentence
};
using WordUses = FlatMap<std::uint64_t, std::uint8_t>;  // by the hash of the word in lower case

// A word of the text: a run of letters, digits and marks, or a single other character.
struct TextWord {
  std::uint64_t hash = 0;   // of the word in lower case; 0 if there is no word
  std::uint64_t shape = 0;  // hash of its shape
  std::size_t end = 0;      // the character after it
  bool capital = false;
};

// The decisions made so far in a sentence.
struct SentenceSoFar {
  std::size_t token_begin = 0;     // the first character of the token
  std::size_t tokens = 0;          // number of tokens before this one
  std::uint64_t before = 0;        // hash of the previous token in lower case
  std::uint64_t before_shape = 0;  // hash of its shape
  bool in_quotes = false;
  int brackets = 0;

  // Records that a token ends with the character before `end`.
  void end_token(const CharacterKinds& kinds, const CharacterWindow& text, std::size_t end, bool sentence);
};

class BoundaryFeatures {
 public:
  BoundaryFeatures(const CharacterKinds& kinds, const WordUses& uses) : kinds_(kinds), uses_(uses) {}

  // Lists the features of a boundary after the character `at`.
  void list(const CharacterWindow& text, std::size_t at, const SentenceSoFar& sentence,
            std::vector<std::uint64_t>& features) const;

  static TextWord word_at(const CharacterKinds& kinds, const CharacterWindow& text, std::size_t at);

 private:
  const CharacterKinds& kinds_;
  const WordUses& uses_;
};

}  // namespace unkernel::parsing
