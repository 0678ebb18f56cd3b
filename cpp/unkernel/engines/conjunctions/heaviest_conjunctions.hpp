// What is in tables of conjunctions: how many there are, and which weigh most.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "unkernel/engines/conjunctions/conjunction_tables.hpp"

namespace unkernel::engines {

struct HeaviestConjunctions {
  std::array<std::uint64_t, most_degree + 1> counts = {};  // of conjunctions that have a weight, by size
  std::vector<std::int64_t> columns;                       // listed x most_degree, ascending, then -1
  std::vector<double> weights;                             // listed x scores
};

// The `top` conjunctions with the largest weights in size, the largest first. Those of rare features are not
// in tables, and so neither listed nor counted. Tables must have been checked.
HeaviestConjunctions list_heaviest(const ConjunctionTables& tables, std::size_t top);

}  // namespace unkernel::engines
