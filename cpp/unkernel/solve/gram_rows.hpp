// A row view on a kernel matrix, whose "weight vector" is the vector of scores. Reading a score costs one
// load, and a step costs one pass over a row of the matrix. This view is faster than mapped rows if there are
// fewer rows than entries per mapped row. Takes 8 bytes per pair of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/add_multiple.hpp"

namespace unkernel::solve {

class GramRows {
 public:
  // Tells RowSweep to make only the steps with the largest gains.
  static constexpr bool has_stored_scores = true;

  GramRows(std::vector<double> gram, std::size_t rows) : gram_(std::move(gram)), rows_(rows) {}

  std::int64_t size() const { return static_cast<std::int64_t>(rows_); }
  double dot(std::int64_t i, const double* scores) const { return scores[i]; }
  double squared_norm(std::int64_t i) const { return row(i)[i]; }
  void axpy(std::int64_t i, double step, double* scores) const { add_multiple(step, row(i), scores, rows_); }
  std::size_t dimension() const { return rows_; }
  // Returns the length of a mapped row whose step costs as much: steps over contiguous numbers are eight
  // times as fast.
  double mean_map_size() const { return static_cast<double>(rows_) / 8.0; }

  std::vector<double> gram(std::span<const std::int32_t> subset, int) const {
    std::vector<double> part;
    part.reserve(subset.size() * subset.size());
    for (const std::int32_t i : subset) {
      for (const std::int32_t j : subset) part.push_back(row(i)[j]);
    }
    return part;
  }

  void prefetch_header(std::int64_t) const {}
  void prefetch(std::int64_t) const {}

 private:
  const double* row(std::int64_t i) const { return gram_.data() + static_cast<std::size_t>(i) * rows_; }

  std::vector<double> gram_;
  std::size_t rows_;
};

}  // namespace unkernel::solve
