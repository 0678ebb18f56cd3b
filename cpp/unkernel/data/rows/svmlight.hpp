// The svmlight text format: `label [qid:n] [index:value ...] [# comment]`, a row a line.
// docs/formats/svmlight.md says what is accepted and what is refused.
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

// What a file holds. Offsets and columns are 32-bit numbers where all of them fit.
struct SvmlightArrays {
  GrowingArray<double> labels;
  GrowingArray<std::int64_t> queries;  // empty, or one a row
  std::variant<CsrArrays<std::int32_t>, CsrArrays<std::int64_t>> rows;
  GrowingArray<double> values;
};

struct SvmlightCounts {
  std::int64_t lines = 0;
  std::int64_t rows = 0;
  std::int64_t comments = 0;
  std::int64_t ignored_fields = 0;
  bool has_zero_index = false;
  std::int64_t largest_index = -1;  // -1 in a file without any entry
  std::int64_t largest_index_line = 0;
};

// How the work is shared out; what comes out does not depend on it.
struct ThreadPlan {
  int threads;
  std::size_t piece_bytes;  // about what a thread reads before its result is put with the rest
};

// Reads a file that comes in blocks, cut anywhere. The result depends neither on the cuts
// nor on the number of threads, and the first bad line is the one that is reported.
class SvmlightParser {
 public:
  SvmlightParser(std::string file, ThreadPlan plan, IndexRange allowed);

  // Throws FormatError; the parser is of no use afterwards.
  void feed(std::string_view block);
  // Reads what is left when the last line has no newline.
  void finish();
  const SvmlightCounts& counts() const { return counts_; }
  // Hands over what was read; column numbers are the file's indices less `first_index`.
  SvmlightArrays take(std::int64_t first_index);
  // Hands over the rows read since the last time, with the file's own indices, and can go on reading:
  // lines and counts go on from where they are.
  SvmlightArrays take_part();

 private:
  void parse(std::string_view lines);
  void parse_wave(std::span<const std::string_view> texts);
  void check(const SvmlightPiece& piece) const;
  void account(const SvmlightPiece& piece);
  void append(std::span<const SvmlightPiece> pieces);
  SvmlightArrays hand_over(std::int64_t first_index);

  std::string file_;
  ThreadPlan plan_;
  IndexRange allowed_;
  bool started_ = false;
  bool finished_ = false;
  std::string unfinished_line_;
  std::vector<SvmlightPiece> pieces_;  // one a thread; their memory is used again and again
  SvmlightCounts counts_;
  bool has_queries_ = false;
  GrowingArray<double> labels_;
  GrowingArray<std::int64_t> queries_;
  GrowingArray<std::int64_t> offsets_;
  GrowingArray<double> values_;
  std::variant<GrowingArray<std::int32_t>, GrowingArray<std::int64_t>> indices_;
};

// Rows to write: labels, query numbers (empty, or one a row), and the matrix.
template <class Index>
struct SvmlightRows {
  std::span<const double> labels;
  std::span<const std::int64_t> queries;
  CsrView<Index, double> matrix;
  std::int64_t first_index;  // what the file calls column 0
};

// The text of rows [begin, end). Every number is the shortest that reads back as itself;
// entries that are zero are left out.
template <class Index>
GrowingArray<char> format_svmlight(const SvmlightRows<Index>& rows, std::int64_t begin, std::int64_t end);

}  // namespace unkernel::data
