#include "unkernel/base/exponential.hpp"

#include <bit>
#include <cstdint>

#include "unkernel/base/cpu.hpp"

namespace unkernel {
namespace {

// exp(x) = 2^n exp(r), where n = round(x / ln 2), so |r| <= ln 2 / 2 and exp(r) is a polynomial: 1 + r + r^2
// q(r), where q of degree 9 interpolates at Chebyshev nodes. Its relative error is below 1.7e-17. No
// branches, so that compilers turn a loop around this into vector instructions.
[[gnu::always_inline]] inline double exponential(double x) {  // for x from -746 to 0
  constexpr double per_ln2 = 0x1.71547652b82fep+0;
  constexpr double ln2_high = 0x1.62e42feep-1;  // 32 bits, so that its products with n are exact
  constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  // Adding this number rounds x / ln 2 to a whole number, in the lowest bits.
  constexpr double shift = 0x1.8p52;
  const double shifted = x * per_ln2 + shift;
  const double n = shifted - shift;
  const double r = (x - n * ln2_high) - n * ln2_low;
  const double r2 = r * r, r4 = r2 * r2;
  // Evaluates pairs of terms, which shortens the chain of dependent operations.
  const double q01 = 0x1.0000000000001p-1 + r * 0x1.5555555555556p-3;
  const double q23 = 0x1.5555555553d2bp-5 + r * 0x1.11111111109a2p-7;
  const double q45 = 0x1.6c16c178a1c52p-10 + r * 0x1.a01a01a7d199fp-13;
  const double q67 = 0x1.a019b8b81b0c6p-16 + r * 0x1.71de0d7a0eff8p-19;
  const double q89 = 0x1.2891ea6a4df31p-22 + r * 0x1.af392601c07c8p-26;
  const double q = (q01 + r2 * q23) + r4 * ((q45 + r2 * q67) + r4 * q89);
  const double mantissa = 1.0 + (r + r2 * q);
  // 2^(n + 128) is a normal number; the last factor rounds the result once if it is denormal.
  const std::uint64_t power =
      (std::bit_cast<std::uint64_t>(shifted) << 52) + (std::uint64_t{1023 + 128} << 52);
  return mantissa * std::bit_cast<double>(power) * 0x1p-128;
}

UNKERNEL_CLONES void scale_and_exponentiate(double factor, double* values, std::size_t count) {
  constexpr double least = -746.0;  // its exp rounds to 0
  // A separate loop: in the loop below, GCC would make a branch of this.
  for (std::size_t k = 0; k < count; ++k) {
    const double x = factor * values[k];
    values[k] = x < least ? least : x;
  }
  for (std::size_t k = 0; k < count; ++k) values[k] = exponential(values[k]);
}

}  // namespace

void exponentials(double factor, double* values, std::size_t count) {
  scale_and_exponentiate(factor, values, count);
}

}  // namespace unkernel
