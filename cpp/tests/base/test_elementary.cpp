#include "unkernel/base/elementary.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "check.hpp"
#include "unkernel/base/random.hpp"

namespace {

using unkernel::hyperbolic_tangent;
using unkernel::natural_exponential;
using unkernel::natural_logarithm;
using unkernel::whole_power;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Returns the distance to the exact result, in units in the last place of a double. Where long double is the
// same as double, the exact result is only as exact as the C library.
double units_off(long double exact, double computed) {
  const auto rounded = std::abs(static_cast<double>(exact));
  const double unit = std::nextafter(rounded, infinity) - rounded;
  return static_cast<double>(std::abs(static_cast<long double>(computed) - exact) / unit);
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void test_tanh_is_exact_to_two_units_in_the_last_place() {
  unkernel::Random random(1);
  for (const double largest : {1e-300, 1e-8, 0.1, 0.5, 0.6, 2.0, 25.0, 1000.0}) {
    for (int k = 0; k < 3001; ++k) {
      const double x = largest * random.below(1'000'001) / 1e6;
      CHECK(units_off(std::tanh(static_cast<long double>(x)), hyperbolic_tangent(x)) <= 2.0);
      CHECK(same_bits(hyperbolic_tangent(-x), -hyperbolic_tangent(x)));
    }
  }
  CHECK(hyperbolic_tangent(infinity) == 1.0 && hyperbolic_tangent(-infinity) == -1.0);
  CHECK(std::isnan(hyperbolic_tangent(std::nan(""))));
}

void test_exp_is_exact_to_two_units_in_the_last_place() {
  unkernel::Random random(3);
  for (const double largest : {1e-300, 1e-8, 1.0, 30.0, 708.0, 709.7}) {
    for (int k = 0; k < 3001; ++k) {
      const double x = largest * random.below(1'000'001) / 1e6;
      CHECK(units_off(std::exp(static_cast<long double>(x)), natural_exponential(x)) <= 2.0);
      CHECK(units_off(std::exp(static_cast<long double>(-x)), natural_exponential(-x)) <= 2.0);
    }
  }
  CHECK(same_bits(natural_exponential(0.0), 1.0) && same_bits(natural_exponential(-0.0), 1.0));
  CHECK(natural_exponential(710.0) == infinity && natural_exponential(infinity) == infinity);
  CHECK(natural_exponential(-800.0) == 0.0 && natural_exponential(-infinity) == 0.0);
  CHECK(std::isnan(natural_exponential(std::nan(""))));
}

void test_log_is_exact_to_two_units_in_the_last_place() {
  unkernel::Random random(2);
  for (const double largest : {1e-310, 1e-20, 1.0, 2.0, 1e4, 1e300}) {
    for (int k = 0; k < 3001; ++k) {
      const double x = largest * (random.below(1'000'000) + 1) / 1e6;
      CHECK(units_off(std::log(static_cast<long double>(x)), natural_logarithm(x)) <= 2.0);
    }
  }
  CHECK(same_bits(natural_logarithm(1.0), 0.0));
  CHECK(natural_logarithm(0.0) == -infinity && natural_logarithm(infinity) == infinity);
  CHECK(std::isnan(natural_logarithm(-1.0)) && std::isnan(natural_logarithm(std::nan(""))));
}

void test_whole_powers_are_exact() {
  CHECK(whole_power(2.0, 10) == 1024.0 && whole_power(-3.0, 3) == -27.0);
  CHECK(whole_power(0.0, 0) == 1.0 && whole_power(7.0, 0) == 1.0);
}

}  // namespace

int main() {
  test_tanh_is_exact_to_two_units_in_the_last_place();
  test_exp_is_exact_to_two_units_in_the_last_place();
  test_log_is_exact_to_two_units_in_the_last_place();
  test_whole_powers_are_exact();
  return 0;
}
