#include "unkernel/base/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unkernel/base/exponential.hpp"

namespace unkernel {
namespace {

constexpr double high_part_of_ln2 = 0x1.62e42feep-1;  // 32 bits: its products with exponents are exact
constexpr double low_part_of_ln2 = 0x1.a39ef35793c76p-33;

}  // namespace

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

double natural_exponential(double x) {
  double power = x;
  if (!(x > 0.0)) {
    exponentials(1.0, &power, 1);
    return power;
  }
  constexpr double least_infinite = 710.0;
  if (x >= least_infinite) return std::numeric_limits<double>::infinity();
  constexpr double per_ln2 = 0x1.71547652b82fep+0;
  const double exponent = std::ceil(x * per_ln2);
  power = std::min((x - exponent * high_part_of_ln2) - exponent * low_part_of_ln2, 0.0);
  exponentials(1.0, &power, 1);
  return std::ldexp(power, static_cast<int>(exponent));
}

double natural_logarithm(double x) {
  if (!(x > 0.0) || std::isinf(x)) return std::log(x);  // exact in every library
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
  return exponent * high_part_of_ln2 + (2.0 * s + (2.0 * s * series + exponent * low_part_of_ln2));
}

}  // namespace unkernel
