// Maintains X'DX for some columns of X and a diagonal D of row weights, with incremental updates when columns
// or weights change.
//
// Memory   8 bytes per pair of columns, 12 per entry of the columns.
// Cost     of a changed weight: half the square of the number of columns in its row. Of a new column:
//          the sum, over its rows, of the number of columns in the row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/solve/sparse_columns.hpp"

namespace unkernel::solve {

class WeightedGram {
 public:
  WeightedGram(const SparseColumns& columns, std::size_t rows) : columns_(columns), weights_(rows, 0.0) {}

  // Makes all requested columns members, and updates the weights up to a relative error of `slack`. Columns
  // that are not requested may remain members.
  void update(std::span<const std::int32_t> requested, std::span<const double> weights, double slack);

  std::size_t size() const { return members_.size(); }
  std::size_t member(std::int32_t column) const {
    return static_cast<std::size_t>(places_[static_cast<std::size_t>(column)]);
  }
  const double* row(std::size_t m) const { return gram_.data() + m * size(); }

 private:
  bool has_column(std::int32_t column) const {
    return static_cast<std::size_t>(column) < places_.size() &&
           places_[static_cast<std::size_t>(column)] >= 0;
  }
  void restart(std::span<const std::int32_t> requested);
  void extend(std::span<const std::int32_t> new_columns);
  void change_weights(std::span<const double> weights, double slack);
  void list_rows();

  const SparseColumns& columns_;
  std::vector<double> weights_;
  std::vector<std::int32_t> members_;
  std::vector<std::int32_t> places_;  // by column: index of the member, or -1
  LargeVector<double> gram_;          // members x members
  std::vector<std::size_t> offsets_;  // rows + 1, into ids_ and entries_
  std::vector<std::int32_t> ids_;     // the members of each row, ascending
  std::vector<double> entries_;       // of these members
};

}  // namespace unkernel::solve
