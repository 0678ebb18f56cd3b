// X'DX for some columns of X and a diagonal D of row weights, updated incrementally when columns or weights
// change.
//
// Memory   8 bytes per pair of columns, 12 per entry of the columns.
// Cost     a changed weight costs half the square of the number of columns in its row; a new column costs the
//          sum of these numbers over its rows.
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

  // Makes all `wanted` columns members (other columns may stay members, too), and updates the weights up to a
  // relative error of `slack`.
  void update(std::span<const std::int32_t> wanted, std::span<const double> weights, double slack);

  std::size_t size() const { return members_.size(); }
  std::size_t member(std::int32_t column) const {
    return static_cast<std::size_t>(places_[static_cast<std::size_t>(column)]);
  }
  const double* row(std::size_t m) const { return gram_.data() + m * size(); }

 private:
  bool holds(std::int32_t column) const {
    return static_cast<std::size_t>(column) < places_.size() &&
           places_[static_cast<std::size_t>(column)] >= 0;
  }
  void restart(std::span<const std::int32_t> wanted);
  void extend(std::span<const std::int32_t> added);
  void change_weights(std::span<const double> weights, double slack);
  void list_rows();

  const SparseColumns& columns_;
  std::vector<double> weights_;
  std::vector<std::int32_t> members_;
  std::vector<std::int32_t> places_;  // by column: index of the member, or -1
  LargeVector<double> gram_;          // members x members
  std::vector<std::size_t> offsets_;  // the members of each row, ascending, and their entries
  std::vector<std::int32_t> ids_;
  std::vector<double> entries_;
};

}  // namespace unkernel::solve
