#include <cstdint>
#include <new>
#include <utility>

#include "check.hpp"
#include "unkernel/data/growing_array.hpp"

namespace {

using unkernel::data::GrowingArray;

void check_counts_up(const GrowingArray<std::int64_t>& array, std::size_t size) {
  CHECK(array.size() == size);
  for (std::size_t i = 0; i < size; ++i) CHECK(array.span()[i] == static_cast<std::int64_t>(i));
}

// Blocks move between the heap and mappings while they grow and shrink.
void test_items_are_kept_while_growing_and_shrinking() {
  GrowingArray<std::int64_t> array;
  for (std::int64_t i = 0; i < 1'000'000; ++i) array.push_back(i);
  check_counts_up(array, 1'000'000);
  for (const std::size_t size : {500'000U, 200'000U, 1'000U, 1U}) {
    array.truncate(size);
    array.shrink_to_fit();
    check_counts_up(array, size);
  }
  array.extend(300'000);
  array.truncate(1);
  check_counts_up(array, 1);
}

void test_empty_and_moved_arrays() {
  GrowingArray<std::int64_t> array;
  array.shrink_to_fit();
  CHECK(array.empty() && array.data() == nullptr);
  array.push_back(0);
  GrowingArray<std::int64_t> other = std::move(array);
  check_counts_up(other, 1);
  other.clear();
  other.shrink_to_fit();
  CHECK(other.data() == nullptr);
}

void test_impossible_sizes_are_refused() {
  GrowingArray<std::int64_t> array;
  array.push_back(0);
  CHECK_THROWS(array.extend(static_cast<std::size_t>(-1)), std::bad_alloc);
  CHECK_THROWS(array.extend(static_cast<std::size_t>(1) << 59), std::bad_alloc);
  check_counts_up(array, 1);
}

}  // namespace

int main() {
  test_items_are_kept_while_growing_and_shrinking();
  test_empty_and_moved_arrays();
  test_impossible_sizes_are_refused();
  return 0;
}
