#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/decimal.hpp"
#include "unkernel/data/rows/svmlight.hpp"

namespace {

using namespace unkernel::data;
using unkernel::FormatError;
using unkernel::Random;

constexpr IndexRange any_index{0, std::int64_t{1} << 62};

SvmlightArrays read(std::string_view text, std::int64_t first_index, ThreadPlan plan = {1, 1 << 17}) {
  SvmlightParser parser("test", plan, any_index);
  parser.feed(text);
  parser.finish();
  return parser.take(first_index);
}

bool is_narrow(const SvmlightArrays& arrays) {
  return std::holds_alternative<CsrArrays<std::int32_t>>(arrays.rows);
}

// Numbers on the fast and on the slow path are read as the standard library reads them, to the last bit.
void test_decimals_are_correctly_rounded() {
  Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    const std::uint32_t whole_digits = random.below(12);
    const std::uint32_t fraction_digits = random.below(20);
    for (std::uint32_t j = 0; j < whole_digits; ++j) text += static_cast<char>('0' + random.below(10));
    if (fraction_digits > 0 || whole_digits == 0) text += '.';
    for (std::uint32_t j = 0; j < std::max(fraction_digits, whole_digits == 0 ? 1U : 0U); ++j) {
      text += static_cast<char>('0' + random.below(10));
    }
    if (random.below(3) == 0) text += "e" + std::to_string(static_cast<int>(random.below(640)) - 330);
    const double expected = std::strtod(text.c_str(), nullptr);
    text += '\n';
    double value = 0;
    const char* end = read_decimal(text.data(), text.data() + text.size(), value);
    if (std::isinf(expected)) {
      CHECK(end == nullptr);
    } else {
      CHECK(end == text.data() + text.size() - 1);
      CHECK(std::memcmp(&expected, &value, sizeof value) == 0);
    }
  }
}

void test_invalid_decimals_are_refused() {
  for (const std::string text : {"\n", "+\n", ".\n", "-.e1\n", "1e\n", "1e+\n", "e5\n", "nan\n", "1e400\n"}) {
    double value = 0;
    CHECK(read_decimal(text.data(), text.data() + text.size(), value) == nullptr);
    CHECK(!read_decimal(text.substr(0, text.size() - 1), value));
  }
  for (const std::string_view text : {"1 ", " 1", "1x", "1e5e5", "+-1"}) {
    double value = 0;
    CHECK(!read_decimal(text, value));
  }
}

void test_nearest_double_agrees_with_strtod() {
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint32_t j = 1 + random.below(60); j > 0; --j)
      text += static_cast<char>('0' + random.below(10));
    text.insert(random.below(static_cast<std::uint32_t>(text.size())) + 1, ".");
    if (random.below(2) == 0) text += "e" + std::to_string(static_cast<int>(random.below(700)) - 370);
    const char* const end = text.data() + text.size();
    CHECK(nearest_double_by_strtod(text.data(), end) == nearest_double(text.data(), end));
    CHECK(nearest_double_by_strtod(text.data(), end) == std::strtod(text.c_str(), nullptr));
  }
}

void test_extreme_exponents() {
  const auto value_of = [](std::string text) {
    text += '\n';
    double value = -1;
    CHECK(read_decimal(text.data(), text.data() + text.size(), value) != nullptr);
    return value;
  };
  CHECK(value_of("1e-400") == 0);
  CHECK(value_of("0e99999999999999999999999") == 0);
  CHECK(value_of("1e-99999999999999999999999") == 0);
  CHECK(value_of("0." + std::string(400, '0') + "1e401") == 1);
  CHECK(value_of("1" + std::string(400, '0') + "e-400") == 1);
}

void test_wide_indices_are_kept() {
  const SvmlightArrays narrow = read("1 2147483646:1\n", 0);
  CHECK(is_narrow(narrow));
  const SvmlightArrays wide = read("1 5:2\n1 2147483647:1 1099511627776:3\n1 1:1", 1);
  CHECK(!is_narrow(wide));
  const auto columns = std::get<CsrArrays<std::int64_t>>(wide.rows).columns.span();
  CHECK(columns[0] == 4 && columns[1] == 2147483646 && columns[2] == 1099511627775 && columns[3] == 0);
}

void test_the_first_bad_line_is_reported() {
  std::string text;
  for (int line = 1; line <= 1000; ++line) text += line % 300 == 0 ? "1 2:x\n" : "1 2:1 3:1\n";
  for (const int threads : {1, 2, 7}) {
    try {
      (void)read(text, 1, {threads, 100});
      CHECK(false);
    } catch (const FormatError& error) { CHECK(error.line == 300 && error.column == 5); }
  }
}

void test_a_long_line_in_small_blocks() {
  std::string text = "1";
  for (int i = 1; i <= 20'000; ++i) text += " " + std::to_string(i) + ":1";
  SvmlightParser parser("test", {2, 64}, any_index);
  for (std::size_t at = 0; at < text.size(); at += 1000) parser.feed(std::string_view(text).substr(at, 1000));
  parser.finish();
  CHECK(parser.counts().rows == 1 && parser.counts().largest_index == 20'000);
  CHECK(parser.take(1).values.size() == 20'000);
}

void test_reading_continues_after_a_part_is_taken() {
  SvmlightParser parser("test", {1, 1}, any_index);
  CHECK(parser.take_part().labels.empty());
  parser.feed("1 qid:3 5000000000:1\n2 qid:3 7:1");
  const SvmlightArrays wide = parser.take_part();
  CHECK(wide.labels.size() == 1 && wide.queries.size() == 1);
  CHECK((std::get<CsrArrays<std::int64_t>>(wide.rows).columns.span()[0] == 5'000'000'000));
  parser.feed(" 9:1\n");
  const SvmlightArrays second = parser.take_part();
  CHECK(second.labels.size() == 1 && second.values.size() == 2 && parser.counts().rows == 2);
  CHECK(parser.counts().largest_index == 5'000'000'000 && parser.counts().largest_index_line == 1);
  try {
    parser.feed("3 1:1\n");
    CHECK(false);
  } catch (const FormatError& error) {
    CHECK(error.line == 3);  // a row without a query
  }
}

void test_calls_in_the_wrong_order_are_refused() {
  CHECK_THROWS(SvmlightParser("test", ThreadPlan{0, 1}, any_index), std::invalid_argument);
  CHECK_THROWS(SvmlightParser("test", ThreadPlan{1, 1}, IndexRange{1, 0}), std::invalid_argument);
  SvmlightParser parser("test", {1, 1}, any_index);
  CHECK_THROWS(parser.take(0), std::invalid_argument);
  parser.feed("1 0:1\n");
  parser.finish();
  CHECK_THROWS(parser.feed("1 1:1\n"), std::invalid_argument);
  CHECK_THROWS(parser.take(1), std::invalid_argument);
}

void test_format_refuses_invalid_offsets() {
  const std::vector<double> labels = {1, 2};
  const std::vector<double> values = {1, 0, 3};
  const std::vector<std::int32_t> columns = {0, 1, 2};
  const std::vector<std::int32_t> valid = {0, 2, 3};
  const std::vector<std::int32_t> beyond_the_end = {0, 2, 4};
  const std::vector<std::int32_t> descending = {0, 2, 1};
  const auto format = [&](const std::vector<std::int32_t>& offsets, std::int64_t end) {
    const SvmlightRows<std::int32_t> rows{labels, {}, {offsets, columns, values, 3}, 1};
    const GrowingArray<char> text = format_svmlight(rows, 0, end);
    return std::string(text.span().begin(), text.span().end());
  };
  CHECK(format(valid, 2) == "1 1:1\n2 3:3\n");
  CHECK_THROWS(format(beyond_the_end, 2), std::invalid_argument);
  CHECK_THROWS(format(descending, 2), std::invalid_argument);
  CHECK_THROWS(format(valid, 3), std::out_of_range);
}

}  // namespace

int main() {
  test_decimals_are_correctly_rounded();
  test_invalid_decimals_are_refused();
  test_nearest_double_agrees_with_strtod();
  test_extreme_exponents();
  test_wide_indices_are_kept();
  test_the_first_bad_line_is_reported();
  test_a_long_line_in_small_blocks();
  test_reading_continues_after_a_part_is_taken();
  test_calls_in_the_wrong_order_are_refused();
  test_format_refuses_invalid_offsets();
  return 0;
}
