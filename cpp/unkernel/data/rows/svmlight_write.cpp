#include <charconv>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "unkernel/data/rows/svmlight.hpp"

namespace unkernel::data {
namespace {

// Enough for any number: -1.7976931348623157e+308 has 24 bytes, and a 64-bit integer at most 20.
constexpr std::size_t longest_number = 32;

template <class Number>
char* put(char* at, Number number) {
  return std::to_chars(at, at + longest_number, number).ptr;
}

template <class Index>
void check(const SvmlightRows<Index>& rows, std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<std::size_t>(rows.matrix.rows());
  if (rows.labels.size() != count || (!rows.queries.empty() && rows.queries.size() != count)) {
    throw std::invalid_argument("there must be one label and one query number per row");
  }
  if (rows.matrix.columns.size() != rows.matrix.values.size()) {
    throw std::invalid_argument("there must be as many values as columns");
  }
  if (begin < 0 || end < begin || static_cast<std::size_t>(end) > count) {
    throw std::out_of_range("there are no such rows");
  }
}

template <class Index>
class RowFormatter {
 public:
  explicit RowFormatter(const SvmlightRows<Index>& rows) : rows_(rows) {}

  void add(std::size_t row) {
    const auto begin = static_cast<std::int64_t>(rows_.matrix.offsets[row]);
    const auto end = static_cast<std::int64_t>(rows_.matrix.offsets[row + 1]);
    if (begin < 0 || end < begin || static_cast<std::size_t>(end) > rows_.matrix.values.size()) {
      throw std::invalid_argument("the offsets of the matrix are not ascending or exceed its entries");
    }
    const std::size_t old_size = text_.size();
    const std::size_t max_size = (2 + 2 * static_cast<std::size_t>(end - begin)) * (longest_number + 8);
    char* const line = text_.extend(max_size);
    char* at = put_head(line, row);
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      at = put_entry(at, i);
    *at++ = '\n';
    text_.truncate(old_size + static_cast<std::size_t>(at - line));
  }

  GrowingArray<char> take() { return std::move(text_); }

 private:
  char* put_head(char* at, std::size_t row) {
    at = put(at, rows_.labels[row]);
    if (rows_.queries.empty()) return at;
    for (const char c : std::string_view(" qid:")) *at++ = c;
    return put(at, rows_.queries[row]);
  }

  char* put_entry(char* at, std::size_t entry) {
    const double value = rows_.matrix.values[entry];
    if (value == 0) return at;
    *at++ = ' ';
    at = put(at, static_cast<std::int64_t>(rows_.matrix.columns[entry]) + rows_.first_index);
    *at++ = ':';
    return put(at, value);
  }

  const SvmlightRows<Index>& rows_;
  GrowingArray<char> text_;
};

}  // namespace

template <class Index>
GrowingArray<char> format_svmlight(const SvmlightRows<Index>& rows, std::int64_t begin, std::int64_t end) {
  check(rows, begin, end);
  RowFormatter<Index> formatter(rows);
  for (std::int64_t row = begin; row < end; ++row) formatter.add(static_cast<std::size_t>(row));
  return formatter.take();
}

template GrowingArray<char> format_svmlight(const SvmlightRows<std::int32_t>&, std::int64_t, std::int64_t);
template GrowingArray<char> format_svmlight(const SvmlightRows<std::int64_t>&, std::int64_t, std::int64_t);

}  // namespace unkernel::data
