// The input of a fuzz target as text, and a random seed that depends on the input only.
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
  // A copy of exactly this size lets the sanitizers detect reads beyond the end.
  std::vector<char> bytes_;
};
