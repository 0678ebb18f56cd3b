// Packs rows into the blocks of a file (block_file.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/data/csr.hpp"
#include "unkernel/data/rows/block_file.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace unkernel::data {

// Packs rows, which are added in parts of any size. Block boundaries depend only on the rows, not on the
// parts. A block has rows_per_block rows (row_store.hpp), or fewer if it would exceed about 4 MB. A row that
// is larger than 4 MB has its own block.
class BlockPacker {
 public:
  // Throws std::invalid_argument if a column is outside the matrix or a value is not finite.
  template <class Index>
  void add(const CsrView<Index, double>& rows);
  // Closes the last block.
  void finish();
  // Returns the bytes of the blocks closed since the last call, which the caller appends to the file.
  std::vector<unsigned char> take();

  const std::vector<BlockEntry>& index() const { return index_; }
  std::int64_t end() const { return end_; }
  std::int64_t entries() const { return entries_; }

 private:
  void close_block();
  template <class Number, class From>
  void put(std::span<const From> numbers);

  std::int64_t entries_ = 0;
  std::int64_t end_ = block_alignment;
  std::vector<BlockEntry> index_;
  std::vector<unsigned char> bytes_;
  // The block under construction.
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::uint32_t> columns_;
  std::vector<double> values_;
};

}  // namespace unkernel::data
