#include <cstdint>
#include <initializer_list>
#include <stdexcept>

#include "check.hpp"
#include "engines/brute_force.hpp"
#include "unkernel/kernels/conjunction_index.hpp"

namespace {

using brute_force::Ranks;
using unkernel::kernels::Basis;
using unkernel::kernels::choose2;
using unkernel::kernels::choose3;
using unkernel::kernels::choose4;
using unkernel::kernels::Conjunction;
using unkernel::kernels::ConjunctionIndex;
using unkernel::kernels::Key;

constexpr std::initializer_list<Basis> bases = {Basis::sets, Basis::monomials};

Key key_of(const ConjunctionIndex& index, const Ranks& ranks) {
  if (ranks.empty()) return 0;
  const Key block = index.block(ranks[0]);
  if (ranks.size() == 1) return block;
  if (ranks.size() == 2) return block + 1 + ranks[1];
  if (ranks.size() == 3) return block + index.triples(ranks[0]) + index.triangle(ranks[1]) + ranks[2];
  return block + index.quadruples(ranks[0]) + index.tetrahedron(ranks[1]) + index.triangle(ranks[2]) +
         ranks[3];
}

void check_decodes(const ConjunctionIndex& index, Key key, const Ranks& ranks,
                   const Conjunction& start = {}) {
  const Conjunction decoded = index.decode(key, start);
  CHECK(decoded.size == static_cast<int>(ranks.size()));
  for (std::size_t i = 0; i < 4; ++i) CHECK(decoded.ranks[i] == (i < ranks.size() ? ranks[i] : 0));
}

void test_numbers_equal_positions_in_the_list() {
  for (const Basis basis : bases) {
    for (int degree = 1; degree <= 4; ++degree) {
      const ConjunctionIndex index(degree, basis);
      CHECK(index.degree() == degree && index.basis() == basis);
      const auto list = brute_force::all_conjunctions(14, degree, basis);
      const brute_force::Numbering slow_number(14, degree, basis);
      for (Key key = 0; key < list.size(); ++key) {
        CHECK(key_of(index, list[key]) == key && slow_number(list[key]) == key);
        check_decodes(index, key, list[key]);
        for (Key smaller = 0; smaller <= key; smaller += 1 + (key - smaller) / 8) {
          check_decodes(index, key, list[key], index.decode(smaller));
        }
      }
      for (std::uint64_t features = 0; features <= 14; ++features) {
        CHECK(index.count(features) == brute_force::all_conjunctions(features, degree, basis).size());
      }
      CHECK(slow_number.count() == list.size());
    }
  }
}

void test_binomials() {
  for (std::uint64_t n = 0; n < 200; ++n) {
    CHECK(choose2(n) == (n < 2 ? 0 : n * (n - 1) / 2));
    CHECK(choose3(n) == (n < 3 ? 0 : n * (n - 1) * (n - 2) / 6));
    CHECK(choose4(n) == (n < 4 ? 0 : n * (n - 1) * (n - 2) * (n - 3) / 24));
  }
  CHECK(choose2(2'000'000'001) == 2'000'000'001'000'000'000);
  CHECK(choose2(std::uint64_t{1} << 32) == ((std::uint64_t{1} << 63) - (std::uint64_t{1} << 31)));
  // n = 0, 1 and 2 modulo 3: the code divides in different places
  CHECK(choose3(3'000'000) == 4'499'995'500'001'000'000);
  CHECK(choose3(3'000'001) == 4'499'999'999'999'500'000);
  CHECK(choose3(3'000'002) == 4'500'004'500'001'000'000);
  CHECK(choose4(140'000) == 16'005'980'675'649'965'000U);
  CHECK(choose4(140'001) == 16'006'437'999'183'345'000U);
  CHECK(choose4(140'002) == 16'006'895'332'516'655'000U);
  CHECK(choose4(140'003) == 16'007'352'675'650'035'000U);
}

// An overflow would make the numbers of the last features wrong.
void test_the_largest_numbers_do_not_overflow() {
  for (const Basis basis : bases) {
    for (int degree = 1; degree <= 4; ++degree) {
      const ConjunctionIndex index(degree, basis);
      const std::uint64_t last = index.most_features() - 1;
      CHECK(index.block(last) < index.block(last + 1));
      CHECK(index.block(last + 1) - index.block(last) >= (degree == 1 ? 1 : last));
      Ranks ranks{last};
      check_decodes(index, key_of(index, ranks), ranks);
      for (int size = 2; size <= degree; ++size) {
        ranks.push_back(basis == Basis::sets ? ranks.back() - 1 : ranks.back());
        check_decodes(index, key_of(index, ranks), ranks);
      }
      CHECK(key_of(index, ranks) == index.count(index.most_features()) - 1);
      for (std::size_t i = 1; i < ranks.size(); ++i)
        ranks[i] = basis == Basis::sets ? ranks.size() - 1 - i : 0;
      check_decodes(index, key_of(index, ranks), ranks);
    }
  }
}

void test_other_degrees_are_refused() {
  for (const int degree : {-1, 0, 5})
    CHECK_THROWS(ConjunctionIndex(degree, Basis::sets), std::invalid_argument);
}

}  // namespace

int main() {
  test_numbers_equal_positions_in_the_list();
  test_binomials();
  test_the_largest_numbers_do_not_overflow();
  test_other_degrees_are_refused();
  return 0;
}
