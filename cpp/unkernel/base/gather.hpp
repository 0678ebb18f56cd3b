// Sums over gathered table entries: the innermost loops of most solvers and engines.
#pragma once

#include <cstddef>

namespace unkernel {

// Returns term(0) + .. + term(count - 1). Uses four accumulators, so that additions do not wait for each
// other.
template <class Term>
[[gnu::always_inline]] inline double sum_of_terms(std::size_t count, const Term& term) {
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    s0 += term(k);
    s1 += term(k + 1);
    s2 += term(k + 2);
    s3 += term(k + 3);
  }
  for (; k < count; ++k) s0 += term(k);
  return (s0 + s1) + (s2 + s3);
}

// Returns the sum of table[ids[k]] over k, each times x[k] unless Binary.
template <bool Binary, class Id>
[[gnu::always_inline]] inline double gather(const double* table, const Id* ids,
                                            [[maybe_unused]] const double* x, std::size_t count) {
  return sum_of_terms(count, [&](std::size_t k) {
    if constexpr (Binary) {
      return table[ids[k]];
    } else {
      return table[ids[k]] * x[k];
    }
  });
}

// Adds step, times x[k] unless Binary, to each table[ids[k]].
template <bool Binary, class Id>
inline void scatter(double* table, const Id* ids, [[maybe_unused]] const double* x, std::size_t count,
                    double step) {
  for (std::size_t k = 0; k < count; ++k) {
    if constexpr (Binary) {
      table[ids[k]] += step;
    } else {
      table[ids[k]] += step * x[k];
    }
  }
}

}  // namespace unkernel
