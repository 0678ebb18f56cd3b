// Row and feature numbers are int32_t, places in arrays size_t: the conversion between the two, in one word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unkernel {

inline std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace unkernel
