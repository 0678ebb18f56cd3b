// Random sparse rows to train on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "unkernel/base/random.hpp"
#include "unkernel/data/csr.hpp"
#include "unkernel/poly/examples.hpp"

template <class Index>
struct RandomRows {
  std::vector<Index> offsets{0};
  std::vector<Index> columns;
  std::vector<double> values;
  std::vector<std::int32_t> classes;
  std::vector<double> weights;
  std::int64_t features;

  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  unkernel::data::CsrView<Index, double> view() const { return {offsets, columns, values, features}; }
  unkernel::poly::Examples examples(int threads = 1) const {
    return unkernel::poly::distinct_examples(view(), std::span(classes), std::span(weights), threads);
  }

  void add(std::span<const Index> row_columns, std::span<const double> row_values, std::int32_t code, double weight) {
    columns.insert(columns.end(), row_columns.begin(), row_columns.end());
    values.insert(values.end(), row_values.begin(), row_values.end());
    offsets.push_back(static_cast<Index>(columns.size()));
    classes.push_back(code);
    weights.push_back(weight);
  }
};

struct RowKind {
  std::int64_t features;
  std::uint32_t longest;
  bool binary;
};

// Small columns are more frequent than large ones. Real values are eighths, so that sums are exact.
template <class Index>
RandomRows<Index> random_rows(std::int64_t count, const RowKind& kind, std::uint64_t seed) {
  unkernel::Random random(seed);
  RandomRows<Index> rows;
  rows.features = kind.features;
  for (std::int64_t i = 0; i < count; ++i) {
    std::set<Index> chosen;
    for (auto left = random.below(kind.longest + 1); left > 0; --left) {
      const auto bound = static_cast<std::uint32_t>(kind.features);
      chosen.insert(static_cast<Index>(std::min(random.below(bound), random.below(bound))));
    }
    std::vector<double> values;
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      values.push_back(kind.binary ? 1.0 : (static_cast<double>(random.below(16)) - 7.5) / 4.0);
    }
    const std::vector<Index> columns(chosen.begin(), chosen.end());
    rows.add(columns, values, static_cast<std::int32_t>(random.below(3)), 1.0 + random.below(3));
  }
  return rows;
}
