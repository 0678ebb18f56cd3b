// Sums the weights of all conjunctions of a row that has been loaded into the scratch.
//
// Each function has a version for each common number of scores, and a general version; an engine selects its
// versions once.
#pragma once

#include <cstddef>

#include "unkernel/engines/conjunctions/scoring_zones.hpp"

namespace unkernel::engines {

// A prefix of a row whose conjunctions have already been summed.
struct SummedBeginning {
  std::size_t length = 0;        // ranks
  const double* sums = nullptr;  // one per score; null if there is no stored prefix
};

// Adds the scores of a row of ones to `out`: the sums of its prefix, and the weights of all conjunctions
// whose owner (largest rank) comes after the prefix.
using ScoreOnes = void (*)(const ScoringZones&, const SummedBeginning&, ConjunctionScratch&, double* out);
ScoreOnes score_ones_for(std::size_t scores);

// Adds the scores of a row with arbitrary values to `out`.
using ScoreValued = void (*)(const ScoringZones&, ConjunctionScratch&, double* out);
ScoreValued score_valued_for(std::size_t scores);

}  // namespace unkernel::engines
