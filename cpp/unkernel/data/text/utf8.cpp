#include "unkernel/data/text/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace unkernel::data {
namespace {

using Byte = unsigned char;

constexpr std::uint64_t high_bits = 0x8080808080808080u;
constexpr std::uint64_t ones = 0x0101010101010101u;

// Returns true only if all eight bytes are in 1 .. 127. May return false even then, if a borrow makes a byte
// look like 0.
bool is_plain(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return (((word - ones) | word) & high_bits) == 0;
}

// By first byte of a character: the number of bytes that follow, and the valid second bytes (Unicode, table
// 3-7).
struct Lead {
  int following;
  Byte low, high;
};

Lead lead(Byte first) {
  if (first < 0x80) return {first == 0 ? -1 : 0, 0, 0};
  if (first < 0xC2) return {-1, 0, 0};
  if (first < 0xE0) return {1, 0x80, 0xBF};
  if (first < 0xF0)
    return {2, first == 0xE0 ? Byte{0xA0} : Byte{0x80}, first == 0xED ? Byte{0x9F} : Byte{0xBF}};
  if (first < 0xF5)
    return {3, first == 0xF0 ? Byte{0x90} : Byte{0x80}, first == 0xF4 ? Byte{0x8F} : Byte{0xBF}};
  return {-1, 0, 0};
}

// Returns how many bytes the first character of `text` has, or 0 if it is invalid.
std::size_t character_size(std::string_view text) {
  const Lead first = lead(static_cast<Byte>(text[0]));
  if (first.following <= 0) return first.following == 0 ? 1 : 0;
  const auto size = static_cast<std::size_t>(first.following) + 1;
  if (text.size() < size) return 0;
  const auto second = static_cast<Byte>(text[1]);
  if (second < first.low || second > first.high) return 0;
  return std::all_of(text.begin() + 2, text.begin() + first.following + 1, continues_character) ? size : 0;
}

}  // namespace

std::size_t first_bad_byte(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (at + 8 <= text.size() && is_plain(text.data() + at)) {
      at += 8;
      continue;
    }
    const std::size_t size = character_size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return text.size();
}

std::size_t count_characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (; count > 0 && end < text.size(); --count) {
    do ++end;
    while (end < text.size() && continues_character(text[end]));
  }
  return text.substr(0, end);
}

std::string_view last_characters(std::string_view text, std::size_t count) {
  std::size_t begin = text.size();
  for (; count > 0 && begin > 0; --count) {
    do --begin;
    while (begin > 0 && continues_character(text[begin]));
  }
  return text.substr(begin);
}

}  // namespace unkernel::data
