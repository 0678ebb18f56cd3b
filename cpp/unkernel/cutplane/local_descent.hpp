// A first guess for cutting planes: a few passes of dual coordinate descent over each part of the rows
// separately, then the mean of the weights of the parts.
//
// Starting from zero, each part roughly minimises 1/2 |w|^2 + C (sum of the losses of its rows). The dual
// variables u of all parts together are, up to a factor, a feasible point of the dual of all rows, so they
// give a valid cut (Fenchel):
//   R(w) >= sum_i g_i(u_i) / C - (sum_i u_i x_i / C)'w        with g of solve/loss.hpp
// Parts depend on the data only, and a seeded generator decides the order of the rows: the guess does not
// depend on the number of threads.
#pragma once

#include <span>

#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/cutplane/passes.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace unkernel::cutplane {

inline constexpr int local_passes = 2;

// Overwrites `weights` and `gradient`, and returns the offset of the cut.
double descend_locally(const data::RowStore& store, double intercept, const RowLosses& losses, double C,
                       Threads threads, std::span<double> weights, std::span<double> gradient);

}  // namespace unkernel::cutplane
