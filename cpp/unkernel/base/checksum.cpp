#include "unkernel/base/checksum.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace unkernel {
namespace {

// The names and constants of the xxHash specification.
constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t prime3 = 0x165667B19E3779F9;
constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5;
constexpr std::size_t stripe = 32;

template <class Number>
std::uint64_t load(const unsigned char* from) {
  static_assert(std::endian::native == std::endian::little,
                "numbers are read in the byte order of the machine");
  Number number;
  std::memcpy(&number, from, sizeof(number));
  return number;
}

std::uint64_t round(std::uint64_t sum, std::uint64_t lane) {
  return std::rotl(sum + lane * prime2, 31) * prime1;
}

std::uint64_t merge(std::uint64_t sum, std::uint64_t lane) {
  return (sum ^ round(0, lane)) * prime1 + prime4;
}

// Consumes whole stripes from the front of `bytes`.
std::uint64_t sum_stripes(std::span<const unsigned char>& bytes) {
  std::uint64_t s0 = prime1 + prime2, s1 = prime2, s2 = 0, s3 = 0 - prime1;
  while (bytes.size() >= stripe) {
    s0 = round(s0, load<std::uint64_t>(bytes.data()));
    s1 = round(s1, load<std::uint64_t>(bytes.data() + 8));
    s2 = round(s2, load<std::uint64_t>(bytes.data() + 16));
    s3 = round(s3, load<std::uint64_t>(bytes.data() + 24));
    bytes = bytes.subspan(stripe);
  }
  const std::uint64_t sum = std::rotl(s0, 1) + std::rotl(s1, 7) + std::rotl(s2, 12) + std::rotl(s3, 18);
  return merge(merge(merge(merge(sum, s0), s1), s2), s3);
}

std::uint64_t add_rest(std::uint64_t sum, std::span<const unsigned char> bytes) {
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    sum = std::rotl(sum ^ round(0, load<std::uint64_t>(bytes.data())), 27) * prime1 + prime4;
  }
  if (bytes.size() >= 4) {
    sum = std::rotl(sum ^ (load<std::uint32_t>(bytes.data()) * prime1), 23) * prime2 + prime3;
    bytes = bytes.subspan(4);
  }
  for (const unsigned char byte : bytes) sum = std::rotl(sum ^ (byte * prime5), 11) * prime1;
  return sum;
}

}  // namespace

std::uint64_t checksum(std::span<const unsigned char> bytes) {
  const std::uint64_t length = bytes.size();
  std::uint64_t sum = length >= stripe ? sum_stripes(bytes) : prime5;
  sum = add_rest(sum + length, bytes);
  sum = (sum ^ (sum >> 33)) * prime2;
  sum = (sum ^ (sum >> 29)) * prime3;
  return sum ^ (sum >> 32);
}

}  // namespace unkernel
