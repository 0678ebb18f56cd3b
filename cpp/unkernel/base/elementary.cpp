#include "unkernel/base/elementary.hpp"

#include <cmath>

#include "unkernel/base/exponential.hpp"

namespace unkernel {

double hyperbolic_tangent(double x) {
  const double size = std::abs(x);
  if (size < 0.5) {
    // Lambert's continued fraction, cut off where the next term is negligible. A difference of exponentials
    // would lose the digits of small results.
    const double square = x * x;
    double fraction = 17.0;
    for (double odd = 15.0; odd > 0.0; odd -= 2.0) fraction = odd + square / fraction;
    return x / fraction;
  }
  double shrunk = size;
  exponentials(-2.0, &shrunk, 1);
  return std::copysign((1.0 - shrunk) / (1.0 + shrunk), x);
}

double natural_logarithm(double x) {
  if (!(x > 0.0) || std::isinf(x)) return std::log(x);  // exact in every library
  constexpr double ln2_high = 0x1.62e42feep-1;          // 32 bits: its products with exponents are exact
  constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  constexpr double half_root = 0x1.6a09e667f3bcdp-1;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < half_root) {
    mantissa *= 2.0;
    --exponent;
  }
  // log m = 2 artanh s, where s = (m - 1) / (m + 1) and |s| < .172: thirteen terms of its series.
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  double series = 0.0;
  for (double odd = 25.0; odd > 1.0; odd -= 2.0) series = (series + 1.0 / odd) * (s * s);
  return exponent * ln2_high + (2.0 * s + (2.0 * s * series + exponent * ln2_low));
}

}  // namespace unkernel
