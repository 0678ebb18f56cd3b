// One step of dual coordinate descent for losses that are negative log-likelihoods: logistic and Poisson.
//
// Let L be the loss of a row with score f and kernel K = phi'phi. With all other variables fixed, the best u
// for the dual is u*(t) = -L'(t) at the root t of
//
//   h(t) = t - f + K (u - u*(t)),            h'(t) = 1 + K L''(t) > 0.
//
// The root t is the score after the step. (The problem in u and its solution are those of Yu, Huang & Lin,
// Dual coordinate descent methods for logistic regression and maximum entropy models, Machine Learning 85,
// 2011. They solve for u, where the derivative is infinite at the ends of the interval. t has no such ends.)
//
//   logistic   L = p log(1 + exp(-f)) + q log(1 + exp(f)),  u* = p (1 - s) - q s,  s = 1 / (1 + exp(-t)).
//              Newton's method starts at t = f, and is kept in the interval where h changes its sign. Its
//              last step is made in u, along the tangent of u*, which saves an exponential. Usually one step
//              suffices.
//   Poisson    L = q exp(f) - p f,  u* = p - q exp(t). A short first step is the last one. Otherwise
//              z = K (p - u*) solves z + log z = f + K (p - u) + log(K q), which takes a few logarithms.
//
// The gap term of a row, L(f) - g(u) + u f, is estimated to second order. The estimate is exact in the limit
// of small gaps, and never infinite.
#pragma once

#include "unkernel/solve/loss.hpp"

namespace unkernel::solve {

enum class Likelihood { logistic, poisson };

// The variable of one row: 32 bytes.
struct LikelihoodCoordinate {
  double u = 0.0;
  Costs costs;
  double curvature = 0.0;  // K = phi_i'phi_i
};

struct LikelihoodStep {
  double u;    // the best u
  double gap;  // an estimate of the gap term before the step
};

LikelihoodStep best_step(Likelihood likelihood, const LikelihoodCoordinate& c, double score);

double loss_of(Likelihood likelihood, const Costs& costs, double score);
double dual_of(Likelihood likelihood, const Costs& costs, double u);
// Returns the feasible u nearest to this one.
double nearest_feasible(Likelihood likelihood, const Costs& costs, double u);

// Returns the z > 0 with z + log z = x: the Wright omega function.
double wright_omega(double x);

}  // namespace unkernel::solve
