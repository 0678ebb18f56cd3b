// A first guess for cutting planes: a few passes of dual coordinate descent over each part of the rows by
// itself, and the mean of the parts' weights.
//
// Each part p solves its own  min_w 1/2 |w|^2 + C sum over its rows of the losses,  roughly, from zero. Their
// dual variables u together are a point of the whole dual, up to its scale, and so make a valid cut
// (Fenchel):
//   R(w) >= sum_i g_i(u_i) / C - (sum_i u_i x_i / C)'w        with g of solve/loss.hpp
// Parts depend on the data only, and rows are visited in an order that a seeded generator decides: the guess
// is the same for any number of threads.
#pragma once

#include <span>

#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/cutplane/passes.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace unkernel::cutplane {

inline constexpr int local_passes = 2;

// Overwrites `weights` and `gradient`, and gives the cut's offset.
double descend_locally(const RowStore& store, double intercept, const RowLosses& losses, double C,
                       Threads threads, std::span<double> weights, std::span<double> gradient);

}  // namespace unkernel::cutplane
