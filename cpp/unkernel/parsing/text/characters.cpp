#include "unkernel/parsing/text/characters.hpp"

#include <algorithm>
#include <stdexcept>

#include "unkernel/data/text/utf8.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::size_t code_points = 0x110000;
constexpr std::u32string_view always_blank(U"\0\t\n\r ", 5);  // CoNLL-U columns cannot contain these
// The code of an invalid byte b is invalid_byte + b: a surrogate, which valid UTF-8 cannot contain.
constexpr std::uint32_t invalid_byte = 0xDC00;

bool continues(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() - at < count) return false;
  for (std::size_t k = 1; k < count; ++k) {
    if (!data::continues_character(text[at + k])) return false;
  }
  return true;
}

bool is_line_end(std::string_view text, std::size_t at) {
  return text[at] == '\n' || (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] != '\n'));
}

// Returns whether a CoNLL-U column may contain this character; control characters are invalid.
bool may_stand_in_word(std::uint32_t code) { return code == ' ' || code >= 0xA0; }

}  // namespace

CharacterKinds::CharacterKinds(const CharacterTables& tables)
    : pages_(tables.pages.begin(), tables.pages.end()),
      kinds_(tables.kinds.begin(), tables.kinds.end()),
      shapes_(tables.shapes.begin(), tables.shapes.end()) {
  const auto fail_as_damaged = [] { throw std::invalid_argument("the kinds of characters are damaged"); };
  if (pages_.size() != code_points >> 8 || kinds_.empty() || kinds_.size() % 256 != 0) fail_as_damaged();
  if (shapes_.size() < 2 || shapes_.size() > 256 || tables.cases.size() % 2 != 0) fail_as_damaged();
  if (std::ranges::max(pages_) >= kinds_.size() >> 8 || std::ranges::max(kinds_) >= shapes_.size())
    fail_as_damaged();
  if (std::ranges::max(shapes_) > static_cast<std::uint8_t>(Shape::mark)) fail_as_damaged();
  if (std::ranges::find(kinds_, line_end_kind) != kinds_.end())
    fail_as_damaged();  // this kind is for runs of blanks, not for single characters
  if (std::ranges::any_of(tables.cases, [](std::uint32_t code) { return code >= code_points; }))
    fail_as_damaged();
  if (!std::ranges::all_of(always_blank, [&](char32_t code) { return kind(code) == blank_kind; }))
    throw std::invalid_argument(
        "the kinds of characters are damaged: blanks, tabs and line ends must be blank");
  low_lower_.resize(low_codes);
  for (std::uint32_t code = 0; code < low_codes; ++code)
    low_lower_[code] = code - 'A' < 26 ? code + 32 : code;
  for (std::size_t k = 0; k < tables.cases.size(); k += 2) {
    const std::uint32_t code = tables.cases[k];
    (code < low_codes ? low_lower_[code] : lower_[code]) = tables.cases[k + 1];
  }
}

Decoded decode_several_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + k]));
  };
  const std::uint32_t first = byte(0);
  if (first >= 0xC2 && first < 0xE0 && continues(text, at, 2)) return {(first & 31) << 6 | (byte(1) & 63), 2};
  if (first >= 0xE0 && first < 0xF0 && continues(text, at, 3))
    return {(first & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63), 3};
  if (first >= 0xF0 && first < 0xF5 && continues(text, at, 4))
    return {(first & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63), 4};
  return {invalid_byte + first, 1};
}

const Character CharacterWindow::nothing{0, 0, line_end_kind, false};

void CharacterWindow::open(std::string_view text, std::size_t begin) {
  text_ = text;
  characters_.clear();
  first_ = 0;
  next_ = after_ = begin;
  ended_ = false;
  refill(0);
}

void CharacterWindow::refill(std::size_t now) {
  const std::size_t past = now > first_ + behind ? now - behind - first_ : 0;
  characters_.erase(characters_.begin(), characters_.begin() + static_cast<std::ptrdiff_t>(past));
  first_ += past;
  for (std::size_t k = 0; k < block && !ended_; ++k) {
    if (next_ == text_.size()) {
      after_ = next_;
      ended_ = true;
      return;
    }
    const Decoded decoded = decode(text_, next_);
    const Kind kind = kinds_.kind(decoded.code);
    if (kind == blank_kind) {
      read_blanks();
    } else {
      characters_.push_back({next_, decoded.code, kind, false});
      next_ += decoded.bytes;
    }
  }
}

void CharacterWindow::read_blanks() {
  const std::size_t begin = next_;
  int line_ends = 0, count = 0;
  std::uint32_t code = ' ';
  std::size_t at = begin;
  while (at < text_.size()) {
    const Decoded decoded = decode(text_, at);
    if (kinds_.kind(decoded.code) != blank_kind) break;
    line_ends += is_line_end(text_, at);
    code = decoded.code;
    ++count;
    at += decoded.bytes;
  }
  after_ = at;
  if (line_ends > 1 || at == text_.size()) {
    ended_ = true;  // next_ stays at the end of the last character
    return;
  }
  const Kind kind = line_ends == 0 ? blank_kind : line_end_kind;
  characters_.push_back({begin, line_ends == 0 ? U' ' : U'\n', kind, count == 1 && may_stand_in_word(code)});
  next_ = at;
}

}  // namespace unkernel::parsing
