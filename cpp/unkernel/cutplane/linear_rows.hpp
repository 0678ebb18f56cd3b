// Packed rows as a row view for the dual solver (solve/row_view.hpp). The layout is dispatched at every row,
// which costs a well-predicted branch, but avoids compiling the solver once for each of six layouts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unkernel/data/rows/row_loops.hpp"
#include "unkernel/data/rows/row_store.hpp"
#include "unkernel/solve/row_view.hpp"

namespace unkernel::cutplane {

class LinearRows {
 private:
  template <class F>
  [[gnu::always_inline]] decltype(auto) with_row(std::int64_t i, const F& f) const {
    return data::with_types(block_, [&](const auto* columns, const auto* values) {
      return f(data::row_of(block_, columns, values, i));
    });
  }

 public:
  LinearRows(const data::PackedRows& rows, double intercept)
      : block_(rows.whole()),
        entry_bytes_(data::entry_bytes(block_.layout)),
        features_(rows.features()),
        intercept_(intercept) {}

  std::int64_t size() const { return block_.rows(); }
  std::size_t dimension() const { return features_ + (intercept_ != 0.0 ? 1 : 0); }

  double dot(std::int64_t i, const double* weights) const {
    const double constant = intercept_ != 0.0 ? intercept_ * weights[features_] : 0.0;
    return constant + with_row(i, [&](const auto& row) { return data::dot(row, weights); });
  }
  void axpy(std::int64_t i, double step, double* weights) const {
    if (intercept_ != 0.0) weights[features_] += step * intercept_;
    with_row(i, [&](const auto& row) { data::add(row, step, weights); });
  }
  double squared_norm(std::int64_t i) const {
    return intercept_ * intercept_ + with_row(i, [](const auto& row) { return data::squared_norm(row); });
  }
  void prefetch_header(std::int64_t i) const {
    __builtin_prefetch(&block_.offsets[static_cast<std::size_t>(i)]);
  }
  void prefetch(std::int64_t i) const {
    const auto begin = static_cast<std::size_t>(block_.offsets[static_cast<std::size_t>(i)]);
    const std::size_t column = block_.layout.columns == data::ColumnKind::narrow ? 2 : 4;
    __builtin_prefetch(static_cast<const char*>(block_.columns) + column * begin);
    if (block_.values != nullptr)
      __builtin_prefetch(static_cast<const char*>(block_.values) + (entry_bytes_ - column) * begin);
  }

 private:
  data::RowBlock block_;
  std::size_t entry_bytes_;
  std::size_t features_;
  double intercept_;
};

static_assert(solve::TrainingRows<LinearRows>);

}  // namespace unkernel::cutplane
