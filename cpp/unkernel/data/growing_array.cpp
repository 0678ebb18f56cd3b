#include "unkernel/data/growing_array.hpp"

#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace unkernel::data::detail {
namespace {

#ifdef __linux__

// Blocks of at least this size are mapped without malloc, because mapped blocks grow without a copy. malloc
// of glibc also maps large blocks, but raises its threshold whenever a mapped block is freed.
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
  void* new_location = std::realloc(block, bytes);
  if (new_location == nullptr) throw std::bad_alloc();
  return new_location;
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
  void* new_location = new_block(new_bytes);
  if (block != nullptr) std::memcpy(new_location, block, std::min(old_bytes, new_bytes));
  free_block(block, old_bytes);
  return new_location;
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
