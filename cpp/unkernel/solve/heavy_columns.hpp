// A preconditioner for conjugate gradients on some columns: the exact Hessian of the columns with the largest
// curvature, and only the diagonal for all other columns.
//
// Conjunctions that hold in many rows share most of these rows, which makes the Hessian ill conditioned.
// Conjunctions that hold in few rows share few of them.
//
// Memory   8 bytes per pair of heavy columns.
// Cost     to factor: a third of the cube of the number of heavy columns; to apply: its square.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/solve/normal_system.hpp"
#include "unkernel/solve/weighted_gram.hpp"

namespace unkernel::solve {

class HeavyColumns {
 public:
  // Chooses at most `max_heavy` columns of `support` (indices into `columns`): those with the largest
  // diagonal entries of the Hessian.
  HeavyColumns(std::span<const std::size_t> support, std::span<const std::int32_t> columns,
               std::span<const double> diagonal, std::size_t max_heavy);

  std::span<const std::int32_t> columns() const { return heavy_; }
  // Factors the Hessian of the heavy columns, which `gram` must contain, with `ridge` added to its diagonal.
  void factor(const WeightedGram& gram, double ridge);

  // Divides the residual of `support` by the preconditioner. The residual of heavy columns outside the
  // support counts as 0.
  void divide(std::span<const std::size_t> support, std::span<const double> residual,
              std::span<const double> diagonal, std::span<double> quotient);

 private:
  std::vector<std::int32_t> heavy_;
  std::vector<std::int32_t> places_;  // by index: place among the heavy columns, or -1
  Cholesky matrix_;
  std::vector<double> values_;
};

}  // namespace unkernel::solve
