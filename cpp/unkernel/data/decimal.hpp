// Reads decimal numbers from text, correctly rounded. Short numbers take a few cycles.
//
// All functions stop at the first byte that cannot be part of a number. So the text must contain such a byte,
// such as the newline of a line, before its `end`. `end` only limits where eight bytes may be loaded at once.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace unkernel::data {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Returns the double nearest to the unsigned decimal number in [begin, end), which must be valid. Returns
// infinity on overflow, and zero on underflow.
double nearest_double(const char* begin, const char* end);

// Does the same without std::from_chars for double, which some standard libraries lack. Takes about four
// times as long as nearest_double.
double nearest_double_by_strtod(const char* begin, const char* end);

// Reads a text that is a single finite decimal number. Returns false for any other text.
bool read_decimal(std::string_view text, double& value);

// Reads e or E, an optional sign and digits into `exponent`. Returns the end, or null if there are no digits.
// Clamps exponents that are far outside the range of a double.
const char* read_exponent(const char* at, std::int64_t& exponent);

// The value of a run of digits, modulo 2^64; exact up to 19 digits.
struct Digits {
  const char* at;  // the first byte that is not a digit
  std::uint64_t value;
};

namespace detail {

inline constexpr std::array<double, 23> powers_of_ten = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                         1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                         1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline constexpr std::array<std::uint64_t, 8> whole_powers_of_ten = {1,      10,      100,       1000,
                                                                     10'000, 100'000, 1'000'000, 10'000'000};

// Returns how many of eight bytes, lowest byte first, are leading digits. Digits are the bytes 0 to 9, not
// '0' to '9'. Adding 0x76 sets the top bit of bytes above 9; a carry only reaches later bytes.
inline unsigned leading_digits(std::uint64_t bytes) {
  const std::uint64_t above_nine = (bytes + 0x7676767676767676) | bytes;
  return static_cast<unsigned>(std::countr_zero(above_nine & 0x8080808080808080)) / 8;
}

// Returns the decimal number of eight digits 0 to 9, lowest byte first. Joins neighbouring digits to pairs,
// pairs to groups of four, and both groups to the number.
inline std::uint64_t join_digits(std::uint64_t bytes) {
  bytes = (bytes * 10 + (bytes >> 8)) & 0x00ff00ff00ff00ff;
  bytes = (bytes * 100 + (bytes >> 16)) & 0x0000ffff0000ffff;
  return (bytes * 10'000 + (bytes >> 32)) & 0xffffffff;
}

inline double scale(std::uint64_t mantissa, std::int64_t exponent) {
  const auto exact = static_cast<double>(mantissa);
  return exponent < 0 ? exact / powers_of_ten[static_cast<std::size_t>(-exponent)]
                      : exact * powers_of_ten[static_cast<std::size_t>(exponent)];
}

}  // namespace detail

// Reads digits, and appends them to the digits of `value`. Reads up to seven digits without a branch on their
// number, which the processor could not predict.
inline Digits read_digits(const char* at, const char* end, std::uint64_t value = 0) {
  if constexpr (std::endian::native == std::endian::little) {
    if (end - at >= 8) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, at, 8);
      bytes ^= 0x3030303030303030;  // '0' to '9' become 0 to 9; all other bytes become larger
      const unsigned count = detail::leading_digits(bytes);
      if (count == 0) return {at, value};
      if (count < 8) {
        const std::uint64_t joined = detail::join_digits(bytes << (64 - 8 * count));
        return {at + count, value * detail::whole_powers_of_ten[count] + joined};
      }
    }
  }
  while (is_digit(*at)) value = value * 10 + static_cast<std::uint64_t>(*at++ - '0');
  return {at, value};
}

// Reads [+-] digits [. digits] [e [+-] digits], with at least one digit before or after the point. Returns
// the first byte after the number, or null if there is no number or it overflows.
//
// A mantissa up to 2^53 and a power of ten up to 22 are exact doubles, so a single multiplication or division
// rounds only once (Clinger 1990). All other numbers are passed to nearest_double.
inline const char* read_long_decimal(const char* at, const char* text_end, double& value) {
  const bool is_negative = *at == '-';
  if (is_negative || *at == '+') ++at;
  const char* const begin = at;
  Digits digits = read_digits(at, text_end);
  std::int64_t count = digits.at - begin;
  std::int64_t exponent = 0;
  if (*digits.at == '.') {
    const char* const fraction = digits.at + 1;
    digits = read_digits(fraction, text_end, digits.value);
    exponent = fraction - digits.at;
    count -= exponent;
  }
  if (count == 0) return nullptr;
  const char* end = digits.at;
  if (*end == 'e' || *end == 'E') {
    std::int64_t text_exponent = 0;
    end = read_exponent(end, text_exponent);
    if (end == nullptr) return nullptr;
    exponent += text_exponent;
  }
  double magnitude = 0;
  if (count <= 19 && digits.value <= (std::uint64_t{1} << 53) && exponent >= -22 && exponent <= 22) {
    magnitude = detail::scale(digits.value, exponent);
  } else {
    magnitude = nearest_double(begin, end);
    if (!std::isfinite(magnitude)) return nullptr;
  }
  value = is_negative ? -magnitude : magnitude;
  return end;
}

// Reads a number as read_long_decimal does, with a fast path for one-digit numbers such as the 1 of binary
// features.
inline const char* read_decimal(const char* at, const char* text_end, double& value) {
  if (is_digit(*at) && (at[1] == ' ' || at[1] == '\n')) {
    value = static_cast<double>(*at - '0');
    return at + 1;
  }
  return read_long_decimal(at, text_end, value);
}

}  // namespace unkernel::data
