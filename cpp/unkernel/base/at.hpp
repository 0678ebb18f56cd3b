// Converts row and feature numbers (int32_t) to array indices (size_t).
#pragma once

#include <cstddef>
#include <cstdint>

namespace unkernel {

inline std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace unkernel
