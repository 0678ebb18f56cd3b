// Approximate equality of numbers that were computed in different orders.
#pragma once

#include <algorithm>
#include <cmath>

inline bool close(double a, double b, double tolerance = 1e-10) {
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}
