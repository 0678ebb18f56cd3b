// One seeded generator for the whole core: SplitMix64 (Steele, Lea & Flood 2014).
// Its results do not depend on the platform or the standard library.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace unkernel {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return mix(state_);
  }

  // Returns a number that is uniform in [0, bound), up to a bias of bound / 2^32. Multiplies instead of
  // dividing.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[below(static_cast<std::uint32_t>(left))]);
    }
  }

  // Mixes a 64-bit word: a bijection that spreads every input bit over the whole result.
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace unkernel
