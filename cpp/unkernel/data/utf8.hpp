// Whether bytes are UTF-8 text.
#pragma once

#include <cstddef>
#include <string_view>

namespace unkernel::data {

// Where the first byte is that cannot be part of UTF-8 text, which has no NUL bytes either; text.size() where there is
// none. Overlong forms, surrogates and numbers beyond U+10FFFF are refused.
std::size_t first_bad_byte(std::string_view text);

// How many characters the bytes are, if they are UTF-8.
std::size_t count_characters(std::string_view text);

}  // namespace unkernel::data
