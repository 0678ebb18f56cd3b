#include "unkernel/records/dates.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "unkernel/records/column.hpp"

namespace unkernel::records {
namespace {

constexpr int minute = 60, hour = 60 * minute, day = 24 * hour;

constexpr double first_of(int year) {
  const std::chrono::sys_days begin = std::chrono::year(year) / 1 / 1;
  return static_cast<double>(begin.time_since_epoch().count()) * day;
}
constexpr double earliest = first_of(1), latest = first_of(10000);

// Reads a text from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : remaining_(text) {}

  bool is_at_end() const { return remaining_.empty(); }
  bool is_at_digit() const { return !remaining_.empty() && remaining_[0] >= '0' && remaining_[0] <= '9'; }

  // Takes the next character if it is one of `allowed`, and returns it; otherwise returns 0.
  char take(std::string_view allowed) {
    if (remaining_.empty() || allowed.find(remaining_[0]) == std::string_view::npos) return 0;
    const char next = remaining_[0];
    remaining_.remove_prefix(1);
    return next;
  }

  // Reads a number of exactly `digits` digits. Returns -1 unless there is such a number below `end`.
  int read_number(int digits, int end) {
    int value = 0;
    for (int k = 0; k < digits; ++k) {
      if (!is_at_digit()) return -1;
      value = 10 * value + (remaining_[0] - '0');
      remaining_.remove_prefix(1);
    }
    return value < end ? value : -1;
  }

 private:
  std::string_view remaining_;
};

std::optional<std::int64_t> read_date(Reader& reader) {
  const int year = reader.read_number(4, 10000);
  if (year < 1 || reader.take("-") == 0) return std::nullopt;
  const int month = reader.read_number(2, 13);
  if (month < 1 || reader.take("-") == 0) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(reader.read_number(2, 32)))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// Reads a time as seconds since midnight.
std::optional<int> read_time(Reader& reader) {
  const int hours = reader.read_number(2, 24);
  if (hours < 0 || reader.take(":") == 0) return std::nullopt;
  const int minutes = reader.read_number(2, 60);
  if (minutes < 0) return std::nullopt;
  int seconds = hours * hour + minutes * minute;
  if (reader.take(":") == 0) return seconds;
  const int whole_seconds = reader.read_number(2, 60);
  if (whole_seconds < 0) return std::nullopt;
  seconds += whole_seconds;
  if (reader.take(".,") == 0) return seconds;
  if (!reader.is_at_digit()) return std::nullopt;
  while (reader.is_at_digit())
    reader.read_number(1, 10);  // no part of a date depends on fractions of a second
  return seconds;
}

// Reads an offset as seconds ahead of UTC. At the end of the text, the offset is 0.
std::optional<int> read_offset(Reader& reader) {
  if (reader.is_at_end() || reader.take("Z") != 0) return 0;
  const char sign = reader.take("+-");
  const int hours = sign == 0 ? -1 : reader.read_number(2, 24);
  if (hours < 0) return std::nullopt;
  const bool has_colon = reader.take(":") != 0;
  const int minutes = has_colon || !reader.is_at_end() ? reader.read_number(2, 60) : 0;
  if (minutes < 0) return std::nullopt;
  const int seconds = hours * hour + minutes * minute;
  return sign == '+' ? seconds : -seconds;
}

class Dates final : public Step {
 public:
  Dates(std::vector<std::int32_t> columns, const std::vector<std::int32_t>& parts)
      : Step({static_cast<std::int32_t>(columns.size()), true}), columns_(std::move(columns)) {
    const auto is_part = [](std::int32_t part) { return part >= 0 && part < date_parts; };
    check_plan(parts.size() == columns_.size() && std::all_of(parts.begin(), parts.end(), is_part),
               "parts of dates do not fit the columns");
    for (const std::int32_t part : parts) parts_.push_back(static_cast<DatePart>(part));
  }

  void run(const Record& record, std::span<const Block>, Block& out) const override {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      const auto place = static_cast<std::size_t>(columns_[k]);
      const Cell& cell = record.cells[place];
      const double value = value_of(cell, parts_[k]);
      if (std::isnan(value) && !is_missing(cell)) fail(record, place);
      out.values.push_back(value);
    }
  }

  bool has_column_values() const override { return true; }

  bool compute_column_values(const RowBatch& batch, std::size_t k, std::span<double> out) const override {
    return use_batch(batch, columns_[k], [&](const Cell& cell, std::size_t row) {
      out[row] = value_of(cell, parts_[k]);
      return is_missing(cell) || !std::isnan(out[row]);
    });
  }

 private:
  static bool is_missing(const Cell& cell) {
    return cell.kind() == CellKind::none || cell.kind() == CellKind::absent ||
           (cell.kind() == CellKind::number && std::isnan(cell.number()));
  }

  // Returns a part of the date in a cell, or NaN if the cell is no date.
  static double value_of(const Cell& cell, DatePart part) {
    if (cell.kind() == CellKind::moment) return part_of(cell.number(), part);
    if (cell.kind() != CellKind::text) return nan;
    const std::optional<double> moment = parse_moment(cell.text());
    return moment ? part_of(*moment, part) : nan;
  }

  [[noreturn]] static void fail(const Record& record, std::size_t column) {
    const Cell& cell = record.cells[column];
    if (cell.kind() == CellKind::moment) record.fail(column, "the year of the date is not one of 1 to 9999");
    if (cell.kind() == CellKind::text)
      record.fail(column, "expected a date such as 2026-11-17 or 2026-11-17T14:05, got the string " +
                              quote(cell.text()));
    record.fail(column, cell.kind() == CellKind::number ? "expected a date, got a number"
                                                        : "expected a date, got a list or a dict");
  }

  std::vector<std::int32_t> columns_;
  std::vector<DatePart> parts_;
};

}  // namespace

std::optional<double> parse_moment(std::string_view text) {
  Reader reader(text);
  const std::optional<std::int64_t> days = read_date(reader);
  if (!days) return std::nullopt;
  const double midnight = static_cast<double>(*days) * day;
  if (reader.is_at_end()) return midnight;
  if (reader.take("T ") == 0) return std::nullopt;
  const std::optional<int> seconds = read_time(reader);
  if (!seconds) return std::nullopt;
  const std::optional<int> offset = read_offset(reader);
  if (!offset || !reader.is_at_end()) return std::nullopt;
  return midnight + *seconds - *offset;
}

double part_of(double moment, DatePart part) {
  if (!(moment >= earliest && moment < latest)) return nan;
  const double days = std::floor(moment / day);
  const std::chrono::sys_days date{std::chrono::days(static_cast<std::int64_t>(days))};
  const std::chrono::year_month_day parts(date);
  switch (part) {
    case DatePart::year: return static_cast<int>(parts.year());
    case DatePart::month: return static_cast<unsigned>(parts.month());
    case DatePart::day: return static_cast<unsigned>(parts.day());
    case DatePart::weekday: return std::chrono::weekday(date).iso_encoding() - 1;
    case DatePart::hour: break;
  }
  return std::floor((moment - days * day) / hour);
}

std::unique_ptr<Step> dates(std::vector<std::int32_t> columns, const std::vector<std::int32_t>& parts) {
  return std::make_unique<Dates>(std::move(columns), parts);
}

}  // namespace unkernel::records
