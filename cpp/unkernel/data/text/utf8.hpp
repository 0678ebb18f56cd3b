// Whether bytes are UTF-8 text, and its characters.
#pragma once

#include <cstddef>
#include <string_view>

namespace unkernel::data {

// Where the first byte is that cannot be part of UTF-8 text, which has no NUL bytes either; text.size() where
// there is none. Overlong forms, surrogates and numbers beyond U+10FFFF are refused.
std::size_t first_bad_byte(std::string_view text);

// Whether the byte belongs to the character that was begun before it.
inline bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// How many characters the bytes are, if they are UTF-8.
std::size_t count_characters(std::string_view text);

// As many characters as there are, at most `count`.
std::string_view first_characters(std::string_view text, std::size_t count);
std::string_view last_characters(std::string_view text, std::size_t count);

}  // namespace unkernel::data
