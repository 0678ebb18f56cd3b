// Packed rows in a file, mapped a block at a time: data sets as large as the disk, in little memory.
//
// A block lies in the file as its rows' offsets (8 bytes each, one more than rows), its values and its
// columns: wide numbers first, so that each is aligned. docs/formats/rows.md describes the whole file;
// only its blocks and their index are read here.
//
// A lease costs an fstat, an mmap and an munmap. What is in memory is the leased blocks, besides 48 bytes a
// block; what the system keeps in its page cache is its own affair, and so is what it reads ahead: to ask for
// blocks (posix_fadvise) brought them in small pages, which made later passes take half as long again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unkernel/data/rows/row_store.hpp"

namespace unkernel::cutplane {

// Where blocks begin: in whole cache lines, the first one after the file's magic.
inline constexpr std::int64_t block_alignment = 64;

// One block in the file's index: five numbers of 8 bytes.
struct BlockEntry {
  std::int64_t position;
  std::int64_t rows;
  std::int64_t entries;
  std::int64_t layout;  // layout_code
  std::uint64_t checksum;
};

std::int64_t layout_code(const Layout& layout);
std::int64_t aligned_position(std::int64_t position);
std::size_t block_bytes(std::int64_t rows, std::int64_t entries, const Layout& layout);

// Where blocks lie in a file that somebody has opened.
struct BlockRegion {
  std::string file;  // for messages
  int descriptor;    // of the caller's; it may be closed afterwards
  std::int64_t end;  // of the last block, aligned
};

// Believes nothing in the file: an index or a block that is wrong is a FormatError, an index when this is
// made, a block when it is first leased. A file that changes while it is read is one, too.
class BlockFile final : public RowStore {
 public:
  BlockFile(const BlockRegion& region, std::size_t features, std::span<const BlockEntry> index);
  ~BlockFile() override;
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;

  std::int64_t rows() const override { return rows_; }
  std::size_t features() const override { return features_; }
  std::int64_t entries() const override { return entries_; }
  std::int64_t blocks() const override { return static_cast<std::int64_t>(places_.size()); }
  BlockLease block(std::int64_t k) const override;

 private:
  struct Place {
    std::int64_t position;
    std::int64_t first_row;
    std::int64_t rows;
    std::int64_t entries;
    Layout layout;
    std::uint64_t checksum;
  };
  // Tells a file that was written to from one that was not.
  struct Version {
    std::int64_t size;
    std::int64_t seconds;
    std::int64_t nanoseconds;
    bool operator==(const Version&) const = default;
  };

  static Version version_of(int descriptor);
  void add_place(const BlockEntry& entry, std::int64_t expected_position, std::int64_t region_end);
  void check_unchanged() const;
  void check(std::int64_t k, const RowBlock& block, std::span<const unsigned char> bytes) const;
  [[noreturn]] void fail(std::int64_t k, const char* what) const;

  std::string file_;
  std::size_t features_;
  std::int64_t rows_ = 0;
  std::int64_t entries_ = 0;
  std::vector<Place> places_;
  std::unique_ptr<std::atomic<bool>[]> checked_;
  int descriptor_ = -1;
  Version version_;
};

}  // namespace unkernel::cutplane
