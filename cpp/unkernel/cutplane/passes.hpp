// The two passes over training rows that everything here is made of: X w and X'c.
//
// Both are split into pieces that the data decides, never the threads, and pieces are summed in order: the
// result is the same, bit for bit, on any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace unkernel::cutplane {

struct Threads {
  int count;
  const Monitor* monitor;  // asked now and then whether to stop
};

class Passes {
 public:
  // `intercept` is the value of one more feature that all rows have; 0 for none. It is the last weight.
  Passes(const RowStore& store, double intercept, Threads threads);

  std::size_t dimension() const { return store_.features() + (intercept_ != 0.0 ? 1 : 0); }
  std::int64_t rows() const { return store_.rows(); }

  // scores = X w
  void scores(std::span<const double> weights, std::span<double> scores) const;

  // result += X' c; rows whose c is 0 are not read.
  void add_transposed(std::span<const double> coefficients, std::span<double> result);

 private:
  const RowStore& store_;
  double intercept_;
  Threads threads_;
  void add_piece(std::int64_t piece, std::span<const double> coefficients, std::span<double> sum) const;

  std::vector<std::int64_t> pieces_;          // first block of each, and the end
  std::vector<LargeVector<double>> buffers_;  // one a thread
};

}  // namespace unkernel::cutplane
