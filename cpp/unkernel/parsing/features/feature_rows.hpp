// Stores rows of binary features, and removes rare features.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::parsing {

// Row r has the ascending columns from offsets[r] to offsets[r + 1].
struct FeatureRows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;

  void end_row() { offsets.push_back(static_cast<std::int64_t>(columns.size())); }
};

// Returns a new number for each column. Columns that occur at least `min_count` times are numbered without
// gaps, in their old order; all others get no_column.
std::vector<std::int32_t> frequent_columns(const FeatureRows& rows, std::size_t columns,
                                           std::int64_t min_count);

// Changes column c to renumbered[c], and removes columns that get no_column. The new numbers must be in the
// order of the old ones.
void renumber(FeatureRows& rows, std::span<const std::int32_t> renumbered);

}  // namespace unkernel::parsing
