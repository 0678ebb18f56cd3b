// Whole lines of an svmlight file, read by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "unkernel/data/growing_array.hpp"

namespace unkernel::data {

// The indices a file may use, as it writes them; both ends are allowed.
struct IndexRange {
  std::int64_t smallest;
  std::int64_t largest;
};

struct LineError {
  std::int64_t line;  // 1 is the first line of the piece
  std::int64_t column;
  std::string reason;
};

struct SvmlightPiece {
  GrowingArray<double> labels;
  GrowingArray<std::int64_t> queries;   // one a row, meaningless unless has_queries
  GrowingArray<std::int64_t> row_ends;  // in entries of this piece
  GrowingArray<std::int64_t> indices;   // as the file writes them, ascending in each row
  GrowingArray<double> values;          // never zero
  bool has_queries;
  std::int64_t lines;
  std::int64_t first_row_line;
  std::int64_t comments;
  std::int64_t ignored_fields;
  bool has_zero_index;
  std::int64_t largest_index;  // -1: no entries
  std::int64_t largest_index_line;
  std::optional<LineError> error;  // the first; nothing after its line was read
};

// Reads `text`, which ends in a newline, into `piece`, whose old contents go.
void parse_piece(std::string_view text, IndexRange allowed, SvmlightPiece& piece);

}  // namespace unkernel::data
