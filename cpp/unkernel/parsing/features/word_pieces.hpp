// Derives features from the letters of a word.
//
// Only ASCII letters are distinguished by case. Tags already distinguish names from other words, so a table
// of the cases of all Unicode letters is not worth its size.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "unkernel/data/decimal.hpp"

namespace unkernel::parsing {

inline bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
inline bool is_small(char c) { return c >= 'a' && c <= 'z'; }
inline char small(char c) { return is_capital(c) ? static_cast<char>(c + ('a' - 'A')) : c; }

struct ShapeOptions {
  char beyond_ascii;    // replaces each byte outside ASCII
  std::size_t longest;  // of a shape, after which it is cut off
};

// Appends the shape of a word: X for an upper-case letter, x for a lower-case letter, d for a digit.
// Collapses runs, so Xxxx-dd becomes Xx-d.
inline void append_shape(std::string_view word, const ShapeOptions& options, std::string& to) {
  const std::size_t begin = to.size();
  for (const char c : word) {
    const bool beyond_ascii = static_cast<unsigned char>(c) >= 0x80;
    const char kind = is_capital(c)       ? 'X'
                      : is_small(c)       ? 'x'
                      : data::is_digit(c) ? 'd'
                      : beyond_ascii      ? options.beyond_ascii
                                          : c;
    if (to.size() > begin && to.back() == kind) continue;
    if (to.size() - begin == options.longest) break;
    to.push_back(kind);
  }
}

}  // namespace unkernel::parsing
