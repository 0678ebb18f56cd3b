// Names are numbered by their first appearance, and no choice of names makes a table slow.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/text/name_table.hpp"

namespace {

using unkernel::Random;
using unkernel::data::NameTable;

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;
constexpr std::size_t count = 20'000;
// Random names need fewer than 200 probes.
constexpr std::size_t max_probe = 1000;

// Returns the multiplicative inverse of an odd number modulo 2^64, by Newton's method.
std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t result = odd;
  for (int k = 0; k < 6; ++k) result *= 2 - odd * result;
  return result;
}

std::string bytes_of(std::uint64_t word) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &word, 8);
  return bytes;
}

void check_numbers(const std::vector<std::string>& names) {
  NameTable table;
  for (std::size_t k = 0; k < names.size(); ++k) CHECK(table.add(names[k]) == static_cast<std::int32_t>(k));
  CHECK(table.size() == names.size());
  CHECK(table.longest_probe() < max_probe);
  for (std::size_t k = 0; k < names.size(); ++k) CHECK(table.find(names[k]) == static_cast<std::int32_t>(k));
}

// Words whose products with the golden ratio have the same middle bits.
void test_short_names_that_would_collide_without_a_seed() {
  std::vector<std::string> names;
  for (std::uint64_t k = 0; k < count; ++k)
    names.push_back(bytes_of((((k & 0xfff) << 52) | k) * inverse(golden)));
  check_numbers(names);
}

// Names that differ only in their last bytes, or only in their first bytes.
void test_names_that_differ_in_few_bytes() {
  std::vector<std::string> last, first;
  for (std::uint64_t k = 0; k < count; ++k) {
    last.push_back(bytes_of(k << 48));
    first.push_back(bytes_of(k));
  }
  check_numbers(last);
  check_numbers(first);
}

// Names of sixteen bytes: for an unseeded hash, the second half cancels the effect of the first.
void test_long_names_that_would_collide_without_a_seed() {
  std::vector<std::string> names;
  for (std::uint64_t k = 0; k < count; ++k)
    names.push_back(bytes_of(k) + bytes_of(12345 ^ (Random::mix(16 ^ k) + golden)));
  check_numbers(names);
}

}  // namespace

int main() {
  test_short_names_that_would_collide_without_a_seed();
  test_names_that_differ_in_few_bytes();
  test_long_names_that_would_collide_without_a_seed();
  return 0;
}
