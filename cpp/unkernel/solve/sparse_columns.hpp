// Columns of a matrix, stored one after another, for the primal solvers.
//
// Memory   4 bytes per entry, 12 if the values of a column differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/gather.hpp"
#include "unkernel/base/large_array.hpp"

namespace unkernel::solve {

class SparseColumns {
 public:
  // If `uniform`, all entries of a column are equal up to its scale, so no values are stored.
  explicit SparseColumns(bool uniform) : uniform_(uniform) {}

  std::size_t size() const { return scales_.size(); }
  bool uniform() const { return uniform_; }
  double bytes() const {
    return 4.0 * static_cast<double>(rows_.size()) + 8.0 * static_cast<double>(values_.size());
  }

  void add_entry(std::int32_t row) { rows_.push_back(row); }
  void add_entry(std::int32_t row, double value) {
    rows_.push_back(row);
    values_.push_back(value);
  }
  void add_one(std::int32_t row) { uniform_ ? add_entry(row) : add_entry(row, 1.0); }
  // Ends a column, which consists of all entries added since the last call.
  void finish(double scale) {
    offsets_.push_back(rows_.size());
    scales_.push_back(scale);
  }
  // Appends column j of another matrix, which must be uniform if this one is.
  void append(const SparseColumns& other, std::size_t j) {
    const auto rows = other.rows(j);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    if (!uniform_) values_.insert(values_.end(), other.values(j), other.values(j) + rows.size());
    finish(other.scale(j));
  }
  void drop_last() {
    offsets_.pop_back();
    scales_.pop_back();
    rows_.resize(offsets_.back());
    if (!uniform_) values_.resize(offsets_.back());
  }

  std::span<const std::int32_t> rows(std::size_t j) const {
    return {rows_.data() + offsets_[j], offsets_[j + 1] - offsets_[j]};
  }
  const double* values(std::size_t j) const { return uniform_ ? nullptr : values_.data() + offsets_[j]; }
  double scale(std::size_t j) const { return scales_[j]; }

  double dot(std::size_t j, const double* vector) const {
    const auto ids = rows(j);
    const double sum = uniform_ ? gather<true>(vector, ids.data(), nullptr, ids.size())
                                : gather<false>(vector, ids.data(), values(j), ids.size());
    return scales_[j] * sum;
  }
  void axpy(std::size_t j, double step, double* vector) const {
    const auto ids = rows(j);
    if (uniform_) {
      scatter<true>(vector, ids.data(), nullptr, ids.size(), scales_[j] * step);
    } else {
      scatter<false>(vector, ids.data(), values(j), ids.size(), scales_[j] * step);
    }
  }

 private:
  bool uniform_;
  std::vector<std::size_t> offsets_{0};
  std::vector<double> scales_;
  LargeVector<std::int32_t> rows_;
  LargeVector<double> values_;
};

}  // namespace unkernel::solve
