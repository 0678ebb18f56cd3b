// The base of on-the-fly and condensed rows: the rows x and the kernel of two rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/gather.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"

namespace unkernel::poly {

// The squared constants c^2, by the exponents of a monomial. With binary data, no feature repeats, and only
// `constant`, `single`, `pair` and `triple` are used.
struct SquaredConstants {
  SquaredConstants(const kernels::FeatureMap& map, bool binary)
      : constant(map.monomial(0, 1)),
        single(binary ? map.set(1) : map.monomial(1, 1)),
        pair(binary ? map.set(2) : map.monomial(2, 1)),
        triple(map.monomial(3, 1)),
        square(map.monomial(2, 2)),
        square_times_other(map.monomial(3, 2)),
        cube(map.monomial(3, 6)) {}

  double of(const kernels::Conjunction& conjunction) const {
    const auto& [a, b, c, unused] = conjunction.ranks;
    static_cast<void>(unused);  // training stops at degree 3
    switch (conjunction.size) {
      case 0: return constant;
      case 1: return single;
      case 2: return a == b ? square : pair;
      default:
        if (a == b && b == c) return cube;
        return a == b || b == c ? square_times_other : triple;
    }
  }

  double constant, single, pair, triple, square, square_times_other, cube;
};

class KernelRows {
 public:
  KernelRows(const DistinctRows& examples, const kernels::FeatureMap& map)
      : examples_(examples), map_(map), constants_(map, examples.binary()) {}

  std::int64_t size() const { return examples_.rows(); }

  double squared_norm(std::int64_t i) const;
  std::vector<double> gram(std::span<const std::int32_t> subset, int threads) const;

  double mean_row_size() const {
    return size() > 0 ? static_cast<double>(examples_.features.size()) / static_cast<double>(size()) : 0.0;
  }

  void prefetch_header(std::int64_t i) const {
    __builtin_prefetch(&examples_.offsets[static_cast<std::size_t>(i)]);
  }

 protected:
  std::size_t begin(std::int64_t i) const {
    return static_cast<std::size_t>(examples_.offsets[static_cast<std::size_t>(i)]);
  }
  std::size_t end(std::int64_t i) const { return begin(i + 1); }
  const std::int32_t* features(std::int64_t i) const { return examples_.features.data() + begin(i); }
  const double* values(std::int64_t i) const {
    return examples_.binary() ? nullptr : examples_.values.data() + begin(i);
  }

  void prefetch_features(std::int64_t i) const {
    const auto* line = reinterpret_cast<const char*>(features(i));
    __builtin_prefetch(line);
    __builtin_prefetch(line + 64);
    if (!examples_.binary()) __builtin_prefetch(values(i));
  }

  const DistinctRows& examples_;
  kernels::FeatureMap map_;
  SquaredConstants constants_;

 private:
  std::vector<double> gram_by_blocks(std::span<const std::int32_t> subset, int threads) const;
  std::vector<double> gram_by_rows(std::span<const std::int32_t> subset, int threads) const;
  void fill_dense_row(std::int64_t i, std::vector<double>& dense_row, bool set_values) const;
  double kernel(const std::vector<double>& dense_row, std::int64_t j) const;
};

// Returns the number of non-zeros of phi(x) for a row of `size` features (eq. 10). Exact for any degree and
// for binary and other rows.
std::int64_t mapped_size(int degree, bool binary, std::int64_t size);

// Returns the mean number of non-zeros of phi(x) over all rows.
double mean_mapped_size(const DistinctRows& examples, int degree);

}  // namespace unkernel::poly
