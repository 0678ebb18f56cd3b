// Training rows, packed for passes over all of them.
//
// Bytes an entry: 2 for its column where there are at most 65,536 columns, else 4; for its value none where
// all values are 1, 4 where single precision holds them, else 8. A pass is bound by these bytes and by the
// weights it gathers.
//
// Rows come in blocks of neighbours. A store says where blocks are: in memory, or in a file that is mapped a
// block at a time (block_file.hpp). Blocks are grouped into pieces: a piece is what one thread adds up before
// its sum meets the others'. Pieces depend on the data only, so that sums do not depend on the threads.
// Each block has its own layout: who packs a file does not know yet what comes later in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/data/csr.hpp"

namespace unkernel::cutplane {

struct Ones {};  // the values of rows that are sets

enum class ColumnKind : std::uint8_t { narrow, wide };       // uint16, uint32
enum class ValueKind : std::uint8_t { ones, single, full };  // none, float, double

struct Layout {
  ColumnKind columns = ColumnKind::wide;
  ValueKind values = ValueKind::full;
};

std::size_t entry_bytes(const Layout& layout);

inline constexpr std::int64_t rows_a_block = 2048;
inline constexpr std::int64_t most_features = 0xffffffff;  // of 32-bit columns

// What decides how values are kept.
struct ValueSurvey {
  bool ones = true;
  bool single = true;  // held by single precision
  bool finite = true;
  bool in_single_range = true;
};

ValueSurvey survey_values(std::span<const double> values, int threads);
// Throws std::invalid_argument for values that are not finite.
ValueKind kind_of_values(const ValueSurvey& seen, bool may_round);
ColumnKind kind_of_columns(std::size_t features);

// A block of rows that somebody else holds.
struct RowBlock {
  Layout layout;
  std::int64_t first_row = 0;
  std::span<const std::int64_t> offsets;  // rows + 1, into columns and values; the first need not be 0
  const void* columns = nullptr;
  const void* values = nullptr;  // null for ones

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// A block for as long as this lives.
class BlockLease {
 public:
  BlockLease(const RowBlock& block, std::shared_ptr<void> holder)
      : block_(block), holder_(std::move(holder)) {}
  const RowBlock& operator*() const { return block_; }
  const RowBlock* operator->() const { return &block_; }

 private:
  RowBlock block_;
  std::shared_ptr<void> holder_;  // null in memory
};

class RowStore {
 public:
  virtual ~RowStore() = default;
  virtual std::int64_t rows() const = 0;
  virtual std::size_t features() const = 0;
  virtual std::int64_t entries() const = 0;
  virtual std::int64_t blocks() const = 0;
  virtual BlockLease block(std::int64_t k) const = 0;
  // Block k will be asked for soon.
  virtual void announce(std::int64_t) const {}
};

// Columns under other numbers.
struct Numbering {
  std::vector<std::uint32_t> number_of;  // column -> number; empty where numbers are columns
  std::vector<std::uint32_t> column_of;  // number -> column
};

// Numbers by descending frequency, so that weights which are used together lie together. Columns that no row
// uses have none.
template <class Index>
Numbering number_by_frequency(const data::CsrView<Index, double>& rows, int threads);

// In memory, in one piece.
class PackedRows final : public RowStore {
 public:
  std::int64_t rows() const override { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  std::size_t features() const override { return features_; }
  std::int64_t entries() const override { return offsets_.back(); }
  std::int64_t blocks() const override;
  BlockLease block(std::int64_t k) const override;

  // All rows as one block.
  RowBlock whole() const;
  std::size_t bytes() const;

 private:
  template <class Index>
  friend PackedRows pack(const data::CsrView<Index, double>& rows, const Numbering& numbering, bool may_round,
                         int threads);

  Layout layout_;
  std::size_t features_ = 0;
  LargeVector<std::int64_t> offsets_{0};
  LargeVector<std::uint16_t> narrow_;
  LargeVector<std::uint32_t> wide_;
  LargeVector<float> single_;
  LargeVector<double> full_;
};

// Throws std::invalid_argument for columns outside the matrix and values that are not finite. Values that
// single precision does not hold exactly are rounded to it only if they may be.
template <class Index>
PackedRows pack(const data::CsrView<Index, double>& rows, const Numbering& numbering, bool may_round,
                int threads);

template <class Index>
PackedRows pack(const data::CsrView<Index, double>& rows, bool may_round, int threads) {
  return pack(rows, Numbering{}, may_round, threads);
}

// Calls f(columns, values) with the block's typed pointers: the layout is opened once a block.
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

}  // namespace unkernel::cutplane
