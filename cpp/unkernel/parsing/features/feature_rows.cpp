#include "unkernel/parsing/features/feature_rows.hpp"

#include "unkernel/parsing/features/feature_index.hpp"

namespace unkernel::parsing {

std::vector<std::int32_t> frequent_columns(const FeatureRows& rows, std::size_t columns,
                                           std::int64_t min_count) {
  std::vector<std::int64_t> counts(columns, 0);
  for (const std::int32_t column : rows.columns) ++counts[static_cast<std::size_t>(column)];
  std::vector<std::int32_t> renumbered(columns, no_column);
  std::int32_t next = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    if (counts[c] > 0 && counts[c] >= min_count) renumbered[c] = next++;
  }
  return renumbered;
}

void renumber(FeatureRows& rows, std::span<const std::int32_t> renumbered) {
  std::size_t kept = 0, from = 0;
  for (std::size_t row = 1; row < rows.offsets.size(); ++row) {
    for (; from < static_cast<std::size_t>(rows.offsets[row]); ++from) {
      const std::int32_t column = renumbered[static_cast<std::size_t>(rows.columns[from])];
      if (column != no_column) rows.columns[kept++] = column;
    }
    rows.offsets[row] = static_cast<std::int64_t>(kept);
  }
  rows.columns.resize(kept);
}

}  // namespace unkernel::parsing
