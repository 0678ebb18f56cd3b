// Sums mapped rows, and computes the scores of all rows, on several threads. The results do not depend on the
// number of threads.
#pragma once

#include <span>

#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace unkernel::solve {

// Computes sum += sum_i coefficients_i phi(x_i).
void sum_rows(const RowPasses& rows, std::span<const double> coefficients, std::span<double> sum,
              Threads threads);

// Computes scores_i = w'phi(x_i).
void score_rows(const RowPasses& rows, std::span<const double> weights, std::span<double> scores,
                Threads threads);

}  // namespace unkernel::solve
