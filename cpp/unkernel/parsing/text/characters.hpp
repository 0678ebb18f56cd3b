// Represents plain text as characters and their kinds.
//
// A kind is a small number: the general category of a character, divided further for the letters of some
// scripts, or a separate number for punctuation that is frequent in training. Two kinds are fixed: blanks,
// and blanks with a line end. The kinds of all code points are stored when a tokenizer is trained, so results
// do not depend on the Unicode version of a library.
//
// A lookup reads two tables. They take 2 bytes per page of 256 code points and 256 bytes per distinct page,
// about 60 KB together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "unkernel/base/flat_map.hpp"

namespace unkernel::parsing {

using Kind = std::uint8_t;
inline constexpr Kind blank_kind = 0;
inline constexpr Kind line_end_kind = 1;  // blanks with a line end

// The shape of the characters of a kind.
enum class Shape : std::uint8_t { other, upper, lower, letter, digit, mark };

// Returns whether characters of this shape form words: letters, digits and marks do.
inline bool makes_words(Shape shape) { return shape != Shape::other; }

struct CharacterTables {
  std::span<const std::uint16_t> pages;  // by 256 code points: the index of their page in `kinds`
  std::span<const std::uint8_t> kinds;   // 256 per page
  std::span<const std::uint8_t> shapes;  // by kind
  std::span<const std::uint32_t> cases;  // pairs of a character and its lower case
};

class CharacterKinds {
 public:
  // Copies the tables. Throws std::invalid_argument if they are damaged. Characters that a column of CoNLL-U
  // cannot contain, such as line ends, must be blanks.
  explicit CharacterKinds(const CharacterTables& tables);

  std::size_t kinds() const { return shapes_.size(); }
  Kind kind(std::uint32_t code) const {
    const std::size_t page = code >> 8 < pages_.size() ? pages_[code >> 8] : 0;
    return kinds_[page << 8 | (code & 255)];
  }
  Shape shape(Kind kind) const { return static_cast<Shape>(shapes_[kind]); }
  std::uint32_t lower(std::uint32_t code) const {
    if (code < low_codes) return low_lower_[code];
    const std::uint32_t* found = lower_.find(code);
    return found == nullptr ? code : *found;
  }

 private:
  static constexpr std::uint32_t low_codes = 0x600;  // Latin, Greek, Cyrillic: mostly letters with cases

  std::vector<std::uint16_t> pages_;
  std::vector<std::uint8_t> kinds_;
  std::vector<std::uint8_t> shapes_;
  std::vector<std::uint32_t> low_lower_;
  FlatMap<std::uint64_t, std::uint32_t> lower_;  // of the other codes
};

// One character, and how many bytes it has. Each invalid UTF-8 byte is a separate character.
struct Decoded {
  std::uint32_t code;
  std::uint32_t bytes;
};
Decoded decode_several_bytes(std::string_view text, std::size_t at);
inline Decoded decode(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  return first < 0x80 ? Decoded{first, 1} : decode_several_bytes(text, at);
}

// A character of a paragraph, or a run of blanks: its first byte and its properties.
struct Character {
  std::size_t begin;
  std::uint32_t code;  // for a run of blanks: a line end or a blank
  Kind kind;
  bool may_be_inside;  // a single blank that may be part of a word
};

// The bytes of a token in the text. Blanks follow it, up to `next`.
struct TokenPlace {
  std::size_t begin;
  std::size_t end;
  std::size_t next;
};

// The characters of one paragraph around a moving position. Keeps only the characters that features use.
class CharacterWindow {
 public:
  static constexpr std::size_t behind = 64;  // how many characters can be read before the position
  static constexpr std::size_t ahead = 128;  // how many characters can be read after the position

  explicit CharacterWindow(const CharacterKinds& kinds) : kinds_(kinds) {}

  // Opens the paragraph at the byte `begin`, which must not be a blank. The paragraph ends with the text, or
  // with the first blanks that have two line ends.
  void open(std::string_view text, std::size_t begin);
  // Moves the position to `now`. Characters are numbered from 0 in each paragraph; only characters near the
  // position can be read.
  void move_to(std::size_t now) {
    if (now + ahead >= last() && !ended_) refill(now);
  }
  // Returns the number of characters in the paragraph if its end is near the position; otherwise a smaller
  // number.
  std::size_t last() const { return first_ + characters_.size(); }
  const Character& operator[](std::size_t number) const {
    return number - first_ < characters_.size() ? characters_[number - first_] : nothing;
  }
  // Returns how many characters are in memory.
  std::size_t kept() const { return characters_.size(); }
  // Returns where a character ends, in bytes.
  std::size_t end_of(std::size_t number) const {
    return number + 1 < last() ? characters_[number + 1 - first_].begin : next_;
  }
  // Returns where the next paragraph begins. Correct only near the end of this paragraph.
  std::size_t next_paragraph() const { return after_; }

 private:
  static constexpr std::size_t block = 4096;
  static const Character nothing;

  void refill(std::size_t now);
  void read_blanks();

  const CharacterKinds& kinds_;
  std::string_view text_;
  std::vector<Character> characters_;
  std::size_t first_ = 0;  // number of the first character kept
  std::size_t next_ = 0;   // the next byte to read; in the end, the end of the last character
  std::size_t after_ = 0;
  bool ended_ = false;
};

}  // namespace unkernel::parsing
