#include "unkernel/data/rows/svmlight_piece.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>
#include <unordered_set>
#include <utility>
#include <vector>

#include "unkernel/base/hash_seed.hpp"
#include "unkernel/data/decimal.hpp"
#include "unkernel/data/rows/svmlight_reasons.hpp"

namespace unkernel::data {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }
bool ends_field(char c) { return c == ' ' || c == '\n' || c == '#' || is_blank(c); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

const char* skip_blanks(const char* at) {
  while (is_blank(*at)) ++at;
  return at;
}

std::string_view field_at(const char* begin) {
  const char* end = begin;
  while (!ends_field(*end)) ++end;
  return {begin, end};
}

// Reads an index of any length. Returns whether it fits into 64 bits.
bool read_long_index(const char* at, const char* end, std::uint64_t& index) {
  return std::from_chars(at, end, index).ec == std::errc();
}

// Reads the lines of one piece. At a bad line, `fail` records the error, and all callers return false.
class PieceReader {
 public:
  PieceReader(std::string_view text, IndexRange allowed, SvmlightPiece& piece)
      : at_(text.data()), end_(text.data() + text.size()), allowed_(allowed), piece_(piece) {
    // A row has at least the two bytes of "1\n", and an entry at least the four bytes of "1:1 ", so the
    // arrays are large enough for all rows and entries.
    const std::size_t max_rows = text.size() / 2 + 1;
    const std::size_t max_entries = text.size() / 4 + 1;
    labels_ = make_space(piece.labels, max_rows);
    queries_ = make_space(piece.queries, max_rows);
    row_ends_ = make_space(piece.row_ends, max_rows);
    indices_ = make_space(piece.indices, max_entries);
    values_ = make_space(piece.values, max_entries);
  }

  void read_all() {
    while (at_ < end_ && read_line()) {}
    piece_.lines = line_;
    piece_.labels.truncate(rows_);
    piece_.queries.truncate(rows_);
    piece_.row_ends.truncate(rows_);
    piece_.indices.truncate(entries_);
    piece_.values.truncate(entries_);
  }

 private:
  template <class T>
  static T* make_space(GrowingArray<T>& array, std::size_t size) {
    array.clear();
    return array.extend(size);
  }

  bool fail(const char* where, std::string reason) {
    piece_.error = LineError{line_, where - line_begin_ + 1, std::move(reason)};
    return false;
  }

  bool read_line() {
    ++line_;
    line_begin_ = at_;
    at_ = skip_blanks(at_);
    if (*at_ == '#') skip_comment();
    if (*at_ == '\n') {
      ++at_;
      return true;
    }
    row_begin_ = entries_;
    has_query_ = false;
    if (!read_label() || !read_fields() || !finish_row()) return false;
    ++at_;
    return true;
  }

  void skip_comment() {
    ++piece_.comments;
    at_ = static_cast<const char*>(std::memchr(at_, '\n', static_cast<std::size_t>(end_ - at_)));
  }

  bool read_label() {
    double label = 0;
    const char* end = read_decimal(at_, end_, label);
    if (end == nullptr || !ends_field(*end)) { return fail(at_, reasons::bad_label(field_at(at_))); }
    labels_[rows_] = label;
    at_ = end;
    return true;
  }

  // Reads the entries and other fields of a row, up to the newline.
  bool read_fields() {
    previous_index_ = -1;
    ascending_ = true;
    has_zero_value_ = false;
    for (;;) {
      read_plain_entries();
      if (is_digit(*at_)) {
        if (!read_entry()) return false;
      } else if (*at_ == '\n') {
        return true;
      } else if (*at_ == '#') {
        skip_comment();
        return true;
      } else if (!read_named_field()) {
        return false;
      }
    }
  }

  // Reads entries in the usual form: the hot loop. Stops at the first other field, which read_fields handles.
  void read_plain_entries() {
    const char* at = at_;
    const char* const end = end_;
    const std::uint64_t first = smallest();
    const std::uint64_t span = largest() - first;
    std::int64_t previous = previous_index_;
    bool ascending = ascending_;
    bool has_zero_value = has_zero_value_;
    std::size_t entries = entries_;
    for (;;) {
      at = skip_blanks(at);
      const Digits digits = read_digits(at, end);
      const std::ptrdiff_t length = digits.at - at;
      if (length == 0 || length > 18 || *digits.at != ':' || digits.value - first > span) break;
      double value = 0;
      const char* const value_end = read_decimal(digits.at + 1, end, value);
      if (value_end == nullptr || !ends_field(*value_end)) break;
      const auto index = static_cast<std::int64_t>(digits.value);
      ascending &= index > previous;
      previous = index;
      has_zero_value |= value == 0;
      indices_[entries] = index;
      values_[entries] = value;
      ++entries;
      at = value_end;
    }
    at_ = at;
    previous_index_ = previous;
    ascending_ = ascending;
    has_zero_value_ = has_zero_value;
    entries_ = entries;
  }

  bool read_entry() {
    Digits digits = read_digits(at_, end_);
    if (*digits.at != ':') return fail(at_, reasons::bad_index_field(field_at(at_)));
    if (!read_long_index(at_, digits.at, digits.value)) {
      return fail(at_, reasons::index_too_large({at_, digits.at}));
    }
    if (digits.value - smallest() > largest() - smallest()) return fail_index(digits.value);
    const char* const value_begin = digits.at + 1;
    double value = 0;
    const char* const value_end = read_decimal(value_begin, end_, value);
    if (value_end == nullptr || !ends_field(*value_end)) {
      return fail(value_begin, reasons::bad_value(field_at(value_begin)));
    }
    add_entry(static_cast<std::int64_t>(digits.value), value);
    at_ = value_end;
    return true;
  }

  std::uint64_t smallest() const { return static_cast<std::uint64_t>(allowed_.smallest); }
  std::uint64_t largest() const { return static_cast<std::uint64_t>(allowed_.largest); }

  void add_entry(std::int64_t index, double value) {
    ascending_ = ascending_ && index > previous_index_;
    previous_index_ = index;
    has_zero_value_ |= value == 0;
    indices_[entries_] = index;
    values_[entries_] = value;
    ++entries_;
  }

  bool fail_index(std::uint64_t index) {
    if (index < smallest()) return fail(at_, reasons::index_too_small(index, allowed_.smallest));
    return fail(at_, reasons::index_beyond(index, allowed_.largest));
  }

  // Reads name:value. Counts and ignores fields other than qid, such as SVMlight's cost and sid.
  bool read_named_field() {
    const std::string_view field = field_at(at_);
    const char* name_end = at_;
    while (is_letter(*name_end) || is_digit(*name_end)) ++name_end;
    if (name_end == at_ || *name_end != ':') return fail(at_, reasons::bad_named_field(field));
    if (field.starts_with("qid:")) return read_query(field);
    ++piece_.ignored_fields;
    at_ += field.size();
    return true;
  }

  bool read_query(std::string_view field) {
    const std::string_view number = field.substr(4);
    const char* const end = number.data() + number.size();
    const auto [stop, failure] = std::from_chars(number.data(), end, queries_[rows_]);
    if (failure != std::errc() || stop != end) return fail(at_, reasons::bad_query(number));
    if (has_query_) return fail(at_, reasons::second_query());
    has_query_ = true;
    at_ = end;
    return true;
  }

  bool finish_row() {
    if (!ascending_ && !sort_row()) return false;
    if (rows_ == 0) {
      piece_.first_row_line = line_;
      piece_.has_queries = has_query_;
    }
    if (has_query_ != piece_.has_queries) return fail_whole_line(reasons::uneven_queries(has_query_));
    if (entries_ > row_begin_) update_index_range();
    if (has_zero_value_) drop_zero_values();
    row_ends_[rows_] = static_cast<std::int64_t>(entries_);
    ++rows_;
    return true;
  }

  bool fail_whole_line(std::string reason) {
    piece_.error = LineError{line_, 0, std::move(reason)};
    return false;
  }

  // Updates the largest index and has_zero_index. Both also cover entries with the value 0.
  void update_index_range() {
    piece_.has_zero_index |= indices_[row_begin_] == 0;
    if (indices_[entries_ - 1] > piece_.largest_index) {
      piece_.largest_index = indices_[entries_ - 1];
      piece_.largest_index_line = line_;
    }
  }

  bool sort_row() {
    std::vector<std::pair<std::int64_t, double>> entries;
    entries.reserve(entries_ - row_begin_);
    for (std::size_t i = row_begin_; i < entries_; ++i) entries.emplace_back(indices_[i], values_[i]);
    std::ranges::sort(entries, {}, &std::pair<std::int64_t, double>::first);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0 && entries[i].first == entries[i - 1].first) return fail_repeated_index();
      indices_[row_begin_ + i] = entries[i].first;
      values_[row_begin_ + i] = entries[i].second;
    }
    return true;
  }

  // Reads the line again to find the first repeated index: sort_row has changed the order of the indices.
  bool fail_repeated_index() {
    const auto hash = [](std::uint64_t index) { return static_cast<std::size_t>(seeded_hash(index)); };
    std::unordered_set<std::uint64_t, decltype(hash)> indices(16, hash);
    const char* at = skip_blanks(line_begin_);
    for (at += field_at(at).size();; at += field_at(at).size()) {
      at = skip_blanks(at);
      if (!is_digit(*at)) {
        assert(*at != '\n' && *at != '#');
        continue;
      }
      std::uint64_t index = 0;
      (void)read_long_index(at, end_, index);
      if (!indices.insert(index).second) {
        return fail(at, reasons::repeated_index(static_cast<std::int64_t>(index)));
      }
    }
  }

  void drop_zero_values() {
    std::size_t remaining = row_begin_;
    for (std::size_t i = row_begin_; i < entries_; ++i) {
      if (values_[i] == 0) continue;
      indices_[remaining] = indices_[i];
      values_[remaining++] = values_[i];
    }
    entries_ = remaining;
  }

  const char* at_;
  const char* end_;
  IndexRange allowed_;
  SvmlightPiece& piece_;

  double* labels_;
  std::int64_t* queries_;
  std::int64_t* row_ends_;
  std::int64_t* indices_;
  double* values_;

  std::int64_t line_ = 0;
  std::size_t rows_ = 0;
  std::size_t entries_ = 0;

  // The current line.
  const char* line_begin_ = nullptr;
  std::size_t row_begin_ = 0;
  bool has_query_ = false;
  std::int64_t previous_index_ = -1;
  bool ascending_ = true;
  bool has_zero_value_ = false;
};

}  // namespace

void parse_piece(std::string_view text, IndexRange allowed, SvmlightPiece& piece) {
  assert(!text.empty() && text.back() == '\n');
  piece.has_queries = false;
  piece.first_row_line = 0;
  piece.comments = 0;
  piece.ignored_fields = 0;
  piece.has_zero_index = false;
  piece.largest_index = -1;
  piece.largest_index_line = 0;
  piece.error.reset();
  PieceReader(text, allowed, piece).read_all();
}

}  // namespace unkernel::data
