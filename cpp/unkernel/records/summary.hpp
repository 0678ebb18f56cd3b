// What a column holds, counted in one pass: enough to choose how it becomes features.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "unkernel/data/text/name_table.hpp"
#include "unkernel/records/column.hpp"

namespace unkernel::records {

// Strings, and how often each of them came.
class StringCounts {
 public:
  // The number of the string, for add_again.
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
  // Those that came at least so often, in the order of their characters.
  std::vector<std::string_view> frequent(std::int64_t min_count) const;
  // Words of all strings, as many as came: a blank parts two of them.
  std::int64_t words() const;

 private:
  data::NameTable names_;
  std::vector<std::int64_t> counts_;
};

// Counts strings once per record, however often they come in it.
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

struct ColumnSummary {
  StringCounts texts;
  RecordCounts items;               // of lists of strings
  std::vector<double> numbers;      // that are not NaN
  std::vector<double> moments;      // of cells that are dates; texts may be dates as well
  std::vector<std::int32_t> codes;  // by row: 0 where there is no text, else 1 more than its number
  std::int64_t n_texts = 0;
  std::int64_t n_lists = 0;

  void add(const Cell& cell);
  void add(const Column& column, std::size_t rows);
  // The text of a number in `texts` once more.
  void add_text(std::size_t number) {
    texts.add_again(number);
    codes.push_back(static_cast<std::int32_t>(number) + 1);
    ++n_texts;
  }

  // The moments of all dates, as often as they came. Texts must be dates, too.
  std::vector<double> all_moments() const;
  // The number of the first text that is no date; the number of texts if there is none.
  std::size_t first_not_a_date() const;

  // The column itself, if all that there is are texts. The summary must outlive it.
  CodeColumn<std::int32_t> text_column() const;
};

// The distinct numbers, ascending, and how often each came; -0 is 0. There is no NaN among them.
struct DistinctNumbers {
  std::vector<double> values;
  std::vector<std::int64_t> counts;
};
DistinctNumbers distinct(std::span<const double> numbers);

// Ascending edges of at most n_bins intervals that hold about equally many of the numbers. A number that is
// more frequent than an interval should be gets one of its own, and the others are shared among what is left.
std::vector<double> quantile_edges(const DistinctNumbers& numbers, std::int64_t n_bins);

}  // namespace unkernel::records
