// exp of many numbers at once, in vector instructions.
#pragma once

#include <cstddef>

namespace unkernel {

// values[k] = exp(factor values[k]) for products that are not above 0, -infinity included; NaN stays NaN.
// Beyond the rounding of the product, results are within 1.25 ulp of the exact ones (denormal results: within
// the least positive number), and the same wherever in an array a number stands.
void exponentials(double factor, double* values, std::size_t count);

}  // namespace unkernel
