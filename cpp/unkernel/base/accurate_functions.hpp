// exp, log and other functions within 0.75 ulp of the exact result (denormal results: within the least
// positive number), with the same bits on every machine. C libraries differ in the last digit.
//
// NaN stays NaN. A call takes 20 to 140 ns. Where speed matters more than the last digit, use elementary.hpp
// and exponential.hpp.
#pragma once

namespace unkernel::accurate {

double exp(double x);
double exp2(double x);
double expm1(double x);  // exp(x) - 1

// The logarithms return -infinity where the exact result is, and NaN below.
double log(double x);
double log2(double x);
double log10(double x);
double log1p(double x);  // log(1 + x)

double cbrt(double x);
double tanh(double x);
double arcsinh(double x);
double arctan(double x);

// NaN for infinity. Numbers of any size are reduced exactly.
double sin(double x);
double cos(double x);

// Returns the number that a standard normal variable is less than with probability p, with a relative error
// of at most 1e-15: -infinity for 0, infinity for 1, and NaN outside.
double normal_quantile(double p);

}  // namespace unkernel::accurate
