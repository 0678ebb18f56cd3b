#include "unkernel/records/summary.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "unkernel/records/dates.hpp"
#include "unkernel/records/text_memo.hpp"

namespace unkernel::records {
namespace {

constexpr int digit_bits = 11;
constexpr std::size_t digits = 6;  // of 64 bits
constexpr std::size_t digit_values = std::size_t{1} << digit_bits;
constexpr std::size_t min_radix_size = 1024;
constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

// Convert a double to an unsigned number and back. The unsigned numbers have the order of the doubles. Adding
// 0.0 turns -0 into 0.
std::uint64_t key_of(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number + 0.0);
  return (bits & sign_bit) != 0 ? ~bits : bits | sign_bit;
}
double number_of(std::uint64_t key) {
  return std::bit_cast<double>((key & sign_bit) != 0 ? key ^ sign_bit : ~key);
}

std::size_t digit(std::uint64_t key, std::size_t place) {
  return static_cast<std::size_t>(key >> (digit_bits * place)) & (digit_values - 1);
}

// Sorts by digit, beginning with the least significant digit. Skips digits in which all keys are equal; whole
// numbers have many such digits.
std::vector<std::uint64_t> radix_sort(std::vector<std::uint64_t> keys) {
  std::uint64_t differences = 0;
  for (const std::uint64_t key : keys) differences |= key ^ keys.front();
  std::vector<std::uint64_t> sorted(keys.size());
  for (std::size_t place = 0; place < digits; ++place) {
    if (digit(differences, place) == 0) continue;
    std::array<std::uint32_t, digit_values> begins{};
    for (const std::uint64_t key : keys) ++begins[digit(key, place)];
    std::uint32_t begin = 0;
    for (std::uint32_t& count : begins) begin += std::exchange(count, begin);
    for (const std::uint64_t key : keys) sorted[begins[digit(key, place)]++] = key;
    keys.swap(sorted);
  }
  return keys;
}

std::vector<double> sort_ascending(std::span<const double> numbers) {
  std::vector<double> sorted(numbers.size());
  if (numbers.size() < min_radix_size || numbers.size() > UINT32_MAX) {
    std::transform(numbers.begin(), numbers.end(), sorted.begin(), [](double x) { return x + 0.0; });
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  std::vector<std::uint64_t> keys(numbers.size());
  std::transform(numbers.begin(), numbers.end(), keys.begin(), key_of);
  keys = radix_sort(std::move(keys));
  std::transform(keys.begin(), keys.end(), sorted.begin(), number_of);
  return sorted;
}

// Counts whole numbers in a table, without sorting. Returns false if a number is not whole or their range is
// large.
bool count_whole(std::span<const double> numbers, CountedNumbers& counted) {
  if (numbers.empty()) return false;
  const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  constexpr double largest_exact = 1e15;  // differences of smaller whole numbers are exact
  const double least = *low, span = *high - *low;
  const double max_span = 4.0 * static_cast<double>(numbers.size()) + 1024.0;
  if (!(std::abs(least) < largest_exact) || !(span < max_span)) return false;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(span) + 1, 0);
  for (const double number : numbers) {
    const auto place = static_cast<std::size_t>(number - least);
    if (least + static_cast<double>(place) != number) return false;  // a difference may have been rounded
    ++counts[place];
  }
  if (least != std::floor(least)) return false;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0) continue;
    const double number = least + static_cast<double>(k) + 0.0;
    counted.ranges.push_back({number, number, counts[k]});
  }
  return true;
}

// Joins neighbouring ranges that differ only in dropped bits.
void join_equal_ranges(CountedNumbers& numbers) {
  std::vector<CountedNumbers::Range>& ranges = numbers.ranges;
  const auto are_equal = [&](double a, double b) {
    return numbers.dropped_bits >= 64 || (key_of(a) ^ key_of(b)) >> numbers.dropped_bits == 0;
  };
  std::size_t joined = 0;
  for (const CountedNumbers::Range& range : ranges) {
    if (joined > 0 && are_equal(ranges[joined - 1].low, range.low)) {
      ranges[joined - 1].high = std::max(ranges[joined - 1].high, range.high);
      ranges[joined - 1].count += range.count;
    } else {
      ranges[joined++] = range;
    }
  }
  ranges.resize(joined);
}

constexpr double seconds_of_hour = 3600.0;

// Returns a number above `low` and not above `high`.
double find_between(double low, double high) {
  const double middle = 0.5 * low + 0.5 * high;  // low + high may be infinite
  return middle > low ? middle : high;
}

}  // namespace

std::vector<std::string_view> StringCounts::frequent(std::int64_t min_count) const {
  std::vector<std::string_view> frequent_strings;
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    if (counts_[k] >= min_count) frequent_strings.push_back(text(k));
  }
  // In UTF-8, the order of bytes is the order of characters.
  std::sort(frequent_strings.begin(), frequent_strings.end());
  return frequent_strings;
}

std::int64_t StringCounts::words() const {
  std::int64_t words = 0;
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    const std::string_view string = text(k);
    words += counts_[k] * (1 + std::count(string.begin(), string.end(), ' '));
  }
  return words;
}

void ColumnSummary::add(const Cell& cell) {
  switch (cell.kind()) {
    case CellKind::text: return add_text(texts.add(cell.text(), 0));
    case CellKind::number:
      if (!std::isnan(cell.number())) numbers.push_back(cell.number());
      break;
    case CellKind::moment: moments.push_back(cell.number()); break;
    case CellKind::strings:
      items.begin_record();
      for (const std::string_view item : cell.strings()) items.add(item);
      ++n_lists;
      break;
    default: break;
  }
  codes.push_back(0);
}

bool ColumnSummary::is_whole() const {
  return is_joined_whole &&
         std::all_of(numbers.begin(), numbers.end(), [](double x) { return x == std::rint(x); });
}

CountedNumbers ColumnSummary::all_numbers(std::size_t most) const {
  return join_counts(count_numbers(numbers), joined_numbers, most);
}

CountedNumbers ColumnSummary::all_hours(bool with_texts) const {
  const auto hour_of = [](double moment) { return std::floor(moment / seconds_of_hour) * seconds_of_hour; };
  std::vector<double> hours(moments.size());
  std::transform(moments.begin(), moments.end(), hours.begin(), hour_of);
  CountedNumbers all = join_counts(count_numbers(hours), joined_hours, SIZE_MAX);
  CountedNumbers hours_of_texts;
  for (std::size_t k = 0; with_texts && k < texts.size(); ++k) {
    const double begin = hour_of(parse_moment(texts.text(k)).value());
    hours_of_texts.ranges.push_back({begin, begin, texts.count(k)});
  }
  std::sort(hours_of_texts.ranges.begin(), hours_of_texts.ranges.end(),
            [](const auto& a, const auto& b) { return a.low < b.low; });
  return join_counts(all, hours_of_texts, SIZE_MAX);
}

std::size_t ColumnSummary::find_first_non_date() const {
  std::size_t k = 0;
  while (k < texts.size() && parse_moment(texts.text(k))) ++k;
  return k;
}

void ColumnSummary::add(const Column& column, std::size_t rows) {
  codes.reserve(codes.size() + rows);
  TextMemo memo;
  const auto find = [&](std::string_view text) { return static_cast<std::int32_t>(texts.add(text, 0)); };
  use_cells(column, 0, rows, [&](const Cell& cell, std::size_t) {
    if (cell.kind() != CellKind::text) {
      add(cell);
    } else {
      add_text(static_cast<std::size_t>(memo(cell.text(), find)));
    }
    return true;
  });
}

CodeColumn<std::int32_t> ColumnSummary::text_column() const {
  std::vector<Cell> dictionary{Cell::none()};
  for (std::size_t k = 0; k < texts.size(); ++k) dictionary.push_back(Cell::of(texts.text(k)));
  return {codes.data(), std::move(dictionary), {}};
}

CountedNumbers count_numbers(std::span<const double> numbers) {
  CountedNumbers counted;
  if (count_whole(numbers, counted)) return counted;
  counted = {};
  for (const double number : sort_ascending(numbers)) counted.ranges.push_back({number, number, 1});
  join_equal_ranges(counted);
  return counted;
}

CountedNumbers join_counts(const CountedNumbers& first, const CountedNumbers& second, std::size_t most) {
  CountedNumbers all;
  all.dropped_bits = std::max(first.dropped_bits, second.dropped_bits);
  all.ranges.resize(first.ranges.size() + second.ranges.size());
  std::merge(first.ranges.begin(), first.ranges.end(), second.ranges.begin(), second.ranges.end(),
             all.ranges.begin(), [](const auto& a, const auto& b) { return a.low < b.low; });
  join_equal_ranges(all);
  while (all.ranges.size() > most) {
    ++all.dropped_bits;
    join_equal_ranges(all);
  }
  return all;
}

std::vector<double> quantile_edges(const CountedNumbers& numbers, std::int64_t n_bins) {
  const std::vector<CountedNumbers::Range>& ranges = numbers.ranges;
  std::vector<double> edges;
  std::int64_t remaining_numbers = 0, remaining_bins = n_bins, filled = 0;
  for (const CountedNumbers::Range& range : ranges) remaining_numbers += range.count;
  for (std::size_t k = 0; k + 1 < ranges.size(); ++k) {
    filled += ranges[k].count;
    const double with_half_of_next =
        static_cast<double>(filled) + 0.5 * static_cast<double>(ranges[k + 1].count);
    if (remaining_bins > 1 &&
        with_half_of_next * static_cast<double>(remaining_bins) >= static_cast<double>(remaining_numbers)) {
      edges.push_back(find_between(ranges[k].high, ranges[k + 1].low));
      remaining_numbers -= filled;
      --remaining_bins;
      filled = 0;
    }
  }
  return edges;
}

}  // namespace unkernel::records
