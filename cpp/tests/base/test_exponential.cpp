#include "unkernel/base/exponential.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"
#include "unkernel/base/random.hpp"

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Returns the distance to the exact result, in units in the last place of a double. Where long double is the
// same as double, the exact result is only as exact as the C library.
double units_off(double x, double computed) {
  const long double exact = std::exp(static_cast<long double>(x));
  const auto rounded = static_cast<double>(exact);
  const double unit = std::nextafter(rounded, infinity) - rounded;
  return static_cast<double>(std::abs(static_cast<long double>(computed) - exact) / unit);
}

std::vector<double> exponentials_of(std::vector<double> values, double factor) {
  unkernel::exponentials(factor, values.data(), values.size());
  return values;
}

void test_the_error_is_below_the_stated_bound() {
  unkernel::Random random(1);
  for (const double lowest : {1e-300, 1e-8, 0.4, 5.0, 100.0, 708.0, 745.0}) {
    std::vector<double> values;
    for (int k = 0; k < 3001; ++k) values.push_back(-lowest * random.below(1'000'001) / 1e6);
    const std::vector<double> computed = exponentials_of(values, 1.0);
    for (std::size_t k = 0; k < values.size(); ++k) CHECK(units_off(values[k], computed[k]) <= 1.25);
  }
}

void test_extreme_arguments() {
  const double smallest = std::numeric_limits<double>::denorm_min();
  const std::vector<double> computed = exponentials_of(
      {0.0, -0.0, -infinity, -std::numeric_limits<double>::max(), -745.0, -745.14, -746.0, -1e4}, 1.0);
  CHECK((computed == std::vector{1.0, 1.0, 0.0, 0.0, smallest, 0.0, 0.0, 0.0}));
  for (const double nan : exponentials_of({std::nan(""), -std::nan("")}, 1.0)) CHECK(std::isnan(nan));
}

void test_arguments_are_scaled_by_the_factor() {
  const std::vector<double> computed = exponentials_of({0.0, 2.0, 1e300, infinity}, -0.5);
  CHECK((computed == std::vector{1.0, exponentials_of({-1.0}, 1.0)[0], 0.0, 0.0}));
}

// Vector instructions take several numbers at a time; the last numbers of an array are computed by other
// code.
void test_results_do_not_depend_on_the_position_in_the_array() {
  unkernel::Random random(2);
  std::vector<double> values;
  for (int k = 0; k < 37; ++k) values.push_back(-800.0 * random.below(1'000'001) / 1e6);
  const std::vector<double> all_at_once = exponentials_of(values, 1.0);
  for (std::size_t k = 0; k < values.size(); ++k)
    CHECK(exponentials_of({values[k]}, 1.0)[0] == all_at_once[k]);
}

}  // namespace

int main() {
  test_the_error_is_below_the_stated_bound();
  test_extreme_arguments();
  test_arguments_are_scaled_by_the_factor();
  test_results_do_not_depend_on_the_position_in_the_array();
  return 0;
}
