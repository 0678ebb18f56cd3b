// The two passes over training rows that cutting planes need: X w and X'c.
//
// Both passes are split into pieces that depend only on the data, and the pieces are summed in order. So the
// result is bitwise equal for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace unkernel::cutplane {

class Passes {
 public:
  // `intercept` is the value of an additional constant feature, which has the last weight; 0 for none.
  Passes(const data::RowStore& store, double intercept, Threads threads);

  std::size_t dimension() const { return store_.features() + (intercept_ != 0.0 ? 1 : 0); }
  std::int64_t rows() const { return store_.rows(); }

  // scores = X w
  void scores(std::span<const double> weights, std::span<double> scores) const;

  // result += X' c; rows with c = 0 are not read.
  void add_transposed(std::span<const double> coefficients, std::span<double> result);

 private:
  const data::RowStore& store_;
  double intercept_;
  Threads threads_;
  void add_piece(std::int64_t piece, std::span<const double> coefficients, std::span<double> sum) const;

  std::vector<std::int64_t> pieces_;          // first block of each piece, then the number of blocks
  std::vector<LargeVector<double>> buffers_;  // one per thread
};

}  // namespace unkernel::cutplane
