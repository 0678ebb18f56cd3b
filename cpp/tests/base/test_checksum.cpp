// The expected values come from the xxhash package for Python.
#include "unkernel/base/checksum.hpp"

#include <string_view>
#include <vector>

#include "check.hpp"

namespace {

std::uint64_t checksum_of(std::string_view text) {
  const std::vector<unsigned char> bytes(text.begin(), text.end());
  return unkernel::checksum(bytes);
}

void test_checksums_equal_those_of_xxhash() {
  CHECK(checksum_of("") == 0xef46db3751d8e999);
  CHECK(checksum_of("a") == 0xd24ec4f1a98c6e5b);
  CHECK(checksum_of("abc") == 0x44bc2cf5ad770999);
  CHECK(checksum_of("Nobody inspects the spammish repetition") == 0xfbcea83c8a378bf1);
}

}  // namespace

int main() {
  test_checksums_equal_those_of_xxhash();
  return 0;
}
