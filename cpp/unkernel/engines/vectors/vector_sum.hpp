// The last step of engines that keep the support vectors: turns the products of a row with all vectors into
// sum_j coefficient_j K(x, s_j) + intercept, for every score.
//
// If row and vectors are binary, a product is the overlap c, and the few kernel values are looked up: at c,
// or, for RBF, at the distance |x| + |s| - 2c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/kernels/kernel_function.hpp"

namespace unkernel::engines {

using kernels::KernelFunction;

struct VectorSumTables {
  KernelFunction kernel;
  std::span<const double> coefficients;  // vectors x scores
  std::span<const double> intercept;     // scores
  std::span<const double>
      norms;  // squared norms of the vectors over the columns of the products; empty unless RBF

  std::size_t scores() const { return intercept.size(); }
  std::size_t vectors() const { return scores() == 0 ? 0 : coefficients.size() / scores(); }
  std::size_t bytes() const {
    return coefficients.size_bytes() + intercept.size_bytes() + norms.size_bytes();
  }
};

// Throws std::invalid_argument.
void check(const VectorSumTables& tables);

class VectorSum {
 public:
  // `binary`: all values of all vectors are 1.
  VectorSum(const VectorSumTables& tables, bool binary);

  const VectorSumTables& tables() const { return tables_; }
  std::size_t bytes() const { return tables_.bytes() + 4 * sizes_.size(); }

  // `values` caches kernel values from row to row.
  template <class Count>
  void of_overlaps(const Count* overlaps, std::size_t row_size, std::vector<double>& values,
                   double* out) const;
  // `distances`: added to those that products and norms give (RBF), or null.
  void of_products(const double* products, double row_norm, const double* distances, double* out) const;

 private:
  bool by_distance() const { return tables_.kernel.type == KernelFunction::Type::rbf; }
  void extend(std::vector<double>& values, std::size_t row_size) const;

  VectorSumTables tables_;
  std::vector<std::uint32_t> sizes_;  // of binary vectors, for RBF
  std::size_t largest_ = 0;
};

}  // namespace unkernel::engines
