// The conjunctions in use of a sparse model: one column each, in the order in which they were added.
//
// If columns are shared, conjunctions that hold in exactly the same rows have one column, because the loss
// depends only on the sum of their weights. This needs binary rows and a pure l1 penalty. The conjunction
// with the largest constant represents them, because it needs the smallest weight.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/poly/conjunction_columns.hpp"
#include "unkernel/poly/conjunction_search.hpp"
#include "unkernel/solve/sparse_columns.hpp"

namespace unkernel::poly {

class WorkingSet {
 public:
  WorkingSet(const ConjunctionSearch& search, bool binary, bool shares_columns, double memory)
      : search_(search),
        writer_(search),
        columns_(binary),
        shares_columns_(shares_columns),
        memory_(memory) {}

  const solve::SparseColumns& columns() const { return columns_; }
  const std::vector<kernels::Key>& keys() const { return keys_; }
  bool contains(kernels::Key key) const { return places_.find(key) != nullptr; }
  // Returns the column of a conjunction in use.
  std::optional<std::size_t> place_of(kernels::Key key) const {
    const std::uint32_t* place = places_.find(key);
    return place == nullptr ? std::nullopt : std::optional<std::size_t>(*place);
  }
  // Returns the number of conjunctions. Shared columns make it larger than the number of columns.
  std::size_t conjunctions() const { return places_.size(); }

  // Adds a conjunction unless it is in use, and returns its column. The weight of a column is in units of the
  // column's scale. Throws NotEnoughMemory.
  std::size_t add(kernels::Key key);
  // Adds conjunctions that are not in use. Threads write their columns. Throws NotEnoughMemory.
  void add_new(std::span<const kernels::Key> keys, int threads);
  // Adds conjunctions that are not in use, but only those that occur in a row and have a constant. The column
  // of keys[k] gets an additional entry of 1 in row anchors[k], unless that is `no_anchor`.
  static constexpr std::int32_t no_anchor = -1;
  void add_occurring(std::span<const kernels::Key> keys, std::span<const std::int32_t> anchors, int threads);

 private:
  using ColumnWriter = ConjunctionSearch::ColumnWriter;

  std::size_t batch_size(std::span<const kernels::Key> keys) const;
  void add_columns(std::span<const kernels::Key> keys, std::span<const std::int32_t> anchors, int threads);
  void add_batch(std::span<const kernels::Key> keys, std::span<const std::int32_t> anchors,
                 std::span<ColumnWriter> writers);
  std::size_t keep_last_column(kernels::Key key);
  std::optional<std::uint32_t> find_equal_column();

  const ConjunctionSearch& search_;
  ColumnWriter writer_;
  solve::SparseColumns columns_;
  bool shares_columns_;
  double memory_;
  std::vector<kernels::Key> keys_;
  FlatMap<kernels::Key, std::uint32_t> places_;
  FlatMap<std::uint64_t, std::uint32_t> column_by_rows_;
};

}  // namespace unkernel::poly
