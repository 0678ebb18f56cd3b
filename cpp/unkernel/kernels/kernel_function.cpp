#include "unkernel/kernels/kernel_function.hpp"

#include <array>

#include "unkernel/base/cpu.hpp"
#include "unkernel/base/exponential.hpp"

namespace unkernel::kernels {
namespace {

// Replaces products by polynomial kernels as KernelFunction does, but several at a time.
UNKERNEL_CLONES void replace_by_powers(const KernelFunction& kernel, double* values, std::size_t count) {
  constexpr std::size_t max_chunk = 64;
  std::array<double, max_chunk> bases;
  for (std::size_t first = 0; first < count; first += max_chunk) {
    double* chunk = values + first;
    const std::size_t chunk_size = count - first < max_chunk ? count - first : max_chunk;
    for (std::size_t k = 0; k < chunk_size; ++k) bases[k] = kernel.gamma * chunk[k] + kernel.coef0;
    for (std::size_t k = 0; k < chunk_size; ++k) chunk[k] = 1.0;
    for (int exponent = kernel.degree; exponent > 0; exponent /= 2) {
      if (exponent % 2 == 1) {
        for (std::size_t k = 0; k < chunk_size; ++k) chunk[k] *= bases[k];
      }
      for (std::size_t k = 0; k < chunk_size; ++k) bases[k] *= bases[k];
    }
  }
}

}  // namespace

void kernel_values(const KernelFunction& kernel, double* values, std::size_t count) {
  using Type = KernelFunction::Type;
  if (kernel.type == Type::rbf) {
    exponentials(-kernel.gamma, values, count);
  } else if (kernel.type == Type::polynomial) {
    replace_by_powers(kernel, values, count);
  } else if (kernel.type == Type::sigmoid) {
    for (std::size_t k = 0; k < count; ++k) values[k] = kernel(values[k], 0.0, 0.0);
  }
}

}  // namespace unkernel::kernels
