// Secret numbers for hash tables whose keys come from files that others wrote: names, trees, features.
//
// With a known hash function, an attacker could choose keys that all have the same slot, and filling a table
// would take quadratic time. The secret numbers differ from process to process, so no result may depend on
// them: nothing is numbered or summed in the order of slots.
#pragma once

#include <cstdint>

#include "unkernel/base/random.hpp"

namespace unkernel {

struct HashSeed {
  std::uint64_t word;        // combined with keys by exclusive or
  std::uint64_t multiplier;  // odd
};

extern const HashSeed hash_seed;

inline std::uint64_t seeded_hash(std::uint64_t key) { return Random::mix(key ^ hash_seed.word); }

}  // namespace unkernel
