// A cache of the numbers of short strings, because columns of categories have few different strings. Three
// words of eight bytes and the size determine a string of at most 24 bytes, so a lookup compares words, not
// bytes.
//
// Bytes   32 per entry. Query   a multiplication and four comparisons.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace unkernel::records {

class TextMemo {
 public:
  // Returns the number of a text. Calls find(text) for a text that is not cached; it must return at least 0,
  // or a value of Unknown.
  template <class Find>
  std::int32_t operator()(std::string_view text, const Find& find) {
    if (text.size() > longest) return find(text);
    const Entry key = key_of(text);
    Entry& entry = entries_[slot(key)];
    if (entry.first != key.first || entry.middle != key.middle || entry.last != key.last ||
        entry.size != key.size) {
      const std::int32_t number = find(text);
      entry = key;
      entry.number = number;
    }
    return entry.number;
  }

 private:
  static constexpr std::size_t longest = 24;
  static constexpr int slot_bits = 7;

  struct Entry {
    std::uint64_t first = 0, middle = 0, last = 0;
    std::uint32_t size = UINT32_MAX;  // of no string: the entry is empty
    std::int32_t number = 0;
  };

  static std::uint64_t load_eight_bytes(const char* text) {
    std::uint64_t word;
    std::memcpy(&word, text, 8);
    return word;
  }
  static std::uint64_t load_short_text(const char* text, std::size_t size) {
    if (size >= 4) {
      std::uint32_t first, last;
      std::memcpy(&first, text, 4);
      std::memcpy(&last, text + size - 4, 4);
      return std::uint64_t{last} << 32 | first;
    }
    const auto byte = [&](std::size_t at) { return std::uint64_t{static_cast<unsigned char>(text[at])}; };
    return size == 0 ? 0 : byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
  }

  static Entry key_of(std::string_view text) {
    Entry key;
    key.size = static_cast<std::uint32_t>(text.size());
    if (text.size() < 8) {
      key.first = load_short_text(text.data(), text.size());
      return key;
    }
    key.first = load_eight_bytes(text.data());
    key.last = load_eight_bytes(text.data() + text.size() - 8);
    if (text.size() > 16) key.middle = load_eight_bytes(text.data() + 8);
    return key;
  }

  static std::size_t slot(const Entry& key) {
    const std::uint64_t mixed = (key.first ^ (key.last << 13 | key.last >> 51) ^ key.middle) + key.size;
    return static_cast<std::size_t>((mixed * 0x9e3779b97f4a7c15ULL) >> (64 - slot_bits));
  }

  std::array<Entry, std::size_t{1} << slot_bits> entries_;
};

}  // namespace unkernel::records
