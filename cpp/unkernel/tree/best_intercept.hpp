// The best intercept for given scores: min_b sum_i C_i max(0, 1 - y_i (s_i + b)), a sum of hinges in one
// variable.
#pragma once

#include <cstddef>
#include <span>

namespace unkernel::tree {

struct BestIntercept {
  double intercept = 0.0;
  double loss = 0.0;
};

double hinge_loss(std::span<const double> scores, std::span<const signed char> labels,
                  std::span<const double> costs, double intercept);

// Takes O(n log n): the slope changes at the corners b = y_i - s_i, and the minimum is where the slope
// changes its sign.
BestIntercept best_intercept(std::span<const double> scores, std::span<const signed char> labels,
                             std::span<const double> costs);

}  // namespace unkernel::tree
