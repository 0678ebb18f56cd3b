#include "unkernel/data/growing_array.hpp"

#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace unkernel::data::detail {
namespace {

#ifdef __linux__

// Large blocks are mapped here instead of by malloc. Once a mapped block has been freed, glibc's malloc
// raises the size from which it maps blocks, and smaller blocks are copied when they grow. Mapped blocks grow
// without a copy.
constexpr std::size_t smallest_mapping = std::size_t{1} << 20;

bool is_mapped(std::size_t bytes) { return bytes >= smallest_mapping; }

void* check_mapping(void* mapping) {
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  return mapping;
}

void* map(std::size_t bytes) {
  return check_mapping(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

void* remap(void* block, std::size_t old_bytes, std::size_t new_bytes) {
  return check_mapping(mremap(block, old_bytes, new_bytes, MREMAP_MAYMOVE));
}

void unmap(void* block, std::size_t bytes) { (void)munmap(block, bytes); }

#else

bool is_mapped(std::size_t) { return false; }
void* map(std::size_t) { throw std::bad_alloc(); }
void* remap(void*, std::size_t, std::size_t) { throw std::bad_alloc(); }
void unmap(void*, std::size_t) {}

#endif

void* new_block(std::size_t bytes) {
  if (is_mapped(bytes)) return map(bytes);
  void* block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void* reallocate(void* block, std::size_t bytes) {
  void* moved = std::realloc(block, bytes);
  if (moved == nullptr) throw std::bad_alloc();
  return moved;
}

}  // namespace

void* resize_block(void* block, std::size_t old_bytes, std::size_t new_bytes) {
  if (new_bytes == old_bytes) return block;
  if (new_bytes == 0) {
    free_block(block, old_bytes);
    return nullptr;
  }
  if (is_mapped(old_bytes) && is_mapped(new_bytes)) return remap(block, old_bytes, new_bytes);
  if (!is_mapped(old_bytes) && !is_mapped(new_bytes)) return reallocate(block, new_bytes);
  void* moved = new_block(new_bytes);
  if (block != nullptr) std::memcpy(moved, block, std::min(old_bytes, new_bytes));
  free_block(block, old_bytes);
  return moved;
}

void free_block(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  if (is_mapped(bytes)) {
    unmap(block, bytes);
  } else {
    std::free(block);
  }
}

}  // namespace unkernel::data::detail
