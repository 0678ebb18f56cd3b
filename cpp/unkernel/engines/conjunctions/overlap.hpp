// Computes the size of the intersection of two bit sets.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace unkernel::engines {

// Returns the number of bits that both sets have. The number of words must be even.
template <std::size_t Words>
[[gnu::always_inline]] inline std::size_t count_common_bits(const std::uint64_t* a, const std::uint64_t* b) {
  static_assert(Words % 2 == 0 && Words < 2 * 32, "the counts of all words must fit into a byte");
#if defined(__aarch64__)
  uint8x16_t counts = vdupq_n_u8(0);
  for (std::size_t k = 0; k < Words; k += 2) {
    counts = vaddq_u8(counts, vcntq_u8(vreinterpretq_u8_u64(vandq_u64(vld1q_u64(a + k), vld1q_u64(b + k)))));
  }
  return vaddlvq_u8(counts);
#else
  std::size_t count = 0;
  for (std::size_t k = 0; k < Words; ++k) count += static_cast<std::size_t>(std::popcount(a[k] & b[k]));
  return count;
#endif
}

// Calls visit(number) for each set bit, in ascending order.
template <class Visit>
void for_each_bit(const std::uint64_t* words, std::size_t count, const Visit& visit) {
  for (std::size_t word = 0; word < count; ++word) {
    for (std::uint64_t remaining = words[word]; remaining != 0; remaining &= remaining - 1)
      visit(64 * word + static_cast<std::size_t>(std::countr_zero(remaining)));
  }
}

}  // namespace unkernel::engines
