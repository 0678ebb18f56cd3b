#include "unkernel/base/hash_seed.hpp"

#include <chrono>
#include <exception>
#include <random>

namespace unkernel {
namespace {

std::uint64_t random_word() {
  try {
    std::random_device device;
    return std::uint64_t{device()} << 32 ^ device();
  } catch (const std::exception&) {
    // The system has no source of random numbers. The clock and an address are harder to guess than a
    // constant.
    static const char here = 0;
    const auto now = std::chrono::high_resolution_clock::now().time_since_epoch().count();
    return Random::mix(static_cast<std::uint64_t>(now)) ^ reinterpret_cast<std::uintptr_t>(&here);
  }
}

}  // namespace

const HashSeed hash_seed{random_word(), random_word() | 1};

}  // namespace unkernel
