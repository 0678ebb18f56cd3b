// Probabilities and means of scores. All code uses these functions, so that answers agree to the last bit on
// all machines. The exponential is our own, since C libraries differ in the last digit.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "unkernel/base/elementary.hpp"
#include "unkernel/base/exponential.hpp"

namespace unkernel {

// Returns 1 / (1 + exp(exponent)), which falls as the exponent rises. No power overflows.
inline double sigmoid(double exponent) {
  double small = -std::abs(exponent);
  exponentials(1.0, &small, 1);
  return (exponent >= 0 ? small : 1.0) / (1.0 + small);
}

// Replaces the scores of all classes by probabilities in proportion to exp(score). For the scores 0 and f,
// the result is sigmoid(f) and sigmoid(-f), to the last bit.
inline void softmax(std::span<double> scores) {
  if (scores.empty()) return;
  const double largest = *std::max_element(scores.begin(), scores.end());
  for (double& score : scores) score -= largest;
  exponentials(1.0, scores.data(), scores.size());
  double total = 0.0;
  for (const double score : scores) total += score;
  for (double& score : scores) score /= total;
}

// Returns exp(score), or the largest finite number if that is less. NaN stays NaN.
inline double finite_exponential(double score) {
  return std::min(natural_exponential(score), std::numeric_limits<double>::max());
}

}  // namespace unkernel
