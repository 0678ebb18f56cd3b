// Compares RadixArgsort with a stable comparison sort, for various ranges, ties and numbers of values.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "check.hpp"
#include "unkernel/base/radix_argsort.hpp"
#include "unkernel/base/random.hpp"

namespace {

using unkernel::RadixArgsort;
using unkernel::Random;
using Values = std::vector<double>;

constexpr double largest = std::numeric_limits<double>::max();
constexpr double smallest = std::numeric_limits<double>::denorm_min();

// Sizes just below and above the size from which keys are sorted by radix, and a much larger size.
const std::vector<std::size_t> sizes = {0, 1, 2, 255, 256, 257, 3000};

std::vector<std::uint32_t> sort_by_comparison(const Values& values) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return values[i]; });
  return order;
}

void check(RadixArgsort& sorter, const Values& values) {
  const auto order = sorter.sort(values);
  CHECK(std::ranges::equal(order, sort_by_comparison(values)));
}

template <class Draw>
void check_random_values(const Draw& draw) {
  RadixArgsort sorter;  // used for all sizes, because a sorter reuses its memory
  Random random(1);
  for (const std::size_t size : sizes) {
    Values values(size);
    std::ranges::generate(values, [&] { return draw(random); });
    check(sorter, values);
  }
  check(sorter, {3.0, 1.0, 2.0});  // fewer values than before
}

double unit(Random& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

void test_uniform_scores() {
  check_random_values([](Random& random) { return 20.0 * unit(random) - 10.0; });
}

void test_ties_keep_their_order() {
  check_random_values([](Random& random) { return static_cast<double>(random.below(7)); });
  check_random_values([](Random&) { return 1.5; });
  check_random_values([](Random& random) { return random.below(2) == 0 ? 0.0 : -0.0; });
}

// Values that differ by less than the resolution of 32-bit keys are compared.
void test_values_closer_than_the_resolution_of_keys() {
  check_random_values([](Random& random) { return random.below(50) == 0 ? 1e300 : unit(random); });
  check_random_values(
      [](Random& random) { return random.below(50) == 0 ? -1e12 : 1.0 + 0x1p-52 * random.below(9); });
}

void test_all_finite_doubles() {
  check_random_values(
      [](Random& random) { return random.below(2) == 0 ? -largest * unit(random) : largest * unit(random); });
  check_random_values([](Random& random) {
    return std::vector{-largest, -1.0, 0.0, smallest, 1.0, largest}[random.below(6)];
  });
}

void test_the_smallest_doubles() {
  check_random_values([](Random& random) { return smallest * random.below(2); });
  check_random_values(
      [](Random& random) { return smallest * (static_cast<double>(random.below(1000)) - 500.0); });
  check_random_values([](Random& random) { return 1e-305 * unit(random); });
}

void test_sorted_and_reversed() {
  RadixArgsort sorter;
  Values rising(5000);
  std::iota(rising.begin(), rising.end(), -2500.0);
  check(sorter, rising);
  std::ranges::reverse(rising);
  check(sorter, rising);
}

}  // namespace

int main() {
  test_uniform_scores();
  test_ties_keep_their_order();
  test_values_closer_than_the_resolution_of_keys();
  test_all_finite_doubles();
  test_the_smallest_doubles();
  test_sorted_and_reversed();
  return 0;
}
