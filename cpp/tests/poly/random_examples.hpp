// Random sparse rows to train on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "random_rows.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/poly/distinct_rows.hpp"

template <class Index>
struct RandomRows : Rows<Index> {
  std::vector<std::int32_t> classes;
  std::vector<double> weights;

  unkernel::poly::DistinctRows examples(int threads = 1) const {
    return unkernel::poly::distinct_examples(this->view(), std::span(classes), std::span(weights),
                                             unkernel::poly::Merge::rows, threads);
  }

  void add(std::span<const Index> row_columns, std::span<const double> row_values, std::int32_t code,
           double weight) {
    Rows<Index>::add(row_columns, row_values);
    classes.push_back(code);
    weights.push_back(weight);
  }
};

template <class Index>
RandomRows<Index> random_rows(std::int64_t count, const RowKind& kind, std::uint64_t seed) {
  unkernel::Random random(seed);
  RandomRows<Index> rows;
  rows.features = kind.features;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [columns, values] = random_row<Index>(kind, random);
    const auto code = static_cast<std::int32_t>(random.below(3));
    rows.add(columns, values, code, 1.0 + random.below(3));
  }
  return rows;
}
