#include "unkernel/base/add_multiple.hpp"

#include "unkernel/base/cpu.hpp"

namespace unkernel {

UNKERNEL_CLONES void add_multiple(double factor, const double* numbers, double* sums, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) sums[k] += factor * numbers[k];
}

}  // namespace unkernel
