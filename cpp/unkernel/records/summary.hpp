// Summarizes a column in one pass, so that an encoding of the column can be chosen.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "unkernel/data/text/name_table.hpp"
#include "unkernel/records/column.hpp"

namespace unkernel::records {

// Counts of strings.
class StringCounts {
 public:
  // Adds a string, and returns its number for add_again().
  std::size_t add(std::string_view text, std::int64_t times = 1) {
    const auto number = static_cast<std::size_t>(names_.add(text));
    if (number == counts_.size()) counts_.push_back(0);
    counts_[number] += times;
    return number;
  }
  void add_again(std::size_t number) { ++counts_[number]; }

  std::size_t size() const { return counts_.size(); }
  std::string_view text(std::size_t number) const { return names_.name(static_cast<std::int32_t>(number)); }
  std::int64_t count(std::size_t number) const { return counts_[number]; }
  // Returns the strings with at least this count, in the order of their characters.
  std::vector<std::string_view> frequent(std::int64_t min_count) const;
  // Returns the number of words, separated by blanks, in all strings with repetitions.
  std::int64_t words() const;

 private:
  data::NameTable names_;
  std::vector<std::int64_t> counts_;
};

// Counts the records that contain each string.
class RecordCounts {
 public:
  void begin_record() { ++record_; }
  void add(std::string_view text, std::int64_t times = 1) {
    const std::size_t number = counts_.add(text, 0);
    if (number == last_.size()) last_.push_back(0);
    if (last_[number] == record_) return;
    last_[number] = record_;
    counts_.add(text, times);
  }
  const StringCounts& counts() const { return counts_; }

 private:
  StringCounts counts_;
  std::vector<std::int64_t> last_;  // the last record that contained the string
  std::int64_t record_ = 0;
};

// How often each number (other than NaN) occurs; or, for ranges of numbers that differ only in their last
// bits, how often each range occurs. -0 counts as 0.
struct CountedNumbers {
  struct Range {
    double low, high;  // the least and the largest number
    std::int64_t count;
  };
  std::vector<Range> ranges;  // ascending
  int dropped_bits = 0;       // the number of last bits that are ignored
};

CountedNumbers count_numbers(std::span<const double> numbers);

// Returns the sum of both counts in at most `most` ranges, and drops as few bits as possible. The result does
// not depend on the order of joins.
CountedNumbers join_counts(const CountedNumbers& first, const CountedNumbers& second, std::size_t most);

// Returns the ascending edges of at most n_bins intervals with about equal counts. A range with a larger
// count is an interval. No edge divides a range, so the counts of intervals are exact.
std::vector<double> quantile_edges(const CountedNumbers& numbers, std::int64_t n_bins);

// The summary of the cells that were added and of the summaries that were joined to it.
struct ColumnSummary {
  StringCounts texts;
  RecordCounts items;               // of lists of strings
  std::vector<double> numbers;      // that are not NaN
  std::vector<double> moments;      // of cells that are dates; texts may be dates as well
  CountedNumbers joined_numbers;    // the numbers of summaries that were joined to this one
  CountedNumbers joined_hours;      // the dates of joined summaries, rounded down to the hour
  bool is_joined_whole = true;      // whether all numbers of these summaries are whole
  std::vector<std::int32_t> codes;  // by row: one more than the number of its text; 0 without a text
  std::int64_t n_texts = 0;
  std::int64_t n_lists = 0;

  void add(const Cell& cell);
  void add(const Column& column, std::size_t rows);
  // Counts a text again, given its number in `texts`.
  void add_text(std::size_t number) {
    texts.add_again(number);
    codes.push_back(static_cast<std::int32_t>(number) + 1);
    ++n_texts;
  }

  bool has_numbers() const { return !numbers.empty() || !joined_numbers.ranges.empty(); }
  bool has_moments() const { return !moments.empty() || !joined_hours.ranges.empty(); }
  bool is_whole() const;
  // Returns counts of all numbers, in at most `most` ranges.
  CountedNumbers all_numbers(std::size_t most = SIZE_MAX) const;
  // Returns counts of the moments of all dates, rounded down to the hour. All parts of dates follow from the
  // hour.
  CountedNumbers all_hours(bool with_texts) const;
  // Returns the number of the first text that is no date, or the number of texts if all texts are dates.
  std::size_t find_first_non_date() const;

  // Returns the texts of the column; other cells are None. The summary must outlive the result.
  CodeColumn<std::int32_t> text_column() const;
};

}  // namespace unkernel::records
