// Reads dates and times from text, and extracts their parts. A moment is a number of seconds since 1970
// began, in UTC.
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

// Reads ISO 8601: a date as 2026-11-17, and after it, if there is one, a T or a blank and a time as 14:05,
// 14:05:30 or 14:05:30.25, with Z or an offset as +01:00, +0100 or +01. A time without one is in UTC.
std::optional<double> parse_moment(std::string_view text);

// Months and days count from 1, weekdays from 0, Monday, and hours from 0. NaN outside the years 1 to 9999.
double part_of(double moment, DatePart part);

// A dense block: value k is a part of column columns[k]; NaN for None and for columns that are absent.
std::unique_ptr<Step> dates(std::vector<std::int32_t> columns, const std::vector<std::int32_t>& parts);

}  // namespace unkernel::records
