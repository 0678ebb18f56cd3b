// The svmlight text format, one row per line: `label [qid:n] [index:value ...] [# comment]`.
// docs/formats/svmlight.md specifies what the reader accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "unkernel/data/csr.hpp"
#include "unkernel/data/growing_array.hpp"
#include "unkernel/data/rows/svmlight_piece.hpp"

namespace unkernel::data {

template <class Index>
struct CsrArrays {
  GrowingArray<Index> offsets;
  GrowingArray<Index> columns;
};

// The contents of a file. Offsets and columns have 32 bits if all of them fit.
struct SvmlightArrays {
  GrowingArray<double> labels;
  GrowingArray<std::int64_t> queries;  // empty, or one per row
  std::variant<CsrArrays<std::int32_t>, CsrArrays<std::int64_t>> rows;
  GrowingArray<double> values;
};

struct SvmlightCounts {
  std::int64_t lines = 0;
  std::int64_t rows = 0;
  std::int64_t comments = 0;
  std::int64_t ignored_fields = 0;
  bool has_zero_index = false;
  std::int64_t largest_index = -1;  // -1 if the file has no entries
  std::int64_t largest_index_line = 0;
};

// How to divide the work among threads. The result does not depend on the plan.
struct ThreadPlan {
  int threads;
  std::size_t piece_bytes;  // the approximate size of a piece, which one thread reads
};

// Reads a file in blocks of any size. The result depends neither on the blocks nor on the number of threads.
// An error is always that of the first bad line.
class SvmlightParser {
 public:
  SvmlightParser(std::string file, ThreadPlan plan, IndexRange allowed);

  // Reads a block. Throws FormatError, after which the parser cannot be used.
  void feed(std::string_view block);
  // Ends the file, and reads its last line if that does not end in a newline.
  void finish();
  const SvmlightCounts& counts() const { return counts_; }
  // Returns all rows. The column of an entry is its index in the file, minus `first_index`.
  SvmlightArrays take(std::int64_t first_index);
  // Returns the rows read since the last call. Columns are the indices in the file. Reading can go on, with
  // the same line numbers and counts.
  SvmlightArrays take_part();

 private:
  void parse(std::string_view lines);
  void parse_wave(std::span<const std::string_view> texts);
  void check(const SvmlightPiece& piece) const;
  void add_counts(const SvmlightPiece& piece);
  void append(std::span<const SvmlightPiece> pieces);
  SvmlightArrays take_arrays(std::int64_t first_index);

  std::string file_;
  ThreadPlan plan_;
  IndexRange allowed_;
  bool has_started_ = false;
  bool has_finished_ = false;
  std::string unfinished_line_;
  std::vector<SvmlightPiece> pieces_;  // one per thread, reused
  SvmlightCounts counts_;
  bool has_queries_ = false;
  GrowingArray<double> labels_;
  GrowingArray<std::int64_t> queries_;
  GrowingArray<std::int64_t> offsets_;
  GrowingArray<double> values_;
  std::variant<GrowingArray<std::int32_t>, GrowingArray<std::int64_t>> indices_;
};

// Rows to write: labels, query numbers (empty, or one per row), and the matrix.
template <class Index>
struct SvmlightRows {
  std::span<const double> labels;
  std::span<const std::int64_t> queries;
  CsrView<Index, double> matrix;
  std::int64_t first_index;  // the index of column 0 in the file
};

// Returns the text of rows [begin, end). Writes as few digits as identify each number, and leaves out entries
// of zero.
template <class Index>
GrowingArray<char> format_svmlight(const SvmlightRows<Index>& rows, std::int64_t begin, std::int64_t end);

}  // namespace unkernel::data
