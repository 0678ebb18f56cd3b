// Makes rows for each of the six layouts, and computes their products by plain loops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "random_rows.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace packed_example {

using unkernel::Random;
using unkernel::data::ColumnKind;
using unkernel::data::Layout;
using unkernel::data::ValueKind;

inline constexpr std::array<Layout, 6> layouts = {{{ColumnKind::narrow, ValueKind::ones},
                                                   {ColumnKind::narrow, ValueKind::single},
                                                   {ColumnKind::narrow, ValueKind::full},
                                                   {ColumnKind::wide, ValueKind::ones},
                                                   {ColumnKind::wide, ValueKind::single},
                                                   {ColumnKind::wide, ValueKind::full}}};

inline constexpr std::int64_t max_narrow_features = 65'536;

inline double value_for(ValueKind kind, Random& random) {
  if (kind == ValueKind::ones) return 1.0;
  const double eighth = (static_cast<double>(random.below(31)) - 15.0) / 8.0;
  return kind == ValueKind::single ? eighth : eighth / 3.0;
}

struct Shape {
  std::int64_t rows;
  std::int64_t features;
  std::uint32_t max_row_size;
};

// Makes random rows. The first row has the last column, and some rows are empty.
inline Rows<std::int32_t> rows_for(const Layout& layout, const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Rows<std::int32_t> rows;
  rows.features = shape.features;
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    std::set<std::int32_t> columns;
    for (auto left = random.below(shape.max_row_size + 1); left > 0; --left) {
      columns.insert(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(shape.features))));
    }
    if (i == 0) columns.insert(static_cast<std::int32_t>(shape.features - 1));
    const std::vector<std::int32_t> row(columns.begin(), columns.end());
    std::vector<double> values;
    for (std::size_t k = 0; k < row.size(); ++k) values.push_back(value_for(layout.values, random));
    rows.add(row, values);
  }
  return rows;
}

// Returns X w; the weight of the constant feature is the last one.
inline std::vector<double> plain_scores(const Rows<std::int32_t>& rows, double intercept,
                                        std::span<const double> weights) {
  std::vector<double> scores;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows.size()); ++i) {
    double sum = intercept != 0.0 ? intercept * weights.back() : 0.0;
    for (std::size_t k = rows.begin(i); k < rows.end(i); ++k)
      sum += rows.values[k] * weights[static_cast<std::size_t>(rows.columns[k])];
    scores.push_back(sum);
  }
  return scores;
}

// Returns X'c.
inline std::vector<double> plain_transposed(const Rows<std::int32_t>& rows, double intercept,
                                            std::span<const double> c) {
  std::vector<double> sums(static_cast<std::size_t>(rows.features) + (intercept != 0.0 ? 1 : 0), 0.0);
  for (std::size_t i = 0; i < c.size(); ++i) {
    for (std::size_t k = rows.begin(i); k < rows.end(i); ++k)
      sums[static_cast<std::size_t>(rows.columns[k])] += rows.values[k] * c[i];
    if (intercept != 0.0) sums.back() += intercept * c[i];
  }
  return sums;
}

}  // namespace packed_example
