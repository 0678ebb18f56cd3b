// The byte order mark: three bytes that some editors write at the start of a UTF-8 file.
#pragma once

#include <string_view>

namespace unkernel::data {

inline constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace unkernel::data
