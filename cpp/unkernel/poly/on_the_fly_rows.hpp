// Computes phi(x) from x whenever a solver reads a row. The weights of all possible conjunctions are in one
// dense table: a triangle for degree 2, a tetrahedron for degree 3.
//
// Memory   8 bytes per *possible* conjunction, nothing per non-zero.
// Cost     one load and one addition per conjunction of x; mostly cache misses of the table.
#pragma once

#include <cmath>
#include <vector>

#include "unkernel/poly/kernel_rows.hpp"
#include "unkernel/solve/normal_system.hpp"

namespace unkernel::poly {

template <int Degree, bool Binary>
class OnTheFlyRows : public KernelRows {
 public:
  OnTheFlyRows(const DistinctRows& examples, const kernels::FeatureMap& map)
      : KernelRows(examples, map),
        index_(Degree, kernels::basis_of(Binary)),
        mean_map_size_(mean_mapped_size(examples, Degree)) {
    for (std::uint64_t rank = 0; rank < static_cast<std::uint64_t>(examples.used_features()); ++rank) {
      block_.push_back(static_cast<std::int64_t>(index_.block(rank)));
      triangle_.push_back(static_cast<std::int64_t>(index_.triangle(rank)));
    }
  }

  std::size_t dimension() const {
    return index_.count(static_cast<std::uint64_t>(examples_.used_features()));
  }
  double mean_map_size() const { return mean_map_size_; }
  void prefetch(std::int64_t i) const { prefetch_features(i); }

  double dot(std::int64_t i, const double* weights) const {
    const std::int32_t* f = features(i);
    const double* x = values(i);
    const std::size_t size = end(i) - begin(i);
    double total = weights[0];
    for (std::size_t a = 0; a < size; ++a) {
      const double* block = weights + block_[rank(f[a])];
      const double sum = block[0] + dot_block(block, f, x, a);
      if constexpr (Binary) {
        total += sum;
      } else {
        total += x[a] * sum;
      }
    }
    return total;
  }

  void axpy(std::int64_t i, double step, double* weights) const {
    const std::int32_t* f = features(i);
    const double* x = values(i);
    const std::size_t size = end(i) - begin(i);
    weights[0] += step * constants_.constant;
    for (std::size_t a = 0; a < size; ++a) {
      double* block = weights + block_[rank(f[a])];
      const double scaled = Binary ? step : step * x[a];
      block[0] += scaled * constants_.single;
      add_block(block, f, x, a, scaled);
    }
  }

  // Returns phi(x_i) = c m over the columns that occur. Derives it from c^2 m, the amount that a step of 1
  // adds to a weight.
  solve::MappedRows mapped() const {
    solve::MappedRows rows;
    const auto nonzeros = static_cast<std::size_t>(std::ceil(mean_map_size_ * static_cast<double>(size())));
    rows.offsets.reserve(static_cast<std::size_t>(size()) + 1);
    rows.columns.reserve(nonzeros);
    rows.values.reserve(nonzeros);
    const std::vector<double> constants = column_constants();
    std::vector<double> step(dimension(), 0.0);
    std::vector<std::int32_t> column_number(dimension(), 0);
    for (std::int64_t i = 0; i < size(); ++i) {
      axpy(i, 1.0, step.data());
      for_each_column(i, [&](std::size_t column) {
        rows.columns.push_back(static_cast<std::int32_t>(column));
        rows.values.push_back(constants[column] > 0.0 ? step[column] / std::sqrt(constants[column]) : 0.0);
        step[column] = 0.0;
        column_number[column] = 1;
      });
      rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
    }
    for (std::int32_t& number : column_number)
      number = number != 0 ? static_cast<std::int32_t>(rows.dimension++) : 0;
    for (std::int32_t& column : rows.columns) column = column_number[static_cast<std::size_t>(column)];
    return rows;
  }

 private:
  // Visits the columns of the non-zeros of row i, ascending.
  template <class Visit>
  void for_each_column(std::int64_t i, const Visit& visit) const {
    const std::int32_t* f = features(i);
    visit(std::size_t{0});
    for (std::size_t a = 0; a < end(i) - begin(i); ++a) {
      const auto block = static_cast<std::size_t>(block_[rank(f[a])]);
      visit(block);
      if constexpr (Degree >= 2) {
        for (std::size_t b = 0; b < partners(a); ++b) visit(block + 1 + rank(f[b]));
      }
      if constexpr (Degree >= 3) {
        for (std::size_t b = 0; b < partners(a); ++b) {
          const std::size_t base = block + index_.triples(static_cast<std::uint64_t>(f[a])) +
                                   static_cast<std::size_t>(triangle_[rank(f[b])]);
          for (std::size_t c = 0; c < partners(b); ++c) visit(base + rank(f[c]));
        }
      }
    }
  }

  // Returns c^2 of every column.
  std::vector<double> column_constants() const {
    std::vector<double> constants(dimension());
    kernels::Conjunction conjunction;
    for (std::size_t column = 0; column < constants.size(); ++column) {
      conjunction = index_.decode(column, conjunction);
      constants[column] = constants_.of(conjunction);
    }
    return constants;
  }

  static std::size_t rank(std::int32_t feature) { return static_cast<std::size_t>(feature); }

  // Returns how many positions form a pair with position a: all earlier ones, and a itself if features may
  // repeat.
  static std::size_t partners(std::size_t a) { return Binary ? a : a + 1; }

  double dot_block(const double* block, const std::int32_t* f, const double* x, std::size_t a) const {
    if constexpr (Degree == 1) return 0.0;
    if constexpr (Degree == 2) return gather<Binary>(block + 1, f, x, partners(a));
    const double* triples = block + index_.triples(static_cast<std::uint64_t>(f[a]));
    double sum = 0.0;
    for (std::size_t b = 0; b < partners(a); ++b) {
      const double inner =
          block[1 + f[b]] + gather<Binary>(triples + triangle_[rank(f[b])], f, x, partners(b));
      sum += Binary ? inner : x[b] * inner;
    }
    return sum;
  }

  void add_block(double* block, const std::int32_t* f, const double* x, std::size_t a, double step) const {
    if constexpr (Degree >= 2) {
      scatter<Binary>(block + 1, f, x, a, step * constants_.pair);
      if constexpr (!Binary) block[1 + f[a]] += step * constants_.square * x[a];
    }
    if constexpr (Degree >= 3) {
      double* triples = block + index_.triples(static_cast<std::uint64_t>(f[a]));
      for (std::size_t b = 0; b < partners(a); ++b) {
        double* table = triples + triangle_[rank(f[b])];
        if constexpr (Binary) {
          scatter<Binary>(table, f, x, b, step * constants_.triple);
        } else {
          const double scaled = step * x[b];
          scatter<Binary>(table, f, x, b,
                          scaled * (a == b ? constants_.square_times_other : constants_.triple));
          table[f[b]] += scaled * (a == b ? constants_.cube : constants_.square_times_other) * x[b];
        }
      }
    }
  }

  kernels::ConjunctionIndex index_;
  double mean_map_size_;
  std::vector<std::int64_t> block_;     // by rank: the first table entry of its block
  std::vector<std::int64_t> triangle_;  // by second rank: the offset of its triples in a block
};

}  // namespace unkernel::poly
