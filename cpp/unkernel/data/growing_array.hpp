// An array that grows without copying or zeroing its contents, if the system supports this.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace unkernel::data {

namespace detail {

// Resize and free a block, as realloc and free do, but the caller passes the size. A null pointer stands for
// a block of zero bytes. If memory is exhausted, resize_block throws std::bad_alloc, and leaves the old block
// unchanged.
void* resize_block(void* block, std::size_t old_bytes, std::size_t new_bytes);
void free_block(void* block, std::size_t bytes) noexcept;

}  // namespace detail

template <class T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>, "items are moved as bytes");

 public:
  GrowingArray() = default;
  GrowingArray(GrowingArray&& other) noexcept { swap(other); }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    GrowingArray(std::move(other)).swap(*this);
    return *this;
  }
  ~GrowingArray() { detail::free_block(data_, capacity_ * sizeof(T)); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

  // Appends `count` uninitialised items, and returns a pointer to the first.
  T* extend(std::size_t count) {
    if (count > max_size() - size_) throw std::bad_alloc();
    const std::size_t needed = size_ + count;
    if (needed > capacity_) set_capacity(std::max(needed, capacity_ + capacity_ / 2));
    T* first = data_ + size_;
    size_ = needed;
    return first;
  }

  void push_back(T item) { *extend(1) = item; }
  void truncate(std::size_t size) { size_ = std::min(size_, size); }
  void clear() { size_ = 0; }
  void shrink_to_fit() { set_capacity(size_); }

 private:
  static constexpr std::size_t max_size() { return std::numeric_limits<std::size_t>::max() / sizeof(T) / 4; }

  void set_capacity(std::size_t capacity) {
    data_ = static_cast<T*>(detail::resize_block(data_, capacity_ * sizeof(T), capacity * sizeof(T)));
    capacity_ = capacity;
  }

  void swap(GrowingArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace unkernel::data
