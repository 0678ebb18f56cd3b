// The coefficients c_T of a polynomial feature map, phi_T(x) = c_T m_T(x) with m_T a monomial.
//
//   kernel map   phi(x)'phi(z) = (gamma x'z + r)^d        (eq. (4) of Chang et al. 2010, any d <= 4)
//                c^2 of x^p, |p| = k:  C(d,k) r^(d-k) gamma^k  k! / prod_i p_i!
//   plain map    c = 1 for every monomial of degree <= d  (eq. (5))
//
// Over binary features, x^2 = x. So all monomials with the same *support* T have the same value, and their
// c^2 add up: a set of k features has c^2 = D_k. D_k is the k-th finite difference at 0 of the kernel as a
// function of the overlap (Yoshinaga & Kitsuregawa 2009).
#pragma once

#include <cmath>
#include <cstdint>

#include "unkernel/kernels/conjunction_index.hpp"

namespace unkernel::kernels {

struct FeatureMap {
  enum class Kind { kernel, plain };

  int degree;
  Kind kind;
  double gamma;
  double coef0;

  // Returns c^2 of a monomial of `order` factors. `repeats` is the product of the factorials of its
  // exponents.
  double monomial(int order, int repeats) const {
    if (order > degree) return 0.0;
    if (kind == Kind::plain) return 1.0;
    constexpr double binomial[5][5] = {
        {1, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {1, 2, 1, 0, 0}, {1, 3, 3, 1, 0}, {1, 4, 6, 4, 1}};
    constexpr double factorial[5] = {1, 1, 2, 6, 24};
    return binomial[degree][order] * power(coef0, degree - order) * power(gamma, order) * factorial[order] /
           repeats;
  }

  // Returns c^2 of a set of `size` binary features: the sum over the monomials with this support.
  double set(int size) const {
    switch (size) {
      case 0: return monomial(0, 1);
      case 1: return monomial(1, 1) + monomial(2, 2) + monomial(3, 6) + monomial(4, 24);
      case 2: return monomial(2, 1) + 2.0 * monomial(3, 2) + 2.0 * monomial(4, 6) + monomial(4, 4);
      case 3: return monomial(3, 1) + 3.0 * monomial(4, 2);
      default: return monomial(4, 1);
    }
  }

  // Returns phi(x)'phi(z), given the power sums p_k = sum_i (x_i z_i)^k.
  double kernel(double p1, double p2, double p3) const {
    if (kind == Kind::kernel) return power(gamma * p1 + coef0, degree);
    double value = 1.0 + p1;
    if (degree >= 2) value += 0.5 * (p1 * p1 + p2);
    if (degree >= 3) value += (p1 * p1 * p1 + 3.0 * p1 * p2 + 2.0 * p3) / 6.0;
    return value;
  }

  static double power(double base, int exponent) {
    double result = 1.0;
    for (int i = 0; i < exponent; ++i) result *= base;
    return result;
  }
};

// The factors of sets in the score of a row with values other than 0 and 1. The weight of a set is the sum of
// the weights of its monomials, whose proportions training fixes. So the factor of a set is the mean of these
// monomials, weighted by their proportions. It is 1 if all values are 1.
class SetFactors {
 public:
  explicit SetFactors(const FeatureMap& map) {
    const auto share = [&](int order, int repeats, int size) {
      return map.set(size) != 0.0 ? map.monomial(order, repeats) / map.set(size) : 0.0;
    };
    for (const int order : {1, 2, 3, 4}) powers_[order] = share(order, factorial[order], 1);
    product_ = share(2, 1, 2);
    mixed_ = share(3, 2, 2);
    cubed_ = share(4, 6, 2);
    squared_ = share(4, 4, 2);
    triple_ = share(3, 1, 3);
    triple_mixed_ = share(4, 2, 3);
  }

  double single(double x) const {
    return x * (powers_[1] + x * (powers_[2] + x * (powers_[3] + x * powers_[4])));
  }
  double pair(double x, double y) const {
    return x * y * (product_ + mixed_ * (x + y) + cubed_ * (x * x + y * y) + squared_ * x * y);
  }
  double triple(double x, double y, double z) const {
    return x * y * z * (triple_ + triple_mixed_ * (x + y + z));
  }

  // Returns the factor of a set of `size` features with these values.
  double operator()(const double* x, int size) const {
    switch (size) {
      case 1: return single(x[0]);
      case 2: return pair(x[0], x[1]);
      case 3: return triple(x[0], x[1], x[2]);
      default: return x[0] * x[1] * x[2] * x[3];
    }
  }

 private:
  static constexpr int factorial[5] = {1, 1, 2, 6, 24};

  double powers_[5] = {};
  double product_, mixed_, cubed_, squared_, triple_, triple_mixed_;
};

}  // namespace unkernel::kernels
