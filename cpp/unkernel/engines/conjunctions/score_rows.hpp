// Adds up the weights of all conjunctions of a row that was loaded into the scratch.
//
// There is a version for each of the usual numbers of scores, and one for any number; an engine chooses its
// versions once.
#pragma once

#include <cstddef>

#include "unkernel/engines/conjunctions/scoring_zones.hpp"

namespace unkernel::engines {

// The beginning of a row whose conjunctions are already summed up.
struct SummedBeginning {
  std::size_t length = 0;        // ranks
  const double* sums = nullptr;  // one per score; null: they are counted elsewhere
};

// Adds to `out` what a row of ones weighs: the sums of its beginning, and all conjunctions whose owner
// (largest rank) stands behind that beginning.
using ScoreOnes = void (*)(const ScoringZones&, const SummedBeginning&, ConjunctionScratch&, double* out);
ScoreOnes score_ones_for(std::size_t scores);

// Adds to `out` what a row of any values weighs.
using ScoreValued = void (*)(const ScoringZones&, ConjunctionScratch&, double* out);
ScoreValued score_valued_for(std::size_t scores);

}  // namespace unkernel::engines
