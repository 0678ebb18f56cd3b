// Rows of binary features, and the removal of rare features.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::parsing {

// Columns ascend in each row; row r has those from offsets[r] to offsets[r + 1].
struct FeatureRows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;

  void end_row() { offsets.push_back(static_cast<std::int64_t>(columns.size())); }
};

// Returns new numbers for the columns that occur at least `min_count` times, in the same order; no_column for
// others.
std::vector<std::int32_t> frequent_columns(const FeatureRows& rows, std::size_t columns,
                                           std::int64_t min_count);

// Changes column c to renumbered[c]; removes columns that get no_column. The order must stay the same.
void renumber(FeatureRows& rows, std::span<const std::int32_t> renumbered);

}  // namespace unkernel::parsing
