#include "unkernel/base/accurate_functions.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "unkernel/base/number_pair.hpp"

// Each function reduces its argument to a small number r, exactly or with 100 bits. The first terms of the
// series in r are computed in pairs of doubles. The other terms are at most a few percent of the result, so
// that their rounding errors are a few percent of an ulp.

namespace unkernel::accurate {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double ln2_high = 0x1.62e42feep-1;  // 32 bits: its products with exponents are exact
constexpr double ln2_low = 0x1.a39ef35793c76p-33;
constexpr NumberPair per_ln2{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
constexpr NumberPair per_ln10{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

NumberPair scale_by_power(NumberPair x, int exponent) {
  return {std::ldexp(x.high, exponent), std::ldexp(x.low, exponent)};
}

// --- Exponentials ------------------------------------------------------------------------------------------

constexpr int last_factorial = 17;  // (ln 2 / 2)^18 / 18! is below 2^-79

constexpr auto inverse_factorials = [] {
  std::array<double, last_factorial + 1> result{};
  double factorial = 1.0;  // exact up to 22!
  for (int k = 0; k <= last_factorial; ++k) {
    result[static_cast<std::size_t>(k)] = 1.0 / factorial;
    factorial *= k + 1;
  }
  return result;
}();

// Returns exp(r) - 1 for |r| <= ln 2 / 2: r + r^2 / 2 in pairs, then r^3 / 3! + ...
NumberPair small_expm1(NumberPair r) {
  const double square = r.high * r.high;
  // Two sums, over even and odd powers, take half the time of one.
  double even = 0.0, odd = 0.0;
  for (std::size_t k = last_factorial - 1; k >= 4; k -= 2) {
    odd = odd * square + inverse_factorials[k + 1];
    even = even * square + inverse_factorials[k];
  }
  odd = odd * square + inverse_factorials[3];
  const double tail = r.high * square * (odd + r.high * even);
  const NumberPair half_square = product(0.5 * r.high, r.high);
  const NumberPair high = sum_ordered(r.high, half_square.high);
  const double low = high.low + (half_square.low + (r.low + r.high * r.low));
  return sum_ordered(high.high, low + tail);
}

struct Reduced {
  NumberPair rest;
  int exponent;
};

// Returns x - n ln 2 and n, where n = round(x / ln 2).
Reduced reduce_by_ln2(NumberPair x) {
  const double n = std::floor(x.high * per_ln2.high + 0.5);
  NumberPair rest = sum(x.high - n * ln2_high, -n * ln2_low);
  rest.low += x.low;
  return {rest, static_cast<int>(n)};
}

// Returns 2^n (1 + s) - 1, for |x| < 745.
NumberPair expm1_pair(NumberPair x) {
  const Reduced reduced = reduce_by_ln2(x);
  const NumberPair small = small_expm1(reduced.rest);
  if (reduced.exponent == 0) return small;
  const NumberPair mantissa = NumberPair{1.0, 0.0} + small;
  return scale_by_power(mantissa, reduced.exponent) + NumberPair{-1.0, 0.0};
}

double finish_exponential(const Reduced& reduced) {
  const NumberPair small = small_expm1(reduced.rest);
  const NumberPair one = sum_ordered(1.0, small.high);
  return std::ldexp(one.high + (one.low + small.low), reduced.exponent);
}

// --- Logarithms --------------------------------------------------------------------------------------------

struct Logarithm {
  NumberPair rest;  // the logarithm is exponent * ln 2 + rest
  int exponent;
};

// 2 / 3, 2 / 5, ..., 2 / 25
constexpr auto doubled_odd_inverses = [] {
  std::array<double, 12> result{};
  for (std::size_t k = 0; k < result.size(); ++k) result[k] = 2.0 / static_cast<double>(2 * k + 3);
  return result;
}();

// Returns the logarithm of a positive, finite number. With m in [1/sqrt 2, sqrt 2) and s = (m - 1) / (m + 1),
// log m = 2 artanh s = 2 s + 2 s^3 / 3 + 2 s^5 / 5 + ..., where |s| < .172.
Logarithm split_logarithm(NumberPair x) {
  constexpr double half_root = 0x1.6a09e667f3bcdp-1;
  int exponent = 0;
  double mantissa = std::frexp(x.high, &exponent);
  if (mantissa < half_root) {
    mantissa *= 2.0;
    --exponent;
  }
  const double low = x.low == 0.0 ? 0.0 : std::ldexp(x.low, -exponent);
  NumberPair sum_with_one = sum(mantissa, 1.0);
  sum_with_one.low += low;
  const NumberPair s = sum(mantissa - 1.0, low) / sum_with_one;
  const double square = s.high * s.high;
  double series = 0.0;
  for (std::size_t k = doubled_odd_inverses.size(); k-- > 0;)
    series = series * square + doubled_odd_inverses[k];
  const NumberPair high = sum_ordered(2.0 * s.high, s.high * square * series);
  return {sum_ordered(high.high, high.low + 2.0 * (s.low + s.low * square)), exponent};
}

NumberPair add_exponent(const Logarithm& logarithm) {
  const NumberPair high = sum(logarithm.exponent * ln2_high, logarithm.rest.high);
  return sum_ordered(high.high, high.low + (logarithm.rest.low + logarithm.exponent * ln2_low));
}

// Returns whether the logarithm of x is a finite number; otherwise, sets `result`.
bool has_logarithm(double x, double& result) {
  if (x > 0.0 && x < infinity) return true;
  result = not_a_number;
  if (x == 0.0) result = -infinity;
  if (x == infinity) result = infinity;
  return false;
}

// --- Polynomials of the normal distribution
// ------------------------------------------------------------------

using Coefficients = std::array<double, 8>;

double evaluate(const Coefficients& coefficients, double x) {
  double result = coefficients[7];
  for (std::size_t k = 7; k > 0; --k) result = result * x + coefficients[k - 1];
  return result;
}

}  // namespace

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 710.0) return infinity;
  if (x < -746.0) return 0.0;
  return finish_exponential(reduce_by_ln2({x, 0.0}));
}

double exp2(double x) {
  if (std::isnan(x)) return x;
  if (x >= 1024.0) return infinity;
  if (x < -1076.0) return 0.0;
  const double n = std::floor(x + 0.5);
  constexpr NumberPair ln2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  return finish_exponential({NumberPair{x - n, 0.0} * ln2, static_cast<int>(n)});
}

double expm1(double x) {
  if (std::isnan(x) || x == 0.0) return x;
  if (x > 60.0) return exp(x);
  if (x < -40.0) return -1.0;
  return round_to_double(expm1_pair({x, 0.0}));
}

double log(double x) {
  double result = 0.0;
  if (!has_logarithm(x, result)) return result;
  return round_to_double(add_exponent(split_logarithm({x, 0.0})));
}

double log2(double x) {
  double result = 0.0;
  if (!has_logarithm(x, result)) return result;
  const Logarithm logarithm = split_logarithm({x, 0.0});
  const NumberPair rest = logarithm.rest * per_ln2;
  const NumberPair high = sum(logarithm.exponent, rest.high);
  return high.high + (high.low + rest.low);
}

double log10(double x) {
  double result = 0.0;
  if (!has_logarithm(x, result)) return result;
  return round_to_double(add_exponent(split_logarithm({x, 0.0})) * per_ln10);
}

double log1p(double x) {
  if (std::abs(x) < 0x1p-54) return x;
  double result = 0.0;
  if (!has_logarithm(1.0 + x, result)) return result;
  return round_to_double(add_exponent(split_logarithm(sum(1.0, x))));
}

double cbrt(double x) {
  if (x == 0.0 || !std::isfinite(x)) return x;
  int exponent = 0;
  double mantissa = std::frexp(std::abs(x), &exponent);
  const int third = static_cast<int>(std::floor(exponent / 3.0));
  mantissa = std::ldexp(mantissa, exponent - 3 * third);  // from .5 to 4
  double root = 0.7 + 0.25 * mantissa;                    // within 20 %
  for (int k = 0; k < 4; ++k) {                           // Halley's steps; each cubes the error
    const double cube = root * root * root;
    root *= (cube + 2.0 * mantissa) / (2.0 * cube + mantissa);
  }
  const NumberPair cube = product(root, root) * NumberPair{root, 0.0};
  const double rest = (mantissa - cube.high) - cube.low;
  return std::copysign(std::ldexp(root + rest / (3.0 * root * root), third), x);
}

double tanh(double x) {
  const double size = std::abs(x);
  if (!(size < 20.0)) return std::isnan(x) ? x : std::copysign(1.0, x);
  if (size < 0x1p-28) return x - x * (x * x / 3.0);
  const NumberPair grown = expm1_pair({2.0 * size, 0.0});
  return std::copysign(round_to_double(grown / (grown + NumberPair{2.0, 0.0})), x);
}

double arcsinh(double x) {
  const double size = std::abs(x);
  if (!std::isfinite(x)) return x;
  if (size < 0x1p-28) return x - x * (x * x / 6.0);
  if (size > 0x1p30) {  // log(2 |x|); the next term, 1 / (4 x^2), is below 2^-62
    Logarithm logarithm = split_logarithm({size, 0.0});
    ++logarithm.exponent;
    return std::copysign(round_to_double(add_exponent(logarithm)), x);
  }
  // log(1 + |x| + x^2 / (1 + sqrt(1 + x^2)))
  const NumberPair square = product(size, size);
  const NumberPair inside = square + NumberPair{1.0, 0.0};
  const double root = std::sqrt(inside.high);
  const NumberPair back = product(root, root);
  const double rest = ((inside.high - back.high) - back.low + inside.low) / (2.0 * root);
  const NumberPair one_and_root = sum(root, 1.0) + NumberPair{rest, 0.0};
  const NumberPair grown = square / one_and_root + NumberPair{size, 0.0};
  NumberPair argument = sum(1.0, grown.high);
  argument.low += grown.low;
  return std::copysign(round_to_double(add_exponent(split_logarithm(argument))), x);
}

double arctan(double x) {
  if (std::isnan(x)) return x;
  // arctan(k / 8)
  constexpr std::array<NumberPair, 9> arcs{{{0.0, 0.0},
                                            {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
                                            {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
                                            {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
                                            {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
                                            {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
                                            {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
                                            {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
                                            {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55}}};
  constexpr NumberPair half_pi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  const double size = std::abs(x);
  if (size > 0x1p60) return std::copysign(half_pi.high, x);
  if (size < 0x1p-28) return x - x * (x * x / 3.0);
  const bool is_inverted = size > 1.0;
  const NumberPair y = is_inverted ? NumberPair{1.0, 0.0} / NumberPair{size, 0.0} : NumberPair{size, 0.0};
  // arctan y = arctan c + arctan t, where c = k / 8, t = (y - c) / (1 + c y) and |t| <= 1/16.
  const double k = std::floor(8.0 * y.high + 0.5), c = k / 8.0;
  NumberPair t = y;
  if (k > 0.0) t = (y + NumberPair{-c, 0.0}) / (y * NumberPair{c, 0.0} + NumberPair{1.0, 0.0});
  const double square = t.high * t.high;
  double doubled_series = 0.0;  // of t - t^3 / 3 + t^5 / 5 - ...
  for (std::size_t term = 8; term-- > 0;)
    doubled_series = doubled_odd_inverses[term] - square * doubled_series;
  const NumberPair high = sum_ordered(t.high, -0.5 * t.high * square * doubled_series);
  NumberPair arc = arcs[static_cast<std::size_t>(k)] + NumberPair{high.high, high.low + t.low};
  if (is_inverted) arc = half_pi + -arc;
  return std::copysign(round_to_double(arc), x);
}

// Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37
// (1988): three rational functions of degree 7, of p - 1/2 around the middle and of sqrt(-log p) in the
// tails.
double normal_quantile(double p) {
  constexpr Coefficients middle{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr Coefficients under_middle{1.0,
                                      4.2313330701600911252e1,
                                      6.8718700749205790830e2,
                                      5.3941960214247511077e3,
                                      2.1213794301586595867e4,
                                      3.9307895800092710610e4,
                                      2.8729085735721942674e4,
                                      5.2264952788528545610e3};
  constexpr Coefficients tail{1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                              3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                              2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr Coefficients under_tail{1.0,
                                    2.05319162663775882187e0,
                                    1.67638483018380384940e0,
                                    6.89767334985100004550e-1,
                                    1.48103976427480074590e-1,
                                    1.51986665636164571966e-2,
                                    5.47593808499534494600e-4,
                                    1.05075007164441684324e-9};
  constexpr Coefficients end{6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                             2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                             2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr Coefficients under_end{1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};
  if (!(p >= 0.0 && p <= 1.0)) return not_a_number;
  if (p == 0.0 || p == 1.0) return p == 0.0 ? -infinity : infinity;
  const double centred = p - 0.5;
  if (std::abs(centred) <= 0.425) {
    const double r = 0.180625 - centred * centred;
    return centred * (evaluate(middle, r) / evaluate(under_middle, r));
  }
  const double r = std::sqrt(-log(centred < 0.0 ? p : 1.0 - p));
  const double quantile = r <= 5.0 ? evaluate(tail, r - 1.6) / evaluate(under_tail, r - 1.6)
                                   : evaluate(end, r - 5.0) / evaluate(under_end, r - 5.0);
  return std::copysign(quantile, centred);
}

}  // namespace unkernel::accurate
