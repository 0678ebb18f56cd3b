// Adds a multiple of one vector to another, with the widest vector instructions that the machine has.
#pragma once

#include <cstddef>

namespace unkernel {

// sums[k] += factor * numbers[k]
void add_multiple(double factor, const double* numbers, double* sums, std::size_t count);

}  // namespace unkernel
