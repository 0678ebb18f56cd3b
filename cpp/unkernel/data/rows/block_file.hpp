// Reads packed rows from a file, one block at a time, so that data sets as large as the disk take little
// memory.
//
// A block stores the offsets of its rows (8 bytes each, one more than rows), then values, then columns: wide
// numbers first, so that each array is aligned. docs/formats/rows.md describes the whole file; this class
// reads only its blocks and their index.
//
// Blocks are copied instead of mapped: if a mapped file were truncated, the process would be killed, and if
// it were overwritten, data in use would change. Takes the memory of the leased blocks, and 48 bytes per
// block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "unkernel/base/file_handle.hpp"
#include "unkernel/base/large_array.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace unkernel::data {

// Blocks start at cache-line boundaries; the first block follows the magic number of the file.
inline constexpr std::int64_t block_alignment = 64;

// The entry of a block in the index of the file: five 8-byte numbers.
struct BlockEntry {
  std::int64_t position;
  std::int64_t rows;
  std::int64_t entries;
  std::int64_t layout;  // layout_code
  std::uint64_t checksum;
};

// Return the number of a layout in files; a position, rounded up to block_alignment; and the size of a block
// without padding.
std::int64_t layout_code(const Layout& layout);
std::int64_t aligned_position(std::int64_t position);
std::size_t block_bytes(std::int64_t rows, std::int64_t entries, const Layout& layout);

// The region of an open file that holds the blocks.
struct BlockRegion {
  std::string file;  // for error messages
  int descriptor;    // the caller owns it, and may close it after the constructor
  std::int64_t end;  // end of the last block, aligned
};

// Buffers for the blocks of a file, reused when released. Leases of blocks may outlive the file.
class BlockBuffers : public std::enable_shared_from_this<BlockBuffers> {
 public:
  using Buffer = LargeVector<unsigned char>;
  // Returns a buffer of at least `size` bytes. It is reused when its last owner releases it.
  std::shared_ptr<Buffer> take(std::size_t size);

 private:
  std::unique_ptr<Buffer> take_unused_or_create();

  std::mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> free_;
  std::size_t created_buffers_ = 0;
};

// Checks the content of the file. The constructor throws FormatError if the index is damaged. block() throws
// FormatError if a block is damaged, when it is first leased, or if the file changes while it is read.
class BlockFile final : public RowStore {
 public:
  BlockFile(const BlockRegion& region, std::size_t features, std::span<const BlockEntry> index);

  std::int64_t rows() const override { return rows_; }
  std::size_t features() const override { return features_; }
  std::int64_t entries() const override { return entries_; }
  std::int64_t blocks() const override { return static_cast<std::int64_t>(extents_.size()); }
  BlockLease block(std::int64_t k) const override;

 private:
  struct BlockExtent {
    std::int64_t position;
    std::int64_t first_row;
    std::int64_t rows;
    std::int64_t entries;
    Layout layout;
    std::uint64_t checksum;
  };

  void add_extent(const BlockEntry& entry, std::int64_t expected_position, std::int64_t region_end);
  void read(std::int64_t position, std::span<unsigned char> bytes) const;
  void check_unchanged() const;
  void check(std::int64_t k, const RowBlock& block, std::span<const unsigned char> bytes) const;
  [[noreturn]] void fail(std::int64_t k, const char* what) const;

  std::string file_;
  std::size_t features_;
  FileHandle handle_;
  FileVersion version_;  // of the file when it was opened
  std::int64_t rows_ = 0;
  std::int64_t entries_ = 0;
  std::vector<BlockExtent> extents_;
  std::unique_ptr<std::atomic<bool>[]> is_checked_;
  std::shared_ptr<BlockBuffers> buffers_ = std::make_shared<BlockBuffers>();
};

}  // namespace unkernel::data
