// Kernel functions of support vector models: of the product x'z and, for RBF, of the squared norms of x and
// z.
#pragma once

#include <cstddef>

#include "unkernel/base/elementary.hpp"
#include "unkernel/base/exponential.hpp"

namespace unkernel::kernels {

struct KernelFunction {
  enum class Type { linear, polynomial, rbf, sigmoid };

  Type type;
  int degree;
  double gamma;
  double coef0;

  // Returns the kernel value. The norms are squared; only RBF uses them.
  double operator()(double product, double row_norm, double vector_norm) const {
    switch (type) {
      case Type::linear: return product;
      case Type::polynomial: return whole_power(gamma * product + coef0, degree);
      case Type::rbf: return decay(row_norm + vector_norm - 2.0 * product);
      default: return hyperbolic_tangent(gamma * product + coef0);
    }
  }

 private:
  // Returns exp(-gamma distance). A squared distance that is negative because of rounding counts as 0.
  double decay(double distance) const {
    double value = distance < 0.0 ? 0.0 : distance;
    exponentials(-gamma, &value, 1);
    return value;
  }
};

// Replaces products x'z by kernel values. For RBF, replaces squared distances instead, which must be
// nonnegative, as must gamma. Results are within 1.25 ulp of the exact exp(-gamma distance).
void kernel_values(const KernelFunction& kernel, double* values, std::size_t count);

}  // namespace unkernel::kernels
