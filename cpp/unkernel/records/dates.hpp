// Reads dates and times from text, and extracts their parts. A moment is a number of seconds since the
// beginning of 1970, in UTC.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "unkernel/records/step.hpp"

namespace unkernel::records {

enum class DatePart : std::uint8_t { year, month, day, weekday, hour };
constexpr std::int32_t date_parts = 5;

// Reads ISO 8601: a date such as 2026-11-17, optionally followed by a T or a blank and a time such as 14:05,
// 14:05:30 or 14:05:30.25, with Z or an offset such as +01:00, +0100 or +01. A time without an offset is in
// UTC.
std::optional<double> parse_moment(std::string_view text);

// Returns a part of a moment, or NaN outside the years 1 to 9999. Months and days count from 1, hours from 0,
// weekdays from 0 for Monday.
double part_of(double moment, DatePart part);

// Makes a dense block: value k is part parts[k] of the date in column columns[k], or NaN if the date is
// missing.
std::unique_ptr<Step> dates(std::vector<std::int32_t> columns, const std::vector<std::int32_t>& parts);

}  // namespace unkernel::records
