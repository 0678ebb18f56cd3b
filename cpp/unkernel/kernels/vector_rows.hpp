// The vectors that examples have in addition to trees, and the kernels of these vectors.
//
// An example has any number of vectors. The kernel of two examples is the sum over all pairs of their
// vectors. If vectors are normalised, each term is divided by the square roots of the two vectors' kernels
// with themselves. The kernel is 0 if either example has no vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/kernels/kernel_function.hpp"

namespace unkernel::kernels {

class VectorRows {
 public:
  VectorRows() = default;
  // Example i has the vectors offsets[i] .. offsets[i + 1] - 1. Vector v has the entries entry_offsets[v] ..
  // entry_offsets[v + 1] - 1.
  VectorRows(const KernelFunction& kernel, bool normalize, std::span<const std::int64_t> offsets,
             std::span<const std::int64_t> entry_offsets, std::span<const std::int32_t> columns,
             std::span<const double> values);

  struct Vector {
    std::span<const std::int32_t> columns;
    std::span<const double> values;
    double scale;
    double squared_norm;
  };

  std::size_t size() const { return offsets_.size() - 1; }
  std::size_t first(std::size_t example) const { return static_cast<std::size_t>(offsets_[example]); }
  std::size_t end(std::size_t example) const { return static_cast<std::size_t>(offsets_[example + 1]); }
  Vector vector(std::size_t v) const;
  // Returns the kernel of an example with itself.
  double self_kernel(const KernelFunction& kernel, std::size_t example) const;

 private:
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::int64_t> entry_offsets_{0};
  std::vector<std::int32_t> columns_;
  std::vector<double> values_;
  std::vector<double> scales_;
  std::vector<double> squared_norms_;
};

// An inverted index of the vectors of chosen examples. Computing the kernels of one example with all chosen
// examples takes time in proportion to the matching postings, plus one evaluation of the kernel per vector.
class VectorIndex {
 public:
  VectorIndex(const KernelFunction& kernel, const VectorRows& rows, std::span<const std::int32_t> chosen);

  // Adds the kernel of `example` with each chosen example to `kernels`. `products` is a scratch buffer.
  void add_kernels(const VectorRows& rows, std::size_t example, std::vector<double>& products,
                   double* kernels) const;

 private:
  struct Posting {
    std::int32_t vector;
    double value;
  };

  KernelFunction kernel_;
  FlatMap<std::uint64_t, std::int32_t> list_;  // column -> list number, from 1; columns may be any numbers
  std::vector<std::int64_t> begins_;           // where each list begins
  std::vector<Posting> postings_;
  std::vector<std::int32_t> example_;  // by vector: its index among the chosen examples
  std::vector<double> scales_;
  std::vector<double> squared_norms_;
};

}  // namespace unkernel::kernels
