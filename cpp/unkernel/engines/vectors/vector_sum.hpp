// The last step of engines that store support vectors: computes sum_j coefficient_j K(x, s_j) + intercept for
// every score, from the kernel values K(x, s_j).
//
// With k classes one against one, a vector contributes only to the k - 1 pairs of its own class. If the
// vectors are ordered by class, only these k - 1 coefficients per vector are stored.
//
// If the row x and the vectors s are binary, a product x's is the overlap, the number of features that both
// have, so there are few different kernel values. They are looked up in a table by the overlap or, for RBF,
// by the squared distance |x| + |s| - 2 overlap.
//
// Bytes   8 per vector and score, or 8 (k - 1) per vector.
// Query   one multiplication per coefficient. Rows are processed in blocks, so that a coefficient is loaded
//         once for several rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/engines/vectors/dense_block.hpp"
#include "unkernel/kernels/kernel_function.hpp"

namespace unkernel::engines {

using kernels::KernelFunction;

struct VectorSumTables {
  KernelFunction kernel;
  std::span<const double> coefficients;  // vectors x width
  std::span<const double> intercept;     // scores
  // The squared norms of the vectors over the columns of the products. Empty unless the kernel is RBF.
  std::span<const double> norms;
  // The first vector of each class, then the number of vectors. Empty unless classes are one against one.
  std::span<const std::uint32_t> class_begins;

  std::size_t scores() const { return intercept.size(); }
  bool has_classes() const { return !class_begins.empty(); }
  std::size_t classes() const { return class_begins.size() - 1; }
  // Returns the number of coefficients per vector: one per score, or one per opposing class.
  std::size_t width() const { return has_classes() ? classes() - 1 : scores(); }
  std::size_t vectors() const { return width() == 0 ? 0 : coefficients.size() / width(); }
  std::size_t bytes() const {
    return coefficients.size_bytes() + intercept.size_bytes() + norms.size_bytes() +
           class_begins.size_bytes();
  }
};

// Throws std::invalid_argument if the tables are invalid.
void check(const VectorSumTables& tables);

struct VectorSumScratch {
  std::vector<double> tile;  // kernel values of some rows with some vectors
  std::vector<double> sums;  // rows x opposing classes
  // The kernel values of overlaps or squared distances 0, 1, ..., reused for all rows.
  std::vector<double> kernel_values_by_overlap;
};

class VectorSum {
 public:
  // The stride between the rows of a tile; entries after its vectors are 0.
  static constexpr std::size_t tile_stride = max_block_width + 4;

  // `binary` means that all values of all vectors are 1.
  VectorSum(const VectorSumTables& tables, bool binary);

  const VectorSumTables& tables() const { return tables_; }
  std::size_t bytes() const { return tables_.bytes() + 4 * sizes_.size(); }
  bool uses_distances() const { return tables_.kernel.type == KernelFunction::Type::rbf; }

  // Computes the scores of some rows. fill(first, count, tile) writes the kernel values of these rows with
  // the vectors [first, first + count).
  template <class Fill>
  void sum(std::size_t rows, const Fill& fill, VectorSumScratch& scratch, double* out) const {
    for (std::size_t row = 0; row < rows; ++row)
      std::copy(tables_.intercept.begin(), tables_.intercept.end(), out + row * tables_.scores());
    scratch.tile.resize(rows * tile_stride);
    for (std::size_t first = 0; first < tables_.vectors(); first += max_block_width) {
      const std::size_t count = std::min(max_block_width, tables_.vectors() - first);
      for (std::size_t row = 0; row < rows; ++row)
        std::fill_n(scratch.tile.begin() + static_cast<std::ptrdiff_t>(row * tile_stride + count), 4, 0.0);
      fill(first, count, scratch.tile.data());
      add(first, count, rows, scratch, out);
    }
  }

  template <class Count>
  void sum_overlaps(const Count* overlaps, std::size_t row_size, VectorSumScratch& scratch,
                    double* out) const;
  // Computes the scores of one row; `products` holds its products with all vectors.
  void sum_products(const double* products, double row_norm, VectorSumScratch& scratch, double* out) const;
  // Writes the arguments of the kernel for some vectors: their products with the row or, for RBF, distances
  // computed from the products. If `products` is null, all products are 0.
  void fill_arguments(const double* products, double row_norm, std::size_t first, std::size_t count,
                      double* out) const;

 private:
  void extend_table(std::vector<double>& kernel_values_by_overlap, std::size_t row_size) const;
  void add(std::size_t first, std::size_t count, std::size_t rows, VectorSumScratch& scratch,
           double* out) const;
  void add_vectors_of_class(std::size_t class_index, std::size_t first, std::size_t count, std::size_t rows,
                            const double* values, VectorSumScratch& scratch, double* out) const;

  VectorSumTables tables_;
  std::vector<std::uint32_t> sizes_;  // of binary vectors, for RBF
  std::size_t largest_size_ = 0;
};

}  // namespace unkernel::engines
