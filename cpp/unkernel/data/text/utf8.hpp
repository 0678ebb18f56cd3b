// Validates UTF-8 text and counts its characters.
#pragma once

#include <cstddef>
#include <string_view>

namespace unkernel::data {

// Returns the position of the first byte that is NUL or invalid UTF-8, or text.size() if there is none.
// Overlong forms, surrogates and code points beyond U+10FFFF are invalid.
std::size_t first_bad_byte(std::string_view text);

// Returns whether the byte continues a character (10xxxxxx).
inline bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Returns the number of characters in valid UTF-8 text.
std::size_t count_characters(std::string_view text);

// Returns the first `count` characters, or the whole text if it has fewer.
std::string_view first_characters(std::string_view text, std::size_t count);
std::string_view last_characters(std::string_view text, std::size_t count);

}  // namespace unkernel::data
