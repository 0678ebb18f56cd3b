// Kernel functions of support vector models, given x'z and, for RBF, the squared norms of x and z.
#pragma once

#include <cmath>
#include <cstddef>

namespace unkernel::kernels {

struct KernelFunction {
  enum class Type { linear, polynomial, rbf, sigmoid };

  Type type;
  int degree;
  double gamma;
  double coef0;

  // The norms are squared; only RBF uses them.
  double operator()(double product, double row_norm, double vector_norm) const {
    switch (type) {
      case Type::linear: return product;
      case Type::polynomial: return power(gamma * product + coef0);
      case Type::rbf: return std::exp(-gamma * (row_norm + vector_norm - 2.0 * product));
      default: return std::tanh(gamma * product + coef0);
    }
  }

 private:
  double power(double base) const {
    double result = 1.0;
    for (int rest = degree; rest > 0; rest /= 2, base *= base) {
      if (rest % 2 == 1) result *= base;
    }
    return result;
  }
};

// Replaces products x'z by kernel values; for RBF with a gamma that is not negative, squared distances, which
// must not be negative either. Within 1.25 ulp of the exact exp of -gamma times the distance.
void kernel_values(const KernelFunction& kernel, double* values, std::size_t count);

}  // namespace unkernel::kernels
