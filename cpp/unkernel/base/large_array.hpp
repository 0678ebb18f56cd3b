// Memory for large tables that are read at random. It requests huge pages, because such tables otherwise
// spend much of their time in page walks.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace unkernel {

inline constexpr std::size_t huge_page = std::size_t{1} << 21;

// Asks the system for huge pages. If it ignores this hint, programs are slower, but results do not change.
inline void advise_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto begin = (reinterpret_cast<std::size_t>(memory) + huge_page - 1) & ~(huge_page - 1);
  const auto end = (reinterpret_cast<std::size_t>(memory) + bytes) & ~(huge_page - 1);
  if (end > begin) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

// Returns memory to be released by std::free; null if memory runs out. Large blocks begin at a huge page.
// Their last page is a huge page, too, if at least half of it is used.
inline void* allocate_large(std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (bytes >= huge_page / 2 && bytes <= static_cast<std::size_t>(-1) - huge_page) {
    void* memory = std::aligned_alloc(huge_page, (bytes + huge_page - 1) & ~(huge_page - 1));
    if (memory != nullptr) advise_huge_pages(memory, bytes + huge_page / 2);
    return memory;
  }
#endif
  return std::malloc(bytes > 0 ? bytes : 1);
}

// An allocator for std::vector that requests huge pages for large blocks.
template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    void* memory = allocate_large(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  template <class U>
  bool operator==(const LargeAllocator<U>&) const {
    return true;
  }
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

// An array that the system zeroes lazily: pages are not touched before their first use, so a table that stays
// mostly empty costs little.
template <class T>
class LargeArray {
 public:
  LargeArray() = default;
  explicit LargeArray(std::size_t size) : data_(allocate(size)), size_(size) {}

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<T> span() { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };

  static T* allocate(std::size_t size) {
    if (size > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    void* memory = std::calloc(size > 0 ? size : 1, sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    advise_huge_pages(memory, size * sizeof(T));
    return static_cast<T*>(memory);
  }

  std::unique_ptr<T[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace unkernel
