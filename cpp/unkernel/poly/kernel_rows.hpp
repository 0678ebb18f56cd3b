// What on-the-fly and condensed rows have in common: the bare rows x and the kernel between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/gather.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"

namespace unkernel::poly {

// c^2 by what a monomial looks like. Over sets (binary data) no rank repeats and only the first
// four are used.
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
    static_cast<void>(unused);  // degree 4 is not trained
    switch (conjunction.size) {
      case 0: return constant;
      case 1: return single;
      case 2: return a == b ? square : pair;
      default: return a == b && b == c ? cube : a == b || b == c ? square_times_other : triple;
    }
  }

  double constant, single, pair, triple, square, square_times_other, cube;
};

class KernelRows {
 public:
  KernelRows(const DistinctRows& examples, const kernels::FeatureMap& map)
      : examples_(examples), map_(map), constants_(map, examples.binary()) {}

  std::int64_t size() const { return examples_.rows(); }

  double squared_norm(std::int64_t i) const {
    double p1 = 0.0, p2 = 0.0, p3 = 0.0;
    for (std::size_t k = begin(i); k < end(i); ++k) {
      const double u = examples_.binary() ? 1.0 : examples_.values[k] * examples_.values[k];
      p1 += u;
      p2 += u * u;
      p3 += u * u * u;
    }
    return map_.kernel(p1, p2, p3);
  }

  // Each row is spread out once, then met by all rows before it.
  std::vector<double> gram(std::span<const std::int32_t> subset, int threads) const {
    const std::size_t count = subset.size();
    std::vector<double> matrix(count * count);
    constexpr std::int64_t grain = 32;
    parallel_ranges(
        threads, static_cast<std::int64_t>(count), grain, [&](std::int64_t first, std::int64_t last) {
          std::vector<double> spread(static_cast<std::size_t>(examples_.used_features()), 0.0);
          for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
            fill_spread(subset[i], spread, true);
            for (std::size_t j = 0; j <= i; ++j) {
              matrix[i * count + j] = matrix[j * count + i] = kernel(spread, subset[j]);
            }
            fill_spread(subset[i], spread, false);
          }
        });
    return matrix;
  }

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
  void fill_spread(std::int64_t i, std::vector<double>& spread, bool on) const {
    for (std::size_t k = begin(i); k < end(i); ++k) {
      const double value = examples_.binary() ? 1.0 : examples_.values[k];
      spread[static_cast<std::size_t>(examples_.features[k])] = on ? value : 0.0;
    }
  }

  double kernel(const std::vector<double>& spread, std::int64_t j) const {
    if (map_.kind == kernels::FeatureMap::Kind::kernel) {
      const std::size_t count = end(j) - begin(j);
      const double p1 = examples_.binary() ? gather<true>(spread.data(), features(j), nullptr, count)
                                           : gather<false>(spread.data(), features(j), values(j), count);
      return map_.kernel(p1, 0.0, 0.0);
    }
    double p1 = 0.0, p2 = 0.0, p3 = 0.0;
    for (std::size_t k = begin(j); k < end(j); ++k) {
      const double value = examples_.binary() ? 1.0 : examples_.values[k];
      const double u = spread[static_cast<std::size_t>(examples_.features[k])] * value;
      p1 += u;
      p2 += u * u;
      p3 += u * u * u;
    }
    return map_.kernel(p1, p2, p3);
  }
};

// Non-zeros of phi(x) for a row of `size` features: eq. (10), exactly, for any degree and basis.
inline std::int64_t mapped_size(int degree, bool binary, std::int64_t size) {
  const kernels::ConjunctionIndex index(degree, binary ? kernels::Basis::sets : kernels::Basis::monomials);
  return static_cast<std::int64_t>(index.count(static_cast<std::uint64_t>(size)));
}

inline double mean_mapped_size(const DistinctRows& examples, int degree) {
  double total = 0.0;
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    total += static_cast<double>(mapped_size(degree, examples.binary(), examples.row_size(i)));
  }
  return examples.rows() > 0 ? total / static_cast<double>(examples.rows()) : 0.0;
}

}  // namespace unkernel::poly
