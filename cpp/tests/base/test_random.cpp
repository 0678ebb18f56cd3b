#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "check.hpp"
#include "unkernel/base/random.hpp"

namespace {

using unkernel::Random;

// The first numbers of the reference implementation of SplitMix64, for two seeds.
void test_numbers_equal_the_reference_implementation() {
  Random zero(0);
  for (const std::uint64_t expected : {0xe220a8397b1dcdafULL, 0x6e789e6aa1b965f4ULL, 0x06c45d188009454fULL,
                                       0xf88bb8a8724c81ecULL, 0x1b39896a51a8749bULL}) {
    CHECK(zero.next() == expected);
  }
  Random other(1234567);
  for (const std::uint64_t expected : {6457827717110365317ULL, 3203168211198807973ULL, 9817491932198370423ULL,
                                       4593380528125082431ULL, 16408922859458223821ULL}) {
    CHECK(other.next() == expected);
  }
}

void test_below_is_uniform_in_its_range() {
  Random random(3);
  for (const std::uint32_t bound : {1U, 2U, 7U, 4'000'000'000U}) {
    for (int i = 0; i < 1000; ++i) CHECK(random.below(bound) < bound);
  }
  std::array<int, 10> counts{};
  for (int i = 0; i < 100'000; ++i) ++counts[random.below(10)];
  for (const int count : counts) CHECK(count > 9'500 && count < 10'500);  // five standard deviations
}

std::vector<int> shuffled(std::uint64_t seed, int size) {
  std::vector<int> items(static_cast<std::size_t>(size));
  std::iota(items.begin(), items.end(), 0);
  Random(seed).shuffle(std::span(items));
  return items;
}

void test_shuffle_is_a_permutation_determined_by_the_seed() {
  for (const int size : {0, 1, 2, 3, 1000}) {
    std::vector<int> items = shuffled(5, size);
    CHECK(items == shuffled(5, size));
    if (size == 1000) CHECK(items != shuffled(6, size));
    std::sort(items.begin(), items.end());
    for (int i = 0; i < size; ++i) CHECK(items[static_cast<std::size_t>(i)] == i);
  }
}

// All six orders of three items must be equally frequent.
void test_all_permutations_are_equally_frequent() {
  Random random(4);
  std::array<int, 27> counts{};
  for (int i = 0; i < 60'000; ++i) {
    std::array<unsigned, 3> items{0, 1, 2};
    random.shuffle(std::span<unsigned>(items));
    ++counts[9 * items[0] + 3 * items[1] + items[2]];
  }
  CHECK(std::count(counts.begin(), counts.end(), 0) == 21);
  for (const int count : counts) CHECK(count == 0 || (count > 9'500 && count < 10'500));
}

void test_mix_has_no_collisions() {
  std::vector<std::uint64_t> images;
  for (std::uint64_t z = 0; z < 50'000; ++z) {
    images.push_back(Random::mix(z));
    images.push_back(Random::mix((z + 1) << 32));
  }
  std::sort(images.begin(), images.end());
  CHECK(std::adjacent_find(images.begin(), images.end()) == images.end());
}

}  // namespace

int main() {
  test_numbers_equal_the_reference_implementation();
  test_below_is_uniform_in_its_range();
  test_shuffle_is_a_permutation_determined_by_the_seed();
  test_all_permutations_are_equally_frequent();
  test_mix_has_no_collisions();
  return 0;
}
