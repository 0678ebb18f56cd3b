// The order of many doubles, faster than a comparison sort: by the leading 32 bits of their place in the
// range, three times eleven bits, and by comparison where those are equal. O(n) for scores as they occur.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unkernel {

class RadixArgsort {
 public:
  // The positions of `values` by ascending value, ties by position. Valid until the next call. Values are
  // finite.
  std::span<const std::uint32_t> sort(std::span<const double> values);

 private:
  struct Item {
    std::uint32_t key;
    std::uint32_t place;
  };

  void fill_in(std::span<const double> values);
  void sort_by_digit(int shift);
  void settle_ties(std::span<const double> values);

  std::vector<Item> items_;
  std::vector<Item> other_;
  std::vector<std::uint32_t> order_;
};

}  // namespace unkernel
