// Probabilities of scores. Every way to an answer takes them from here, so that all agree to the last bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace unkernel {

// 1 / (1 + exp(exponent)). No power overflows.
inline double sigmoid(double exponent) {
  const double small = std::exp(-std::abs(exponent));
  return (exponent >= 0 ? small : 1.0) / (1.0 + small);
}

// Replaces the scores of all classes by probabilities in proportion to exp(score). Of the scores 0 and f
// these are sigmoid(f) and sigmoid(-f), to the last bit.
inline void softmax(std::span<double> scores) {
  if (scores.empty()) return;
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0.0;
  for (double& score : scores) total += score = std::exp(score - largest);
  for (double& score : scores) score /= total;
}

}  // namespace unkernel
