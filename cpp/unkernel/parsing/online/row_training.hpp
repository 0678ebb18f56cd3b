// Trains a classifier online on fixed rows: the averaged perceptron of averaged_weights.hpp, which visits the
// rows in a new order in each epoch. The result depends only on the rows and the seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/parsing/online/averaged_weights.hpp"

namespace unkernel::parsing {

struct RowOptions {
  int degree;
  std::size_t classes;
  std::uint32_t min_updates;
  std::uint64_t seed;
};

// Rows of ascending columns, and the class of each row.
struct LabelledRows {
  std::span<const std::int64_t> offsets;
  std::span<const std::int32_t> columns;
  std::span<const std::int32_t> classes;
};

class RowTrainer {
 public:
  explicit RowTrainer(const RowOptions& options);

  // Visits all rows once, and returns how many were classified wrongly before their update. Throws
  // std::invalid_argument if the rows are inconsistent or a class is out of range.
  std::int64_t run_epoch(const LabelledRows& rows, const Monitor& monitor);
  // Returns how many rows the averaged weights classify wrongly.
  std::int64_t count_wrong(const LabelledRows& rows, const Monitor& monitor);
  const AveragedWeights& weights() const { return weights_; }

 private:
  Random random_;
  AveragedWeights weights_;
};

}  // namespace unkernel::parsing
