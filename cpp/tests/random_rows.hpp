// Sparse rows that tests build by hand or at random.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/base/random.hpp"
#include "unkernel/data/csr.hpp"

template <class Index>
struct Rows {
  std::vector<Index> offsets{0};
  std::vector<Index> columns;
  std::vector<double> values;
  std::int64_t features = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  unkernel::data::CsrView<Index, double> view() const { return {offsets, columns, values, features}; }
  std::size_t begin(std::size_t row) const { return static_cast<std::size_t>(offsets[row]); }
  std::size_t end(std::size_t row) const { return static_cast<std::size_t>(offsets[row + 1]); }

  void add(std::span<const Index> row_columns, std::span<const double> row_values) {
    columns.insert(columns.end(), row_columns.begin(), row_columns.end());
    values.insert(values.end(), row_values.begin(), row_values.end());
    offsets.push_back(static_cast<Index>(columns.size()));
  }
};

struct RowKind {
  std::int64_t features;
  std::uint32_t longest;
  bool binary;
};

inline double uniform(unkernel::Random& random) { return random.below(2001) / 1000.0 - 1.0; }

// Makes a random row. Small columns are more frequent than large columns. Values that are not 1 are multiples
// of 1/8, so that sums are exact.
template <class Index>
std::pair<std::vector<Index>, std::vector<double>> random_row(const RowKind& kind, unkernel::Random& random) {
  std::set<Index> distinct_columns;
  for (auto remaining = random.below(kind.longest + 1); remaining > 0; --remaining) {
    const auto bound = static_cast<std::uint32_t>(kind.features);
    distinct_columns.insert(static_cast<Index>(std::min(random.below(bound), random.below(bound))));
  }
  std::vector<double> values;
  for (std::size_t k = 0; k < distinct_columns.size(); ++k) {
    values.push_back(kind.binary ? 1.0 : (static_cast<double>(random.below(16)) - 7.5) / 4.0);
  }
  return {{distinct_columns.begin(), distinct_columns.end()}, values};
}
