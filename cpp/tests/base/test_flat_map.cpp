#include <cstdint>
#include <unordered_map>

#include "check.hpp"
#include "unkernel/base/flat_map.hpp"
#include "unkernel/base/random.hpp"

namespace {

using unkernel::FlatMap;
using unkernel::Random;
using Map = FlatMap<std::uint64_t, std::uint32_t>;
using Twin = std::unordered_map<std::uint64_t, std::uint32_t>;

void check_equal(Map& map, const Twin& twin) {
  CHECK(map.size() == twin.size());
  for (const auto& [key, value] : twin) CHECK(map[key] == value);
  CHECK(map.size() == twin.size());
}

// With a small `range`, most keys occur repeatedly. With a large `range`, nearly all keys are new, and the
// map grows many times.
void add_random_keys(Map& map, Twin& twin, Random& random, int count, std::uint32_t range) {
  for (int i = 0; i < count; ++i) {
    const std::uint64_t key = std::uint64_t{random.below(range)} << (random.below(4) * 10);
    const std::uint32_t value = random.below(1000);
    map[key] += value;
    twin[key] += value;
  }
}

void test_counts_equal_those_of_the_standard_map() {
  Random random(1);
  Map map;
  Twin twin;
  for (const std::uint32_t range : {100U, 5'000U, 1U << 31}) {
    add_random_keys(map, twin, random, 20'000, range);
    check_equal(map, twin);
  }
}

void test_new_keys_have_the_value_zero() {
  Map map;
  CHECK(map.size() == 0);
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, Map::no_key - 1}) {
    CHECK(map[key] == 0);
    map[key] = 7;
  }
  CHECK(map.size() == 3 && map[0] == 7 && map[Map::no_key - 1] == 7);
}

// No old entry may remain, whether clear() keeps its memory or releases it.
void test_clear_removes_all_entries() {
  Random random(2);
  Map map;
  for (const int count : {50'000, 3, 3, 3, 3, 3, 700, 40'000, 1}) {
    Twin twin;
    add_random_keys(map, twin, random, count, 1U << 30);
    check_equal(map, twin);
    map.clear();
    CHECK(map.size() == 0);
    for (const auto& entry : twin) {
      CHECK(map[entry.first] == 0);
      if (map.size() == 100) break;
    }
    map.clear();
  }
}

// Keys that differ only in high bits, or are equally spaced, must not fall into one run of slots.
void test_regularly_spaced_keys_are_found() {
  for (int shift = 0; shift < 48; shift += 8) {
    Map map;
    for (std::uint64_t i = 0; i < 10'000; ++i) map[i << shift] = static_cast<std::uint32_t>(i);
    CHECK(map.size() == 10'000);
    for (std::uint64_t i = 0; i < 10'000; ++i) CHECK(map[i << shift] == i);
  }
}

}  // namespace

int main() {
  test_counts_equal_those_of_the_standard_map();
  test_new_keys_have_the_value_zero();
  test_clear_removes_all_entries();
  test_regularly_spaced_keys_are_found();
  return 0;
}
