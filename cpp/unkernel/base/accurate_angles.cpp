#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "unkernel/base/accurate_functions.hpp"
#include "unkernel/base/number_pair.hpp"

// sin and cos: x = n pi / 2 + r with |r| <= pi / 4, where r has 100 bits.

namespace unkernel::accurate {
namespace {

constexpr NumberPair half_pi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

struct Angle {
  NumberPair rest;
  unsigned quadrant;  // n modulo 4
};

// Reduces 0 <= x < 2^20: the first three parts of pi / 2 have 31 bits, so their products with n are exact.
Angle reduce_by_parts(double x) {
  constexpr double per_half_pi = 0x1.45f306dc9c883p-1;
  const double n = std::floor(x * per_half_pi + 0.5);
  const NumberPair first = sum(x - n * 0x1.921fb544p+0, -n * 0x1.0b4611a4p-34);
  const NumberPair second = sum(-n * 0x1.13198a2cp-65, -n * 0x1.01b839a25204ap-96);
  return {first + second, static_cast<unsigned>(n) % 4};
}

// Reduces any larger number (Payne and Hanek, 1983). x = m 2^e with a whole number m of 53 bits. Of the bits
// of 2 / pi, those that make multiples of 4 in m 2^e (2 / pi) are skipped, and the next 192 are multiplied by
// m, modulo 2^192: the first two bits are n modulo 4, the others the fraction.
Angle reduce_by_bits(double x) {
  constexpr std::size_t window_words = 6;
  constexpr std::array<std::uint32_t, 40> two_per_pi{
      0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u,
      0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u,
      0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu,
      0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu,
      0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du};
  int exponent = 0;
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(x, &exponent), 53));
  exponent -= 53;
  // Bit j of 2 / pi (from 1) has the weight 2^(exponent - j): those up to exponent - 2 are skipped. Zeros
  // come before the first bit, because the exponent may be negative.
  constexpr int leading_zeros = 64;
  const int skipped = exponent - 2 + leading_zeros;
  const auto word = static_cast<std::size_t>(skipped / 32);
  const int shift = skipped % 32;
  const auto word_at = [&](std::size_t k) { return k < 2 ? 0u : two_per_pi[k - 2]; };
  std::array<std::uint32_t, window_words> product{};  // the last word has the lowest bits
  std::uint64_t carry = 0;
  const std::uint64_t low_half = mantissa & 0xffffffffu, high_half = mantissa >> 32;
  std::uint64_t before = 0;  // the word of the window below the current one
  for (std::size_t k = window_words; k-- > 0;) {
    const std::uint64_t both = (static_cast<std::uint64_t>(word_at(word + k)) << 32) | word_at(word + k + 1);
    const std::uint64_t bits = (both >> (32 - shift)) & 0xffffffffu;
    const std::uint64_t low = bits * low_half, high = before * high_half;
    const std::uint64_t total = (low & 0xffffffffu) + (high & 0xffffffffu) + carry;
    product[k] = static_cast<std::uint32_t>(total);
    carry = (total >> 32) + (low >> 32) + (high >> 32);
    before = bits;
  }
  auto quadrant = static_cast<unsigned>(product[0] >> 30);
  const bool is_above_half = (product[0] >> 29 & 1) != 0;
  product[0] &= 0x3fffffffu;
  NumberPair fraction{is_above_half ? -1.0 : 0.0, 0.0};
  double weight = 0x1p-30;
  for (const std::uint32_t bits : product) {
    fraction = fraction + NumberPair{bits * weight, 0.0};
    weight *= 0x1p-32;
  }
  return {fraction * half_pi, (quadrant + (is_above_half ? 1u : 0u)) % 4};
}

Angle reduce_angle(double x) { return x < 0x1p20 ? reduce_by_parts(x) : reduce_by_bits(x); }

constexpr std::size_t last_angle_factorial = 20;  // (pi / 4)^19 / 21! is below 2^-72

constexpr auto angle_factorials = [] {
  std::array<double, last_angle_factorial + 1> result{};
  double factorial = 1.0;  // exact up to 22!
  for (std::size_t k = 0; k <= last_angle_factorial; ++k) {
    result[k] = 1.0 / factorial;
    factorial *= static_cast<double>(k + 1);
  }
  return result;
}();

// Returns 1 / first! - square / (first + 2)! + square^2 / (first + 4)! - ...
double alternating_series(double square, std::size_t first) {
  double series = 0.0;
  for (std::size_t k = last_angle_factorial - (last_angle_factorial - first) % 2; k >= first; k -= 2)
    series = angle_factorials[k] - square * series;
  return series;
}

double sine_of(NumberPair r) {
  const double square = r.high * r.high;
  const double tail = -r.high * square * alternating_series(square, 3);
  const NumberPair high = sum_ordered(r.high, tail);
  return high.high + (high.low + r.low * (1.0 - 0.5 * square));
}

double cosine_of(NumberPair r) {
  const double square = r.high * r.high;
  const NumberPair half_square = product(0.5 * r.high, r.high);
  const double tail = square * square * alternating_series(square, 4);
  const NumberPair high = sum_ordered(1.0, -half_square.high);
  return high.high + (high.low - half_square.low - r.high * r.low + tail);
}

double turn(const Angle& angle, unsigned quarters) {
  const unsigned quadrant = (angle.quadrant + quarters) % 4;
  const double size = quadrant % 2 == 0 ? sine_of(angle.rest) : cosine_of(angle.rest);
  return quadrant < 2 ? size : -size;
}

}  // namespace

double sin(double x) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  if (std::abs(x) < 0x1p-28) return x - x * (x * x / 6.0);
  const double sine = turn(reduce_angle(std::abs(x)), 0);
  return x < 0.0 ? -sine : sine;
}

double cos(double x) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  return turn(reduce_angle(std::abs(x)), 1);
}

}  // namespace unkernel::accurate
