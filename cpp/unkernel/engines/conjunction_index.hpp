// Numbers for conjunctions.
//
// Features are ranks 0, 1, 2 .. by descending frequency. A conjunction of at most `degree` of them,
// a >= b >= c, gets the number it has when all conjunctions are listed by their largest rank a,
// each a's block being: a alone; (a, b) by b; (a, b, c) by b, then c. Number 0 is the empty one,
// the constant. So the conjunctions of the most frequent features come first, and those that share
// their rarest feature stand together.
//
//   sets       a > b > c   for binary features, where x^2 = x        block(a) = 1 + a + C(a,2)
//   monomials  a >= b >= c for real features                         block(a) = 1 + (a+1) + C(a+2,2)
//
// The number is the address in a dense table and the key in a sparse one.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>

namespace unkernel::engines {

using Key = std::uint64_t;

enum class Basis { sets, monomials };

struct Conjunction {
  int size = 0;  // how many of the ranks count; 0 is the constant
  std::uint64_t ranks[3] = {0, 0, 0};
};

constexpr std::uint64_t choose2(std::uint64_t n) { return n % 2 == 0 ? n / 2 * (n - (n > 0)) : (n - 1) / 2 * n; }
constexpr std::uint64_t choose3(std::uint64_t n) {
  if (n < 3) return 0;
  const std::uint64_t pairs = choose2(n);
  return pairs % 3 == 0 ? pairs / 3 * (n - 2) : (n - 2) / 3 * pairs;
}

class ConjunctionIndex {
 public:
  ConjunctionIndex(int degree, Basis basis) : degree_(degree), basis_(basis) {
    if (degree < 1 || degree > 3) throw std::invalid_argument("degree must be 1, 2 or 3");
  }

  int degree() const { return degree_; }
  Basis basis() const { return basis_; }

  // The first number of rank a's block, which is also how many conjunctions the ranks below a form.
  Key block(std::uint64_t a) const {
    const std::uint64_t shift = basis_ == Basis::monomials ? 1 : 0;
    Key first = 1 + a;
    if (degree_ >= 2) first += choose2(a + shift);
    if (degree_ >= 3) first += choose3(a + 2 * shift);
    return first;
  }
  Key count(std::uint64_t features) const { return block(features); }

  // Inside a block: where the pairs begin is 1, where the triples begin is here.
  Key triples(std::uint64_t a) const { return 1 + a + (basis_ == Basis::monomials ? 1 : 0); }
  Key triangle(std::uint64_t b) const { return choose2(basis_ == Basis::monomials ? b + 1 : b); }

  // The most features whose conjunctions still have numbers of their own.
  std::uint64_t most_features() const {
    if (degree_ == 1) return std::numeric_limits<std::int32_t>::max();
    return degree_ == 2 ? std::uint64_t{2'000'000'000} : std::uint64_t{3'000'000};
  }

  Conjunction decode(Key key) const {
    if (key == 0) return {};
    const std::uint64_t a = largest([&](std::uint64_t rank) { return block(rank) <= key; });
    Key rest = key - block(a);
    if (rest == 0) return {1, {a, 0, 0}};
    if (rest < triples(a)) return {2, {a, rest - 1, 0}};
    rest -= triples(a);
    const std::uint64_t b = largest([&](std::uint64_t rank) { return triangle(rank) <= rest; });
    return {3, {a, b, rest - triangle(b)}};
  }

 private:
  // The largest rank for which a monotone predicate holds; it holds for 0. No numbered conjunction
  // lies beyond most_features(), and up to there nothing overflows.
  template <class Holds>
  std::uint64_t largest(const Holds& holds) const {
    std::uint64_t low = 0;
    std::uint64_t high = most_features() + 1;
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (holds(middle) ? low : high) = middle;
    }
    return low;
  }

  int degree_;
  Basis basis_;
};

}  // namespace unkernel::engines
