// Stores training rows, packed for sequential passes over all rows.
//
// Bytes per entry: for the column, 2 if there are at most 65,536 columns, otherwise 4; for the value, 0 if
// all values are 1, 4 if single precision represents all values exactly, otherwise 8. The time of a pass is
// the time to read these bytes and to gather weights.
//
// Consecutive rows form blocks. The blocks of a store are in memory, or in a file that is read one block at a
// time (block_file.hpp). Blocks are grouped into pieces: one thread sums a piece before the sums of all
// pieces are combined. Pieces depend only on the data, so results do not depend on the number of threads.
// Each block has its own layout, because the packer of a file closes a block before it reads later rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/data/csr.hpp"

namespace unkernel::data {

struct Ones {};  // the value type of binary rows, which store no values

enum class ColumnKind : std::uint8_t { narrow, wide };       // uint16, uint32
enum class ValueKind : std::uint8_t { ones, single, full };  // none, float, double

struct Layout {
  ColumnKind columns = ColumnKind::wide;
  ValueKind values = ValueKind::full;
};

std::size_t entry_bytes(const Layout& layout);

inline constexpr std::int64_t rows_per_block = 2048;
inline constexpr std::int64_t most_features = 0xffffffff;  // limit of 32-bit columns

// The properties of values that determine their storage.
struct ValueSurvey {
  bool ones = true;
  bool single = true;  // single precision represents all values exactly
  bool finite = true;
};

ValueSurvey survey_values(std::span<const double> values, int threads);
// Throws std::invalid_argument if a value is not finite.
ValueKind kind_of_values(const ValueSurvey& survey);
ColumnKind kind_of_columns(std::size_t features);

// A non-owning view of a block of rows.
struct RowBlock {
  Layout layout;
  std::int64_t first_row = 0;
  std::span<const std::int64_t> offsets;  // rows + 1, into columns and values; the first may exceed 0
  const void* columns = nullptr;
  const void* values = nullptr;  // null if all values are 1

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// Keeps the memory of a block valid for as long as the lease exists.
class BlockLease {
 public:
  BlockLease(const RowBlock& block, std::shared_ptr<void> holder)
      : block_(block), holder_(std::move(holder)) {}
  const RowBlock& operator*() const { return block_; }
  const RowBlock* operator->() const { return &block_; }

 private:
  RowBlock block_;
  std::shared_ptr<void> holder_;  // null for blocks in memory
};

// The rows of a training set, as a sequence of blocks.
class RowStore {
 public:
  virtual ~RowStore() = default;
  virtual std::int64_t rows() const = 0;
  virtual std::size_t features() const = 0;
  virtual std::int64_t entries() const = 0;
  virtual std::int64_t blocks() const = 0;
  virtual BlockLease block(std::int64_t k) const = 0;
};

// The rows to pack, in their new order. nullopt stands for all rows in their old order.
using RowOrder = std::optional<std::span<const std::int64_t>>;

// A renumbering of the columns.
struct Numbering {
  std::vector<std::uint32_t> number_of;  // column -> number; empty for the identity
  std::vector<std::uint32_t> column_of;  // number -> column
};

// Numbers columns by descending frequency, so that the weights of frequent columns are neighbours in memory.
// Columns without entries get no number.
template <class Index>
Numbering number_by_frequency(const CsrView<Index, double>& rows, int threads);

// Rows in memory.
class PackedRows final : public RowStore {
 public:
  std::int64_t rows() const override { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  std::size_t features() const override { return features_; }
  std::int64_t entries() const override { return offsets_.back(); }
  std::int64_t blocks() const override;
  BlockLease block(std::int64_t k) const override;

  // Returns all rows as one block.
  RowBlock whole() const;
  std::size_t bytes() const;

 private:
  template <class Index>
  friend PackedRows pack(const CsrView<Index, double>& rows, RowOrder order, const Numbering& numbering,
                         int threads);

  Layout layout_;
  std::size_t features_ = 0;
  LargeVector<std::int64_t> offsets_{0};
  LargeVector<std::uint16_t> narrow_;
  LargeVector<std::uint32_t> wide_;
  LargeVector<float> single_;
  LargeVector<double> full_;
};

// Packs rows. Throws std::invalid_argument if a row or column is outside the matrix, or a value is not
// finite. The numbering must be empty, or made from the same rows.
template <class Index>
PackedRows pack(const CsrView<Index, double>& rows, RowOrder order, const Numbering& numbering, int threads);

template <class Index>
PackedRows pack(const CsrView<Index, double>& rows, int threads) {
  return pack(rows, std::nullopt, Numbering{}, threads);
}

// Calls f(columns, values) with typed pointers, so that the layout is looked up once per block.
template <class F>
decltype(auto) with_types(const RowBlock& block, const F& f) {
  const auto with_columns = [&](const auto* columns) -> decltype(auto) {
    switch (block.layout.values) {
      case ValueKind::ones: return f(columns, static_cast<const Ones*>(nullptr));
      case ValueKind::single: return f(columns, static_cast<const float*>(block.values));
      default: return f(columns, static_cast<const double*>(block.values));
    }
  };
  if (block.layout.columns == ColumnKind::narrow)
    return with_columns(static_cast<const std::uint16_t*>(block.columns));
  return with_columns(static_cast<const std::uint32_t*>(block.columns));
}

}  // namespace unkernel::data
