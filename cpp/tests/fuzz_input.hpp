// The bytes that a fuzz target was given, as text, and a seed of chance that hangs on nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "unkernel/base/random.hpp"

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : bytes_(data, data + size) {}

  std::string_view text() const { return {bytes_.data(), bytes_.size()}; }

  std::uint64_t hash() const {
    std::uint64_t hash = bytes_.size();
    for (const char c : bytes_) hash = unkernel::Random::mix(hash + static_cast<unsigned char>(c));
    return hash;
  }

 private:
  // A copy of exactly this size lets the sanitizers see a read beyond the end.
  std::vector<char> bytes_;
};
