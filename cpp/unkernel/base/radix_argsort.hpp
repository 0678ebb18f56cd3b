// Argsort of doubles that is faster than a comparison sort: values are scaled to 32-bit keys, sorted in three
// passes of eleven bits, and compared only where keys are equal. O(n) unless most keys are equal.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unkernel {

class RadixArgsort {
 public:
  // Returns the positions of `values` by ascending value, ties by position; valid until the next call. Values
  // must be finite.
  std::span<const std::uint32_t> sort(std::span<const double> values);

 private:
  struct Item {
    std::uint32_t key;
    std::uint32_t position;
  };

  void compute_keys(std::span<const double> values);
  void sort_by_digit(int shift);
  void sort_ties(std::span<const double> values);

  std::vector<Item> items_;
  std::vector<Item> sorted_;
  std::vector<std::uint32_t> order_;
};

}  // namespace unkernel
