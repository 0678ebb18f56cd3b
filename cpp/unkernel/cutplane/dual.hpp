// Trains a linear SVM by dual coordinate descent on packed rows (solve/dual_problem.hpp). For rows in memory,
// this often reaches the required gap faster than cutting planes.
#pragma once

#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/rows/row_store.hpp"
#include "unkernel/solve/dual_problem.hpp"
#include "unkernel/solve/loss.hpp"

namespace unkernel::cutplane {

// `signed_costs` are C y_i cost_i, 0 for rows to ignore. `duals` (y_i a_i, empty for zeros) holds the start
// and is overwritten by the result.
solve::Outcome train_dual(const data::PackedRows& rows, double intercept, solve::Loss loss,
                          std::span<const double> signed_costs, const solve::DescentOptions& options,
                          std::vector<double>& duals, std::span<double> weights, const Progress& progress,
                          Monitor& monitor);

}  // namespace unkernel::cutplane
