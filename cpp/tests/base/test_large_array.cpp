#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "check.hpp"
#include "unkernel/base/large_array.hpp"

namespace {

using unkernel::LargeAllocator;
using unkernel::LargeArray;
using unkernel::LargeVector;

// Fills some memory and frees it, so that the next allocation of this size may reuse it.
void leave_dirty_memory(std::size_t bytes) {
  std::vector<char> memory(bytes);
  std::memset(memory.data(), 0xab, bytes);
  void* volatile used = memory.data();  // otherwise the compiler may remove the call of memset
  (void)used;
}

void test_new_arrays_are_zero() {
  for (const std::size_t size : {1U, 1000U, 3'000'000U}) {
    leave_dirty_memory(size * sizeof(double));
    LargeArray<double> array(size);
    CHECK(array.size() == size && array.span().size() == size);
    for (const double value : array.span()) CHECK(value == 0.0);
    array.data()[size - 1] = 1.0;
    CHECK(array.span().back() == 1.0);
  }
}

void test_empty_and_moved_arrays() {
  const LargeArray<double> none;
  CHECK(none.size() == 0 && none.data() == nullptr);
  LargeArray<double> array(0);
  CHECK(array.size() == 0);
  array = LargeArray<double>(10);
  array.data()[3] = 4.0;
  const LargeArray<double> other = std::move(array);
  CHECK(other.size() == 10 && other.data()[3] == 4.0);
}

void test_impossible_sizes_are_refused() {
  // The number of bytes wraps around to a small number.
  volatile std::size_t too_many = static_cast<std::size_t>(-1) / sizeof(double) + 2;
  CHECK_THROWS(LargeArray<double>(too_many), std::bad_alloc);
  CHECK_THROWS(LargeAllocator<double>().allocate(too_many), std::bad_alloc);
}

void test_growing_vectors_keep_their_items() {
  LargeVector<std::int32_t> items;
  for (std::int32_t i = 0; i < 2'000'000; ++i) items.push_back(i);
  for (std::int32_t i = 0; i < 2'000'000; ++i) CHECK(items[static_cast<std::size_t>(i)] == i);
  LargeVector<std::int32_t> empty;
  empty.reserve(0);
  CHECK(empty.empty());
}

}  // namespace

int main() {
  test_new_arrays_are_zero();
  test_empty_and_moved_arrays();
  test_impossible_sizes_are_refused();
  test_growing_vectors_keep_their_items();
  return 0;
}
