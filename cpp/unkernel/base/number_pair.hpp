// Sums of two doubles that are not added up: about 106 bits, so that a function computed with them is rounded
// only once, at the end. The algorithms are Dekker's (1971) and Knuth's. They need correctly rounded
// operations, none of them fused, which is how every file is compiled.
#pragma once

namespace unkernel::accurate {

struct NumberPair {
  double high, low;  // low is at most about half a unit in the last place of high
};

// Returns a + b exactly, for |a| >= |b| or a = 0.
inline NumberPair sum_ordered(double a, double b) {
  const double high = a + b;
  return {high, b - (high - a)};
}

// Returns a + b exactly.
inline NumberPair sum(double a, double b) {
  const double high = a + b;
  const double part = high - a;
  return {high, (a - (high - part)) + (b - part)};
}

// Returns a * b exactly, if neither the product of the halves overflows (|a|, |b| < 2^500) nor the result is
// close to the least positive number.
inline NumberPair product(double a, double b) {
  constexpr double splitter = 0x1p27 + 1.0;
  const double a_scaled = splitter * a, b_scaled = splitter * b;
  const double a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
  const double a_low = a - a_high, b_low = b - b_high;
  const double high = a * b;
  return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

inline NumberPair operator+(NumberPair a, NumberPair b) {
  const NumberPair high = sum(a.high, b.high);
  return sum_ordered(high.high, high.low + (a.low + b.low));
}

inline NumberPair operator*(NumberPair a, NumberPair b) {
  const NumberPair high = product(a.high, b.high);
  return sum_ordered(high.high, high.low + (a.high * b.low + a.low * b.high));
}

inline NumberPair operator/(NumberPair a, NumberPair b) {
  const double quotient = a.high / b.high;
  const NumberPair back = product(quotient, b.high);
  const double rest = ((a.high - back.high) - back.low) + (a.low - quotient * b.low);
  return sum_ordered(quotient, rest / b.high);
}

inline NumberPair operator-(NumberPair a) { return {-a.high, -a.low}; }

inline double round_to_double(NumberPair a) { return a.high + a.low; }

}  // namespace unkernel::accurate
