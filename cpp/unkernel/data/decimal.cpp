#include "unkernel/data/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <version>

#if !defined(__cpp_lib_to_chars)
#include <locale>
#include <sstream>
#include <string>
#endif

namespace unkernel::data {
namespace {

// Tells overflow from underflow, for which from_chars reports the same error. A nonzero number is written as
// 0.d1d2d3... times ten to the power `magnitude`, with d1 > 0.
bool is_large(const char* begin, const char* end) {
  std::int64_t magnitude = 0;
  bool in_fraction = false;
  bool significant = false;
  const char* at = begin;
  for (; at < end && (is_digit(*at) || *at == '.'); ++at) {
    if (*at == '.') {
      in_fraction = true;
      continue;
    }
    significant = significant || *at != '0';
    if (significant && !in_fraction) ++magnitude;
    if (!significant && in_fraction) --magnitude;
  }
  std::int64_t exponent = 0;
  if (at < end) (void)read_exponent(at, exponent);
  return significant && magnitude + exponent > 0;
}

}  // namespace

const char* read_exponent(const char* at, std::int64_t& exponent) {
  ++at;
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  if (!is_digit(*at)) return nullptr;
  // This bound leaves room for the digits of any text that fits into memory.
  constexpr std::int64_t bound = std::int64_t{1} << 60;
  std::int64_t size = 0;
  for (; is_digit(*at); ++at) size = std::min(size * 10 + (*at - '0'), bound / 10);
  exponent = negative ? -size : size;
  return at;
}

double nearest_double(const char* begin, const char* end) {
  double value = 0;
#if defined(__cpp_lib_to_chars)
  if (std::from_chars(begin, end, value).ec == std::errc()) return value;
#else
  // Slower than from_chars, but correctly rounded too.
  std::istringstream text(std::string(begin, end));
  text.imbue(std::locale::classic());
  if (text >> value) return value;
#endif
  return is_large(begin, end) ? std::numeric_limits<double>::infinity() : 0.0;
}

}  // namespace unkernel::data
