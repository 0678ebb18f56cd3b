// Computes exp of many numbers at once, in vector instructions.
#pragma once

#include <cstddef>

namespace unkernel {

// Replaces values[k] by exp(factor values[k]), for products of at most 0, -infinity included; NaN stays NaN.
// Apart from the rounding of the product, results are within 1.25 ulp of the exact results (denormal results:
// within the least positive number). Results do not depend on the position in the array.
void exponentials(double factor, double* values, std::size_t count);

}  // namespace unkernel
