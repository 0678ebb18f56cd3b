#include "unkernel/data/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <version>

namespace unkernel::data {

const char* read_exponent(const char* at, std::int64_t& exponent) {
  ++at;
  const bool is_negative = *at == '-';
  if (is_negative || *at == '+') ++at;
  if (!is_digit(*at)) return nullptr;
  // Large enough for the exponent of any text that fits into memory, and so small that sums do not overflow.
  constexpr std::int64_t bound = std::int64_t{1} << 60;
  std::int64_t size = 0;
  for (; is_digit(*at); ++at) size = std::min(size * 10 + (*at - '0'), bound / 10);
  exponent = is_negative ? -size : size;
  return at;
}

double nearest_double(const char* begin, const char* end) {
#if defined(__cpp_lib_to_chars)
  double value = 0;
  if (std::from_chars(begin, end, value).ec == std::errc()) return value;
#endif
  return nearest_double_by_strtod(begin, end);  // distinguishes overflow from underflow
}

// strtod rounds correctly, but its decimal point depends on the locale of the process. So it is given digits
// without a point, and a corrected exponent: 12.5e3 becomes 125e2.
double nearest_double_by_strtod(const char* begin, const char* end) {
  std::string digits;
  std::int64_t exponent = 0;
  bool in_fraction = false;
  const char* at = begin;
  for (; at < end && (is_digit(*at) || *at == '.'); ++at) {
    if (*at == '.') {
      in_fraction = true;
    } else {
      digits += *at;
      exponent -= in_fraction ? 1 : 0;
    }
  }
  if (at < end) {
    std::int64_t text_exponent = 0;
    (void)read_exponent(at, text_exponent);
    exponent += text_exponent;
  }
  return std::strtod((digits + 'e' + std::to_string(exponent)).c_str(), nullptr);
}

bool read_decimal(std::string_view text, double& value) {
  const std::string terminated(text);  // ends in a null byte, which cannot be part of a number
  const char* const end = terminated.data() + terminated.size();
  return read_long_decimal(terminated.data(), end, value) == end;
}

}  // namespace unkernel::data
