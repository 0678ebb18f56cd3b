// Parses whole lines of an svmlight file, in one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "unkernel/data/growing_array.hpp"

namespace unkernel::data {

// The range of indices that a file may use, including both ends.
struct IndexRange {
  std::int64_t smallest;
  std::int64_t largest;
};

struct LineError {
  std::int64_t line;  // in the piece, from 1
  std::int64_t column;
  std::string reason;
};

struct SvmlightPiece {
  GrowingArray<double> labels;
  GrowingArray<std::int64_t> queries;   // one per row; unset unless has_queries
  GrowingArray<std::int64_t> row_ends;  // in entries of this piece
  GrowingArray<std::int64_t> indices;   // as in the file, ascending in each row
  GrowingArray<double> values;          // never zero
  bool has_queries;
  std::int64_t lines;
  std::int64_t first_row_line;
  std::int64_t comments;
  std::int64_t ignored_fields;
  bool has_zero_index;
  std::int64_t largest_index;  // -1 if there are no entries
  std::int64_t largest_index_line;
  std::optional<LineError> error;  // the first error; later lines are not read
};

// Parses `text`, which must end in a newline, and replaces the contents of `piece`.
void parse_piece(std::string_view text, IndexRange allowed, SvmlightPiece& piece);

}  // namespace unkernel::data
