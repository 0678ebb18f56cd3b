// Counts the conjunctions in tables, and lists the heaviest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "unkernel/engines/conjunctions/conjunction_tables.hpp"

namespace unkernel::engines {

struct HeaviestConjunctions {
  std::array<std::uint64_t, most_degree + 1> counts = {};  // conjunctions with a weight, by size
  std::vector<std::int64_t> columns;                       // listed x most_degree, ascending, then -1
  std::vector<double> weights;                             // listed x scores
};

// Returns the `top` conjunctions with the largest absolute weights, the largest first. Conjunctions of rare
// features are neither listed nor counted, because tables do not store them. The caller must have checked the
// tables.
HeaviestConjunctions list_heaviest(const ConjunctionTables& tables, std::size_t top);

}  // namespace unkernel::engines
