// Numbers conjunctions of features.
//
// Features are ranks 0, 1, 2, .. by descending frequency. The list of all conjunctions of at most `degree`
// features a >= b >= c >= e is ordered by their largest rank a. The block of a contains a alone, then (a, b)
// by b, then (a, b, c) by b and c, then (a, b, c, e) by b, c and e. The number of a conjunction is its
// position in this list. Number 0 is the empty conjunction, the constant. So conjunctions of the most
// frequent features come first, and conjunctions with the same rarest feature are neighbours.
//
//   sets       a > b > c > e     for binary features, where x^2 = x:  block(a) = 1 + a + C(a,2) + C(a,3)
//   monomials  a >= b >= c >= e  for real features:  block(a) = 1 + (a+1) + C(a+2,2) + C(a+3,3)
//
// block(a) is the first number of a block, here for degree 3. Dense tables use the number as an index, sparse
// tables as a key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace unkernel::kernels {

using Key = std::uint64_t;

enum class Basis { sets, monomials };

// Returns the basis for features that are all 0 or 1, or for features with any values.
constexpr Basis basis_of(bool binary) { return binary ? Basis::sets : Basis::monomials; }

struct Conjunction {
  int size = 0;  // number of ranks used; 0 for the constant
  std::uint64_t ranks[4] = {0, 0, 0, 0};
};

// Return binomial coefficients. They divide before they multiply, so that fewer products overflow.
constexpr std::uint64_t choose2(std::uint64_t n) {
  return n % 2 == 0 ? n / 2 * (n - (n > 0)) : (n - 1) / 2 * n;
}
constexpr std::uint64_t choose3(std::uint64_t n) {
  if (n < 3) return 0;
  const std::uint64_t pairs = choose2(n);
  return pairs % 3 == 0 ? pairs / 3 * (n - 2) : (n - 2) / 3 * pairs;
}
// Returns C(n, 4). n must be at most 200,000, so that the product does not overflow.
constexpr std::uint64_t choose4(std::uint64_t n) {
  if (n < 4) return 0;
  const std::uint64_t triples = choose3(n);
  return triples / 4 * (n - 3) + triples % 4 * (n - 3) / 4;
}

class ConjunctionIndex {
 public:
  ConjunctionIndex(int degree, Basis basis) : degree_(degree), basis_(basis) {
    if (degree < 1 || degree > 4) throw std::invalid_argument("degree must be 1, 2, 3 or 4");
  }

  int degree() const { return degree_; }
  Basis basis() const { return basis_; }

  // Returns the first number of the block of rank a: the number of conjunctions of smaller ranks.
  Key block(std::uint64_t a) const {
    const std::uint64_t shift = basis_ == Basis::monomials ? 1 : 0;
    Key first = 1 + a;
    if (degree_ >= 2) first += choose2(a + shift);
    if (degree_ >= 3) first += choose3(a + 2 * shift);
    if (degree_ >= 4) first += choose4(a + 3 * shift);
    return first;
  }
  Key count(std::uint64_t features) const { return block(features); }

  // Return offsets within the block of a. Pairs begin at 1, triples and quadruples at these offsets.
  Key triples(std::uint64_t a) const { return 1 + a + (basis_ == Basis::monomials ? 1 : 0); }
  Key quadruples(std::uint64_t a) const {
    return triples(a) + choose2(basis_ == Basis::monomials ? a + 2 : a);
  }
  // Return the offset of the conjunctions with second rank b, counted from the first triple or the first
  // quadruple. The third rank of a quadruple also has the offset triangle().
  Key triangle(std::uint64_t b) const { return choose2(basis_ == Basis::monomials ? b + 1 : b); }
  Key tetrahedron(std::uint64_t b) const { return choose3(basis_ == Basis::monomials ? b + 2 : b); }

  // Returns the largest number of features of which all conjunctions have 64-bit numbers.
  std::uint64_t most_features() const {
    if (degree_ == 1) return std::numeric_limits<std::int32_t>::max();
    if (degree_ == 2) return 2'000'000'000;
    return degree_ == 3 ? 3'000'000 : 140'000;
  }

  // Returns the conjunction with this number. `previous` is the conjunction of a smaller number, from which
  // the search starts, so that decoding ascending numbers takes a few steps each.
  Conjunction decode(Key key, const Conjunction& previous = {}) const {
    if (key == 0) return {};
    const std::uint64_t a =
        find_largest([&](std::uint64_t rank) { return block(rank) <= key; }, previous.ranks[0]);
    const bool has_same_largest = a == previous.ranks[0];
    Key offset = key - block(a);
    if (offset == 0) return {1, {a, 0, 0, 0}};
    if (offset < triples(a)) return {2, {a, offset - 1, 0, 0}};
    if (degree_ == 3 || offset < quadruples(a)) {
      offset -= triples(a);
      const std::uint64_t b = find_largest([&](std::uint64_t rank) { return triangle(rank) <= offset; },
                                           has_same_largest && previous.size == 3 ? previous.ranks[1] : 0);
      return {3, {a, b, offset - triangle(b), 0}};
    }
    offset -= quadruples(a);
    const std::uint64_t b = find_largest([&](std::uint64_t rank) { return tetrahedron(rank) <= offset; },
                                         has_same_largest && previous.size == 4 ? previous.ranks[1] : 0);
    offset -= tetrahedron(b);
    const std::uint64_t c = find_largest([&](std::uint64_t rank) { return triangle(rank) <= offset; }, 0);
    return {4, {a, b, c, offset - triangle(c)}};
  }

 private:
  // Returns the largest rank for which a monotone predicate holds; it must hold for `low`. No rank exceeds
  // most_features(), so the predicate cannot overflow.
  template <class Holds>
  std::uint64_t find_largest(const Holds& holds, std::uint64_t low) const {
    const std::uint64_t end = most_features() + 1;
    std::uint64_t stride = 1;
    while (stride < end - low && holds(low + stride)) {
      low += stride;
      stride *= 2;
    }
    std::uint64_t high = std::min(low + stride, end);
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (holds(middle) ? low : high) = middle;
    }
    return low;
  }

  int degree_;
  Basis basis_;
};

}  // namespace unkernel::kernels
