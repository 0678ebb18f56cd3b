// The inner loops over one packed row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "unkernel/base/gather.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace unkernel::data {

template <class Column, class Value>
struct PackedRow {
  const Column* columns;
  const Value* values;
  std::size_t size;

  double value(std::size_t k) const {
    if constexpr (std::is_same_v<Value, Ones>) {
      return 1.0;
    } else {
      return static_cast<double>(values[k]);
    }
  }
};

template <class Column, class Value>
[[gnu::always_inline]] inline PackedRow<Column, Value> row_of(const RowBlock& block, const Column* columns,
                                                              const Value* values, std::int64_t i) {
  const std::int64_t begin = block.offsets[static_cast<std::size_t>(i)];
  const auto size = static_cast<std::size_t>(block.offsets[static_cast<std::size_t>(i) + 1] - begin);
  if constexpr (std::is_same_v<Value, Ones>) {
    return {columns + begin, values, size};
  } else {
    return {columns + begin, values + begin, size};
  }
}

template <class Row>
[[gnu::always_inline]] inline double dot(const Row& row, const double* weights) {
  return sum_of_terms(row.size, [&](std::size_t k) { return weights[row.columns[k]] * row.value(k); });
}

template <class Row>
[[gnu::always_inline]] inline void add(const Row& row, double step, double* weights) {
  for (std::size_t k = 0; k < row.size; ++k) weights[row.columns[k]] += step * row.value(k);
}

template <class Row>
[[gnu::always_inline]] inline double squared_norm(const Row& row) {
  return sum_of_terms(row.size, [&](std::size_t k) { return row.value(k) * row.value(k); });
}

}  // namespace unkernel::data
