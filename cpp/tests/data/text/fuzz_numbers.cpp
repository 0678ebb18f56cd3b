// For any bytes, decimal numbers are refused or read as the C library reads them, parts of dates are in their
// ranges, and the first and the last characters of valid UTF-8 are valid UTF-8.
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "unkernel/data/decimal.hpp"
#include "unkernel/data/text/utf8.hpp"
#include "unkernel/records/dates.hpp"

namespace {

using namespace unkernel;

void check_decimal(const std::string& line) {
  const char* const end = line.data() + line.size();
  double value = 0.0;
  const char* const after = data::read_decimal(line.data(), end, value);
  double long_value = 0.0;
  CHECK(data::read_long_decimal(line.data(), end, long_value) == after);
  if (after == nullptr) return;
  CHECK(after > line.data() && after < end && std::isfinite(value) && value == long_value);
  const std::string number(line.data(), after);
  CHECK(std::strtod(number.c_str(), nullptr) == value);
}

void check_moment(std::string_view text) {
  const std::optional<double> moment = records::parse_moment(text);
  if (!moment) return;
  CHECK(std::isfinite(*moment));
  const double month = records::part_of(*moment, records::DatePart::month);
  const double day = records::part_of(*moment, records::DatePart::day);
  const double hour = records::part_of(*moment, records::DatePart::hour);
  const double weekday = records::part_of(*moment, records::DatePart::weekday);
  // An offset may lead outside the years 1 to 9999.
  if (std::isnan(records::part_of(*moment, records::DatePart::year))) return;
  CHECK(month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour >= 0 && hour < 24);
  CHECK(weekday >= 0 && weekday < 7);
}

void check_characters(std::string_view text) {
  const std::size_t bad = data::first_bad_byte(text);
  CHECK(bad <= text.size());
  const std::string_view valid = text.substr(0, bad);
  if (data::first_bad_byte(valid) != bad) return;  // the last character is cut off
  const std::size_t count = data::count_characters(valid);
  CHECK(count <= valid.size());
  for (const std::size_t length : {std::size_t{0}, std::size_t{2}, count}) {
    const std::string_view first = data::first_characters(valid, length);
    const std::string_view last = data::last_characters(valid, length);
    CHECK(valid.starts_with(first) && valid.ends_with(last));
    CHECK(data::count_characters(first) == std::min(length, count) &&
          data::first_bad_byte(first) == first.size());
    CHECK(data::count_characters(last) == std::min(length, count) &&
          data::first_bad_byte(last) == last.size());
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {"1 ",
          "-12.5e-3",
          "+.5",
          "123456789012345678901234567890",
          "1e400",
          "4.9e-324",
          "2.2250738585072011e-308",
          "9007199254740993",
          "0.1e",
          "2026-11-17",
          "2026-02-29T14:05:30.25+01:00",
          "0001-01-01 00:00Z",
          "9999-12-31T23:59-0100",
          "\xE7\x8A\xAC",
          "\xF0\x9F\x90\x95 \xC3\xA9\xED\xA0\x80"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string line(data, data + size);
  check_moment(line);
  check_characters(line);
  line.push_back('\n');
  check_decimal(line);
  return 0;
}
