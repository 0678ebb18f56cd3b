#include "unkernel/poly/kernel_rows.hpp"

#include "unkernel/base/block_products.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/kernels/conjunction_index.hpp"

namespace unkernel::poly {

double KernelRows::squared_norm(std::int64_t i) const {
  double p1 = 0.0, p2 = 0.0, p3 = 0.0;
  for (std::size_t k = begin(i); k < end(i); ++k) {
    const double u = examples_.binary() ? 1.0 : examples_.values[k] * examples_.values[k];
    p1 += u;
    p2 += u * u;
    p3 += u * u * u;
  }
  return map_.kernel(p1, p2, p3);
}

// Returns the kernel matrix. Dense rows are multiplied in blocks: multiplying by their few zeros takes less
// time than reading indices.
std::vector<double> KernelRows::gram(std::span<const std::int32_t> subset, int threads) const {
  constexpr double min_density = 0.125;
  double nonzeros = 0.0;
  for (const std::int32_t i : subset) nonzeros += static_cast<double>(end(i) - begin(i));
  const double cells = static_cast<double>(subset.size()) * static_cast<double>(examples_.used_features());
  const bool is_dense = map_.kind == kernels::FeatureMap::Kind::kernel && nonzeros >= min_density * cells;
  return is_dense ? gram_by_blocks(subset, threads) : gram_by_rows(subset, threads);
}

std::vector<double> KernelRows::gram_by_blocks(std::span<const std::int32_t> subset, int threads) const {
  const std::size_t count = subset.size();
  std::vector<double> matrix(count * count, 0.0);
  std::vector<std::size_t> cursors;
  for (const std::int32_t i : subset) cursors.push_back(begin(i));
  const auto fill = [&](Panel& panel, std::size_t first, std::size_t last) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t row_end = end(subset[i]);
      for (std::size_t& k = cursors[i]; k < row_end; ++k) {
        const auto feature = static_cast<std::size_t>(examples_.features[k]);
        if (feature >= last) break;
        panel.at(i, feature - first) = examples_.binary() ? 1.0 : examples_.values[k];
      }
    }
  };
  add_products(count, static_cast<std::size_t>(examples_.used_features()), fill, 1.0, threads,
               {matrix.data(), count});
  for (std::size_t i = 0; i < count; ++i) {
    double* row = matrix.data() + i * count;
    for (std::size_t j = 0; j <= i; ++j) {
      const double base = map_.gamma * row[j] + map_.coef0;
      double value = base;
      if (map_.degree >= 2) value *= base;
      if (map_.degree >= 3) value *= base;
      row[j] = value;
    }
    for (std::size_t j = 0; j < i; ++j) matrix[j * count + i] = row[j];
  }
  return matrix;
}

// Returns the kernel matrix, row by row: expands each row into a dense vector once, and multiplies this
// vector by all earlier rows.
std::vector<double> KernelRows::gram_by_rows(std::span<const std::int32_t> subset, int threads) const {
  const std::size_t count = subset.size();
  std::vector<double> matrix(count * count);
  constexpr std::int64_t grain = 32;
  parallel_ranges(threads, static_cast<std::int64_t>(count), grain,
                  [&](std::int64_t first, std::int64_t last) {
                    std::vector<double> dense_row(static_cast<std::size_t>(examples_.used_features()), 0.0);
                    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
                      fill_dense_row(subset[i], dense_row, true);
                      for (std::size_t j = 0; j <= i; ++j) {
                        matrix[i * count + j] = matrix[j * count + i] = kernel(dense_row, subset[j]);
                      }
                      fill_dense_row(subset[i], dense_row, false);
                    }
                  });
  return matrix;
}

void KernelRows::fill_dense_row(std::int64_t i, std::vector<double>& dense_row, bool set_values) const {
  for (std::size_t k = begin(i); k < end(i); ++k) {
    const double value = examples_.binary() ? 1.0 : examples_.values[k];
    dense_row[static_cast<std::size_t>(examples_.features[k])] = set_values ? value : 0.0;
  }
}

double KernelRows::kernel(const std::vector<double>& dense_row, std::int64_t j) const {
  if (map_.kind == kernels::FeatureMap::Kind::kernel) {
    const std::size_t count = end(j) - begin(j);
    const double p1 = examples_.binary() ? gather<true>(dense_row.data(), features(j), nullptr, count)
                                         : gather<false>(dense_row.data(), features(j), values(j), count);
    return map_.kernel(p1, 0.0, 0.0);
  }
  double p1 = 0.0, p2 = 0.0, p3 = 0.0;
  for (std::size_t k = begin(j); k < end(j); ++k) {
    const double value = examples_.binary() ? 1.0 : examples_.values[k];
    const double u = dense_row[static_cast<std::size_t>(examples_.features[k])] * value;
    p1 += u;
    p2 += u * u;
    p3 += u * u * u;
  }
  return map_.kernel(p1, p2, p3);
}

std::int64_t mapped_size(int degree, bool binary, std::int64_t size) {
  const kernels::ConjunctionIndex index(degree, kernels::basis_of(binary));
  return static_cast<std::int64_t>(index.count(static_cast<std::uint64_t>(size)));
}

double mean_mapped_size(const DistinctRows& examples, int degree) {
  double total = 0.0;
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    total += static_cast<double>(mapped_size(degree, examples.binary(), examples.row_size(i)));
  }
  return examples.rows() > 0 ? total / static_cast<double>(examples.rows()) : 0.0;
}

}  // namespace unkernel::poly
