// Sequential minimal optimisation of the dual of a kernel SVM, on a kernel matrix in memory; the bias is not
// regularised.
//
//   min_a  1/2 a'Qa - e'a      0 <= a_i <= C_i,  sum_i y_i a_i = 0,     Q_ij = y_i y_j K_ij
//
// Solver     two variables move at a time. The first is the variable with the largest pull on its side; the
//            second is the partner with the largest gain, given the curvature of the pair (Fan, Chen & Lin
//            2005, WSS 2).
// No bias    without the equality constraint, one variable moves at a time: the variable with the largest
//            g_i^2 / K_ii.
// Shrinking  a variable whose gradient holds it at a bound is removed until all other variables are optimal;
//            then all gradients are updated, and all variables become active again.
// Start      the given a, each a_i within its bounds, with its gradient g. If the variables are a part of a
//            larger problem, sum_i y_i a_i keeps its value, and g includes the contribution of the other
//            variables.
// Stop       with a bias: m(a) - M(a) <= tolerance, as LIBSVM's -e, where m(a) is the largest -y_i g_i of the
//            variables whose y_i a_i can rise, and M(a) the smallest -y_i g_i of the variables whose y_i a_i
//            can fall. Without a bias: |g_i| is at most the tolerance wherever a_i can move along -g_i.
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
  std::span<const double> diagonal;     // K_ii of variable i; the diagonal of the matrix is not used
  std::span<const signed char> labels;  // -1, +1
  std::span<const double> costs;        // C_i >= 0
};

struct SmoOptions {
  double tolerance;
  std::int64_t max_steps;
  bool bias;
};

struct PairOutcome {
  // The mean of -y_i g_i over 0 < a_i < C_i; if there is no such a_i, the middle of the optimal range.
  double bias = 0.0;
  double dual_objective = 0.0;  // e'a - 1/2 a'Qa: below the primal optimum
  double violation = 0.0;       // over all variables; the problem is solved if it is at most the tolerance
  std::int64_t steps = 0;
  bool converged = false;  // false: the steps ran out, or rounding prevented progress
};

// Computes g = Qa - e; costs n times the number of nonzero a_i.
void evaluate_gradient(const SmoProblem& problem, std::span<const double> alpha, std::span<double> gradient);

// Improves `alpha` and its gradient in place. (For a cold start all a_i are 0 and all g_i are -1.) Throws
// Interrupted if the monitor was stopped.
PairOutcome minimise_pairs(const SmoProblem& problem, const SmoOptions& options, std::span<double> alpha,
                           std::span<double> gradient, const Monitor& monitor);

}  // namespace unkernel::solve
