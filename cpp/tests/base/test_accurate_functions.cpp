#include "unkernel/base/accurate_functions.hpp"

#include <cmath>
#include <limits>

#include "check.hpp"
#include "unkernel/base/random.hpp"

namespace {

namespace accurate = unkernel::accurate;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::nan("");

using Function = double (*)(double);
using ExactFunction = long double (*)(long double);

// Returns the distance to the exact result, in units in the last place of a double. Where long double is the
// same as double, the exact result is only as exact as the C library.
double units_off(long double exact, double computed) {
  const auto rounded = std::abs(static_cast<double>(exact));
  const double unit = std::nextafter(rounded, infinity) - rounded;
  return static_cast<double>(std::abs(static_cast<long double>(computed) - exact) / unit);
}

// Checks numbers from -size to size or, for `positive` functions, from 0 to size.
void check(Function function, ExactFunction exact, std::initializer_list<double> sizes, bool positive) {
  unkernel::Random random(1);
  for (const double size : sizes) {
    for (int k = 0; k < 3001; ++k) {
      const double share = (random.below(1'000'000) + 1) / 1e6;
      const double x = positive || k % 2 == 0 ? size * share : -size * share;
      CHECK(units_off(exact(x), function(x)) <= 1.0);
    }
  }
  CHECK(std::isnan(function(not_a_number)));
}

void test_functions_are_within_a_unit_in_the_last_place() {
  check(
      accurate::exp, [](long double x) { return std::exp(x); }, {1e-300, 1e-9, 0.1, 1.0, 30.0, 700.0}, false);
  check(accurate::exp2, [](long double x) { return std::exp2(x); }, {1e-300, 1e-9, 0.1, 30.0, 1020.0}, false);
  check(
      accurate::expm1, [](long double x) { return std::expm1(x); }, {1e-300, 1e-9, 0.1, 1.0, 60.0, 700.0},
      false);
  check(accurate::log, [](long double x) { return std::log(x); }, {1e-310, 1e-9, 1.0, 2.0, 1e9, 1e300}, true);
  check(
      accurate::log2, [](long double x) { return std::log2(x); }, {1e-310, 1e-9, 1.0, 2.0, 1e9, 1e300}, true);
  check(accurate::log10, [](long double x) { return std::log10(x); }, {1e-310, 1.0, 2.0, 1e9, 1e300}, true);
  check(accurate::log1p, [](long double x) { return std::log1p(x); }, {1e-310, 1e-9, 0.5, 0.999}, false);
  check(accurate::log1p, [](long double x) { return std::log1p(x); }, {2.0, 1e9, 1e17, 1e300}, true);
  check(accurate::cbrt, [](long double x) { return std::cbrt(x); }, {1e-310, 1e-9, 1.0, 8.0, 1e300}, false);
  check(
      accurate::tanh, [](long double x) { return std::tanh(x); }, {1e-300, 1e-9, 0.1, 1.0, 30.0, 1e9}, false);
  check(
      accurate::arcsinh, [](long double x) { return std::asinh(x); }, {1e-300, 1e-9, 0.1, 9.0, 1e12, 1e300},
      false);
  check(
      accurate::arctan, [](long double x) { return std::atan(x); },
      {1e-300, 1e-9, 0.1, 2.0, 99.0, 1e17, 1e300}, false);
  check(accurate::sin, [](long double x) { return std::sin(x); }, {1e-300, 1e-9, 0.1, 2.0, 9e3, 1e6}, false);
  check(accurate::cos, [](long double x) { return std::cos(x); }, {1e-300, 1e-9, 0.1, 2.0, 9e3, 1e6}, false);
}

void test_angles_of_any_size() {
  // The C library's results for doubles are within a unit in the last place.
  unkernel::Random random(3);
  for (const double size : {2e6, 1e10, 1e15, 1e22, 1e100, 1.7e308}) {
    for (int k = 0; k < 1001; ++k) {
      const double x = size * ((random.below(1'000'000) + 1) / 1e6);
      CHECK(std::abs(accurate::sin(x) - std::sin(x)) <= 3e-16);
      CHECK(std::abs(accurate::cos(x) - std::cos(x)) <= 3e-16);
      CHECK(accurate::sin(-x) == -accurate::sin(x) && accurate::cos(-x) == accurate::cos(x));
    }
  }
  // A double that is very close to a multiple of pi / 2.
  CHECK(units_off(-4.687165924254627611122582801963884e-19L, accurate::cos(0x1.6ac5b262ca1ffp+849)) <= 1.0);
}

void test_exact_results() {
  for (int k = -1000; k <= 1000; ++k) {
    CHECK(accurate::log2(std::ldexp(1.0, k)) == k && accurate::exp2(k) == std::ldexp(1.0, k));
  }
  double power = 1.0;
  for (int k = 0; k <= 22; ++k, power *= 10.0) CHECK(accurate::log10(power) == k);
  for (int k = 0; k <= 1000; ++k) CHECK(accurate::cbrt(-1.0 * k * k * k) == -k);
  CHECK(accurate::exp(0.0) == 1.0 && accurate::log(1.0) == 0.0 && accurate::cos(0.0) == 1.0);
}

void test_ends_of_ranges() {
  CHECK(accurate::exp(infinity) == infinity && accurate::exp(-infinity) == 0.0 &&
        accurate::exp(710.0) == infinity);
  CHECK(std::isfinite(accurate::exp(709.78)) && accurate::exp(-745.0) > 0.0 && accurate::exp(-746.0) == 0.0);
  CHECK(accurate::expm1(infinity) == infinity && accurate::expm1(-infinity) == -1.0);
  CHECK(accurate::exp2(1024.0) == infinity && accurate::exp2(-1074.0) == 0x1p-1074 &&
        accurate::exp2(-1080.0) == 0.0);
  for (const Function log : {accurate::log, accurate::log2, accurate::log10}) {
    CHECK(log(0.0) == -infinity && log(infinity) == infinity && std::isnan(log(-1.0)));
  }
  CHECK(accurate::log1p(-1.0) == -infinity && accurate::log1p(infinity) == infinity);
  CHECK(std::isnan(accurate::log1p(-2.0)));
  CHECK(accurate::tanh(infinity) == 1.0 && accurate::tanh(-infinity) == -1.0);
  CHECK(accurate::arctan(infinity) > 1.57 && accurate::arctan(-infinity) < -1.57);
  CHECK(accurate::cbrt(-infinity) == -infinity && accurate::arcsinh(-infinity) == -infinity);
  CHECK(std::isnan(accurate::sin(infinity)) && std::isnan(accurate::cos(-infinity)));
}

// The error of a quantile x of p is (Phi(x) - p) / phi(x), up to its square.
void test_normal_quantiles() {
  unkernel::Random random(5);
  constexpr long double inverse_root_two = 0.70710678118654752440L, root_of_two_pi = 2.50662827463100050242L;
  for (int k = 0; k < 20'000; ++k) {
    const double share = (random.below(1'000'000) + 1) / 1'000'001.0;
    const double p = k % 2 == 0 ? share / 2.0 : std::ldexp(share, -static_cast<int>(random.below(1000)) - 1);
    const double x = accurate::normal_quantile(p);
    const long double tail = std::erfc(-x * inverse_root_two) / 2.0L;
    const long double density = std::exp(-static_cast<long double>(x) * x / 2.0L) / root_of_two_pi;
    const double error = static_cast<double>(std::abs((tail - p) / density));
    CHECK(error <= 1e-15 * std::abs(x) + 1e-18);
    if (p > 1e-3) CHECK(std::abs(accurate::normal_quantile(1.0 - p) + x) < 1e-12);
  }
  CHECK(accurate::normal_quantile(0.0) == -infinity && accurate::normal_quantile(1.0) == infinity);
  CHECK(accurate::normal_quantile(0.5) == 0.0);
  CHECK(std::isnan(accurate::normal_quantile(-0.1)) && std::isnan(accurate::normal_quantile(1.1)));
  CHECK(std::isnan(accurate::normal_quantile(not_a_number)));
}

}  // namespace

int main() {
  test_functions_are_within_a_unit_in_the_last_place();
  test_angles_of_any_size();
  test_exact_results();
  test_ends_of_ranges();
  test_normal_quantiles();
  return 0;
}
