#include "unkernel/engines/engine.hpp"

#include <algorithm>

namespace unkernel::engines {

template <class Index>
SparseRow<Index> RowSorter<Index>::sort(const SparseRow<Index>& row) {
  entries_.clear();
  for (std::size_t k = 0; k < row.columns.size(); ++k) {
    entries_.emplace_back(row.columns[k], row.values == nullptr ? 1.0 : row.values[k]);
  }
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  columns_.clear();
  values_.clear();
  for (const auto& [column, value] : entries_) {
    if (columns_.empty() || columns_.back() != column) {
      columns_.push_back(column);
      values_.push_back(value);
    } else {
      values_.back() += value;
    }
  }
  return {columns_, row.values == nullptr ? nullptr : values_.data()};
}

template <class Index>
RowRange<Index>::RowRange(const data::CsrView<Index, double>& matrix, std::size_t from, std::size_t to)
    : rows(matrix), first(from), last(to) {
  const auto begin = static_cast<std::size_t>(rows.offsets[first]);
  const auto end = static_cast<std::size_t>(rows.offsets[last]);
  ones = all_ones(rows.values.data() + begin, end - begin);
  std::size_t descents = 0;
  for (std::size_t k = begin + 1; k < end; ++k) descents += rows.columns[k] <= rows.columns[k - 1];
  for (std::size_t row = first + 1; row < last; ++row) {  // columns may descend where a new row begins
    const auto k = static_cast<std::size_t>(rows.offsets[row]);
    if (rows.offsets[row] != rows.offsets[row + 1] && k > begin)
      descents -= rows.columns[k] <= rows.columns[k - 1];
  }
  ascending = descents == 0;
}

template class RowSorter<std::int32_t>;
template class RowSorter<std::int64_t>;
template struct RowRange<std::int32_t>;
template struct RowRange<std::int64_t>;

}  // namespace unkernel::engines
