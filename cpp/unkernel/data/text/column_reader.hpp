// The parser of ColumnText: finds sentences, tokens and fields in a text of columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "unkernel/base/error.hpp"
#include "unkernel/data/text/column_text.hpp"

namespace unkernel::data {

class ColumnReader {
 public:
  // Reads the lines of `part`, which is the whole text or some of its sentences.
  ColumnReader(std::string_view text, const std::string& file, const ColumnOptions& options,
               const LinePlace& part, ColumnIndex& index);

  // Throws FormatError at the first bad line, unless bad sentences are to be skipped.
  void read();

 private:
  bool next_line();
  bool line_is_blank() const;
  void skip_blank_lines();
  void begin_sentence();
  bool read_sentence();
  bool read_line();
  bool read_word();
  bool read_head(std::string_view text);
  bool add_token(const char* at);
  bool split_at_tabs();
  bool split_at_blanks();
  bool is_multiword_or_empty_node(std::string_view id) const;
  bool end_sentence();
  bool check_heads();
  void discard_sentence(bool to_its_end);
  bool fail(const char* at, std::string reason);
  bool fail_columns(std::int64_t found, const char* at);
  bool fail_number(std::string_view id);
  std::string_view line() const { return {line_begin_, static_cast<std::size_t>(line_end_ - line_begin_)}; }

  std::string_view text_;
  const char* begin_;  // of the text
  const char* end_;    // of the part
  const std::string& file_;
  const ColumnOptions& options_;
  ColumnIndex& index_;

  const char* next_;  // where the next line begins
  std::int64_t next_number_;
  const char* line_begin_;
  const char* line_end_;  // without the line terminator

  LinePlace place_{};  // of the sentence
  std::int32_t words_ = 0;
  std::int32_t largest_head_ = 0;
  bool has_other_lines_ = false;  // multiword tokens or empty nodes
  bool columns_set_here_ = false;

  const char* fault_at_ = nullptr;
  std::string fault_reason_;
};

// Returns an error with line and column for `at`, a byte in the lines of `place`.
FormatError fault_in_lines(std::string_view text, const std::string& file, const LinePlace& place,
                           const char* at, std::string reason);

}  // namespace unkernel::data
