// Chooses between the forms of a normal system by their expected costs, and makes the system.
#pragma once

#include <memory>
#include <span>

#include "unkernel/solve/normal_system.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace unkernel::solve {

// How many multiplications in products of dense blocks (base/block_products.hpp) take as long as one
// multiplication over the entries of sparse rows.
inline constexpr double block_speed = 8.0;

struct SystemPlan {
  bool over_columns = false;  // whether to use ColumnSystem instead of RowSystem
  double bytes = 0.0;         // of its matrices, in memory
  // The expected cost of factoring it, in multiplications. Infinite if the matrix is too large, or does not
  // fit into memory.
  double cost = 0.0;
};

// Plans the matrix over rows if it is small, because it is more accurate than the matrix over columns. The
// rows must have a kernel. `weights` is a sum of all rows, so every conjunction that occurs has a weight;
// `memory` is in bytes, 0 for no limit.
SystemPlan plan_system(const RowPasses& rows, std::span<const double> weights, double memory);

std::unique_ptr<NormalSystem> make_system(const RowPasses& rows, const SystemPlan& plan, int threads);

}  // namespace unkernel::solve
