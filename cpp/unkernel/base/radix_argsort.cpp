#include "unkernel/base/radix_argsort.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace unkernel {
namespace {

constexpr int digit_bits = 11;
constexpr std::uint32_t digits = 1U << digit_bits;
constexpr std::size_t min_radix_size = 256;  // below this size, a comparison sort is faster

}  // namespace

std::span<const std::uint32_t> RadixArgsort::sort(std::span<const double> values) {
  order_.resize(values.size());
  if (values.size() < min_radix_size) {
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
      return values[a] != values[b] ? values[a] < values[b] : a < b;
    });
    return order_;
  }
  compute_keys(values);
  for (int shift = 0; shift < 32; shift += digit_bits) sort_by_digit(shift);
  sort_ties(values);
  for (std::size_t k = 0; k < items_.size(); ++k) order_[k] = items_[k].position;
  return order_;
}

void RadixArgsort::compute_keys(std::span<const double> values) {
  const auto [least, most] = std::ranges::minmax(values);
  // Halve the operands first, so that the difference of any two finite doubles is finite.
  const double width = most / 2 - least / 2;
  // If the width is negligible, all keys are equal, and sort_ties compares the values.
  const double scale = width > 1e-290 ? 4294967295.0 / width : 0.0;
  items_.resize(values.size());
  sorted_.resize(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double position = std::min((values[k] / 2 - least / 2) * scale, 4294967295.0);
    items_[k] = {static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(k)};
  }
}

// Sorts by one digit. Stable, so sorting by all digits from the least to the most significant sorts by key.
void RadixArgsort::sort_by_digit(int shift) {
  std::array<std::uint32_t, digits> begin{};
  for (const Item& item : items_) ++begin[(item.key >> shift) % digits];
  std::uint32_t sum = 0;
  for (std::uint32_t& count : begin) sum += std::exchange(count, sum);
  for (const Item& item : items_) sorted_[begin[(item.key >> shift) % digits]++] = item;
  items_.swap(sorted_);
}

void RadixArgsort::sort_ties(std::span<const double> values) {
  for (std::size_t begin = 0; begin < items_.size();) {
    std::size_t end = begin + 1;
    bool sorted = true;
    for (; end < items_.size() && items_[end].key == items_[begin].key; ++end) {
      sorted = sorted && values[items_[end - 1].position] <= values[items_[end].position];
    }
    if (!sorted) {
      std::stable_sort(items_.begin() + static_cast<std::ptrdiff_t>(begin),
                       items_.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Item& a, const Item& b) { return values[a.position] < values[b.position]; });
    }
    begin = end;
  }
}

}  // namespace unkernel
