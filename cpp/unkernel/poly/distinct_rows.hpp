// Merges equal training rows; the result is the training set of all solvers in `poly`.
//
// Rows with equal features become one row, with the sum of their weights for each class. Rows of weight zero
// are dropped. Losses are multiplied by weights, so the smaller problem has the same solution: repeating a
// row and weighting it give the same computation. Rows are ordered by a hash of their content, so the order
// of the input does not matter. Features are numbered by descending frequency among the distinct rows;
// equally frequent features are numbered in the order of their columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/data/csr.hpp"

namespace unkernel::poly {

// Rows per task in parallel passes over all rows.
inline constexpr std::int64_t row_grain = 4096;

struct Label {
  std::int32_t code;  // index of the class, or of the target in ascending order
  double weight;
};

struct DistinctRows {
  LargeVector<std::int64_t> offsets;        // rows + 1
  LargeVector<std::int32_t> features;       // ranks, ascending in each row
  LargeVector<double> values;               // empty when every value is 1
  std::vector<std::int64_t> label_offsets;  // rows + 1
  std::vector<Label> labels;
  std::vector<std::uint64_t> hashes;  // of features and values, ascending; identify rows in warm starts
  std::vector<std::int64_t> columns;  // rank -> column of the input
  std::vector<std::int32_t> places;   // row of the input -> distinct row, -1 if it has no weight

  std::int64_t rows() const { return static_cast<std::int64_t>(hashes.size()); }
  std::int64_t used_features() const { return static_cast<std::int64_t>(columns.size()); }
  std::span<const Label> labels_of(std::int64_t i) const {
    const auto k = static_cast<std::size_t>(i);
    return std::span(labels).subspan(static_cast<std::size_t>(label_offsets[k]),
                                     static_cast<std::size_t>(label_offsets[k + 1] - label_offsets[k]));
  }
  double weight(std::int64_t i) const {
    double sum = 0.0;
    for (const Label& label : labels_of(i)) sum += label.weight;
    return sum;
  }
  bool binary() const { return values.empty(); }
  std::int64_t row_size(std::int64_t i) const {
    const auto k = static_cast<std::size_t>(i);
    return offsets[k + 1] - offsets[k];
  }
};

// Selects which rows to merge: all equal rows (`rows`), or only equal rows of the same class (`examples`).
// Regression needs `examples`, because each of its losses has a single target.
enum class Merge { rows, examples };

// Merges equal rows. An empty `weights` stands for weights of 1. In each row of the input, columns must be
// sorted and unique, and values finite.
template <class Index>
DistinctRows distinct_examples(const data::CsrView<Index, double>& input,
                               std::span<const std::int32_t> classes, std::span<const double> weights,
                               Merge merge, int threads);

// Returns the rows with features numbered by `columns`, which must contain all columns of the rows, without
// duplicates. If `binary`, the result has no values; otherwise, rows without values get values of 1. All
// parts of a training set can number their features in the same way with this function.
DistinctRows renumbered(const DistinctRows& rows, std::span<const std::int64_t> columns, bool binary);

// Selected rows in the form of the input: the columns of each row ascend.
struct ChosenRows {
  std::vector<std::int64_t> offsets, columns;
  std::vector<double> values;
};

ChosenRows choose_rows(const DistinctRows& rows, std::span<const std::int64_t> rows_to_choose);

// Returns the weighted variance of all entries of the matrix, including zeros. scikit-learn's gamma="scale"
// is 1 / (columns * variance).
double weighted_variance(const DistinctRows& examples, std::int64_t columns);

}  // namespace unkernel::poly
