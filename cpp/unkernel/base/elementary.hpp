// tanh, exp, log and integer powers, with the same bits on every machine. C libraries differ in the last
// digit, but scores must not depend on the machine.
#pragma once

namespace unkernel {

// Returns tanh(x), within 2 ulp of the exact result. NaN stays NaN.
double hyperbolic_tangent(double x);

// Returns exp(x), within 2 ulp of the exact result (denormal results: within the least positive number), and
// infinity if it is too large. NaN stays NaN.
double natural_exponential(double x);

// Returns the natural logarithm of x, within 2 ulp of the exact result: -infinity for 0, NaN below.
double natural_logarithm(double x);

// Returns base^exponent by repeated squaring, and 1 for exponents that are not positive.
constexpr double whole_power(double base, int exponent) {
  double result = 1.0;
  for (int rest = exponent; rest > 0; rest /= 2, base *= base) {
    if (rest % 2 == 1) result *= base;
  }
  return result;
}

}  // namespace unkernel
