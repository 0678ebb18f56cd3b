// The logistic loss of one row, p log(1 + exp(-f)) + q log(1 + exp(f)), with bitwise equal results on every
// machine.
#pragma once

#include <algorithm>
#include <cmath>

#include "unkernel/base/elementary.hpp"
#include "unkernel/base/exponential.hpp"
#include "unkernel/solve/loss.hpp"

namespace unkernel::solve {

// Returns exp(x) for x <= 0.
inline double decay(double x) {
  exponentials(1.0, &x, 1);
  return x;
}

// Returns log(1 + x) for x > -1, accurate to a few ulp: the last factor corrects the rounding of 1 + x.
inline double log_of_one_plus(double x) {
  const double sum = 1.0 + x;
  return sum == 1.0 ? x : natural_logarithm(sum) * (x / (sum - 1.0));
}

inline double entropy_term(double share) { return share > 0.0 ? -share * natural_logarithm(share) : 0.0; }

struct LogisticTerm {
  static double value(const Costs& c, double f) {
    const double bend = log_of_one_plus(decay(-std::abs(f)));
    return c.positive * (std::max(-f, 0.0) + bend) + c.negative * (std::max(f, 0.0) + bend);
  }
  static void derivatives(const Costs& c, double f, double& gradient, double& curvature) {
    const double tail = decay(-std::abs(f));
    const double larger_share = 1.0 / (1.0 + tail);
    const double smaller_share = tail * larger_share;
    const double positive = f > 0.0 ? larger_share : smaller_share;
    const double negative = f > 0.0 ? smaller_share : larger_share;
    gradient = c.negative * positive - c.positive * negative;
    curvature = (c.positive + c.negative) * larger_share * smaller_share;
  }
  static double largest_curvature(const Costs& c) { return 0.25 * (c.negative + c.positive); }
  // Returns g(u) = -(p-u) log s - (q+u) log(1-s), with s = (p-u)/(p+q).
  static double dual(const Costs& c, double u) {
    const double total = c.positive + c.negative;
    if (total == 0.0) return 0.0;
    return total * (entropy_term(std::clamp((c.positive - u) / total, 0.0, 1.0)) +
                    entropy_term(std::clamp((c.negative + u) / total, 0.0, 1.0)));
  }
};

}  // namespace unkernel::solve
