// Sequential minimal optimisation of the dual of a kernel SVM, on a kernel matrix in memory. The bias is not
// regularised.
//
//   min_a  1/2 a'Qa - e'a      0 <= a_i <= C_i,  sum_i y_i a_i = 0,     Q_ij = y_i y_j K_ij
//
// K is the kernel matrix, y_i the label of row i, e a vector of ones, and g = Qa - e the gradient.
//
// Solver     two variables move at a time. The first has the largest pull on its side; the second is the
//            partner with the largest gain, given the curvature of the pair (Fan, Chen & Lin 2005, WSS 2).
// No bias    without the equality constraint, one variable moves at a time: the one with the largest
//            g_i^2 / K_ii.
// Shrinking  a variable that its gradient holds at a bound is removed until all other variables are optimal.
//            Then all gradients are updated, and all variables become active again.
// Start      the given a, each a_i within its bounds, with its gradient g. If the variables are a part of a
//            larger problem, sum_i y_i a_i keeps its value, and g includes the contribution of the other
//            variables.
// Stop       with a bias: m(a) - M(a) <= tolerance, as LIBSVM's -e. m(a) is the largest -y_i g_i of the
//            variables whose y_i a_i can rise, and M(a) the smallest -y_i g_i of those whose y_i a_i can
//            fall. Without a bias: |g_i| is at most the tolerance wherever a_i can move along -g_i.
// Singular   a pair without curvature, or whose curvature is negative because of rounding, moves until one of
//            its variables reaches a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/square_rows.hpp"

namespace unkernel::solve {

struct SmoProblem {
  KernelSquare kernel;
  std::span<const double> diagonal;     // K_ii; used instead of the diagonal of the matrix
  std::span<const signed char> labels;  // -1, +1
  std::span<const double> costs;        // C_i >= 0
};

struct SmoOptions {
  double tolerance;
  std::int64_t max_steps;
  bool bias;
};

struct PairOutcome {
  // The mean of -y_i g_i over 0 < a_i < C_i. If there is no such a_i, the middle of the optimal range.
  double bias = 0.0;
  double dual_objective = 0.0;  // e'a - 1/2 a'Qa: a lower bound of the primal optimum
  double violation = 0.0;       // over all variables; at most the tolerance if the problem is solved
  std::int64_t steps = 0;
  bool converged = false;  // false if the steps ran out, or rounding prevented progress
};

// Improves `alpha` and its gradient in place. A cold start has all a_i = 0 and all g_i = -1. Throws
// Interrupted if the monitor was stopped.
PairOutcome minimise_pairs(const SmoProblem& problem, const SmoOptions& options, std::span<double> alpha,
                           std::span<double> gradient, const Monitor& monitor);

}  // namespace unkernel::solve
