// Summarizes a column in one pass, so that an encoding can be chosen.
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
  // Returns the number of the string, for add_again.
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

// Counts strings once per record, however often a record has them.
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
  std::vector<std::int64_t> last_;  // the last record that had the string
  std::int64_t record_ = 0;
};

// Counts of numbers that are not NaN: of each number, or of ranges of numbers that differ in their last bits
// only. -0 is 0.
struct CountedNumbers {
  struct Range {
    double low, high;  // the least and the largest number
    std::int64_t count;
  };
  std::vector<Range> ranges;  // ascending
  int dropped_bits = 0;       // the number of last bits that are ignored
};

CountedNumbers count_numbers(std::span<const double> numbers);

// Returns the numbers of both, dropping as few bits as needed for at most `most` ranges. The result does not
// depend on the order of joins.
CountedNumbers join_counts(const CountedNumbers& some, const CountedNumbers& others, std::size_t most);

// Returns the ascending edges of at most n_bins intervals with about equally many numbers. A number (or
// range) that alone exceeds the size of an interval gets its own interval. An edge never divides a range, so
// that all counts are exact.
std::vector<double> quantile_edges(const CountedNumbers& numbers, std::int64_t n_bins);

struct ColumnSummary {
  StringCounts texts;
  RecordCounts items;               // of lists of strings
  std::vector<double> numbers;      // that are not NaN
  std::vector<double> moments;      // of cells that are dates; texts may be dates as well
  CountedNumbers joined_numbers;    // those of other summaries
  CountedNumbers joined_hours;      // and their dates, to the hour
  bool joined_whole = true;         // whether their numbers are whole
  std::vector<std::int32_t> codes;  // by row: 0 where there is no text, else 1 more than its number
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
  CountedNumbers all_numbers(std::size_t most = SIZE_MAX) const;
  // Returns the moments of all dates, rounded down to the hour, which determines all parts of dates.
  CountedNumbers all_hours(bool with_texts) const;
  // Returns the number of the first text that is no date; the number of texts if there is none.
  std::size_t first_not_a_date() const;

  // Returns the column itself, if it has only texts. The summary must outlive it.
  CodeColumn<std::int32_t> text_column() const;
};

}  // namespace unkernel::records
