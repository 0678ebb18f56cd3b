// The Poisson loss of one row, with bitwise equal results on every machine.
//
// A row with cost c and target t, both divided by suitable units, has loss c (exp(f) - t f), so rows with
// equal features merge into q exp(f) - p f, where q is the sum of the costs and p the sum of c t. The loss of
// the best score b = log(p/q) is subtracted:
//
//   value   q exp(f) - p f - p + p b  =  p (exp(d) - 1 - d) >= 0,                d = f - b
//   dual    g(u) = r - r log(r/q) - p + p b  =  u b - p (s log s - s + 1),       r = p - u >= 0,  s = r / p
//
// The forms on the right are used, because those on the left lose digits if p is large. The value is half of
// the deviance, times the cost. Costs hold p as `positive` and q as `negative`.
#pragma once

#include <algorithm>
#include <cmath>

#include "unkernel/base/elementary.hpp"
#include "unkernel/solve/logistic_term.hpp"
#include "unkernel/solve/loss.hpp"

namespace unkernel::solve {

// Returns exp(x) - 1 - x, accurate to a few ulp unless x is large.
inline double exponential_above_tangent(double x) {
  constexpr double largest_of_series = 0.25;
  if (std::abs(x) > largest_of_series) return natural_exponential(x) - 1.0 - x;
  double series = 1.0;
  for (double k = 14.0; k > 2.0; --k) series = 1.0 + x * (1.0 / k) * series;
  return 0.5 * x * x * series;
}

struct PoissonTerm {
  // Returns the value of the loss, infinity if exp(f) is.
  static double value(const Costs& c, double f) {
    if (c.positive == 0.0) return c.negative == 0.0 ? 0.0 : c.negative * natural_exponential(f);
    return c.positive * exponential_above_tangent(f - best_score(c));
  }
  static void derivatives(const Costs& c, double f, double& gradient, double& curvature) {
    curvature = c.negative * natural_exponential(f);
    gradient = curvature - c.positive;
  }
  // The second derivative has no upper bound. Returns its value at the scores 0 and log(p/q), whichever is
  // larger: steps of this curvature from one towards the other are short.
  static double largest_curvature(const Costs& c) { return std::max(c.positive, c.negative); }
  static double dual(const Costs& c, double u) {
    const double r = c.positive - u;
    if (c.positive == 0.0) return r > 0.0 ? r - r * natural_logarithm(r / c.negative) : 0.0;
    const double loss = r > 0.0 ? r * log_of_one_plus(-u / c.positive) + u : c.positive;
    return u * best_score(c) - loss;
  }

 private:
  static double best_score(const Costs& c) { return natural_logarithm(c.positive / c.negative); }
};

}  // namespace unkernel::solve
