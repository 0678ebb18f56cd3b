// The kernels of models made of support vectors, as functions of x'z (and the norms of x and z).
#pragma once

#include <cmath>

namespace unkernel::kernels {

struct KernelFunction {
  enum class Type { linear, polynomial, rbf, sigmoid };

  Type type;
  int degree;
  double gamma;
  double coef0;

  // The norms are squared ones; only RBF asks for them.
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

}  // namespace unkernel::kernels
