// The byte order mark: three bytes with which some editors begin a UTF-8 file.
#pragma once

#include <string_view>

namespace unkernel::data {

inline constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace unkernel::data
