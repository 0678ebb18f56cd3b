// Sassano's linear-time parser of Japanese dependencies (COLING 2004).
//
// A bunsetsu depends on one to its right, and dependencies do not cross. So, from left to right, each
// bunsetsu is a candidate for those on a stack of bunsetsu that still look for their head: while the top
// depends on it, the top is taken off; then it is put on the stack itself. Of n bunsetsu, at most 2n
// decisions are made. What is left on the stack depends on the last bunsetsu, about which nothing is asked:
// every tree is well-formed, whatever the decisions are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/data/text/bunsetsu_text.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/parsing/bunsetsu/features.hpp"
#include "unkernel/parsing/features/feature_rows.hpp"

namespace unkernel::parsing {

// depends(i, j) is asked whether i depends on j, and attach(i, j) is told each dependency; begin(j) comes
// before the first question about j. The stack is the caller's, for its memory.
template <class Begin, class Depends, class Attach>
void shift_reduce(std::size_t bunsetsu, std::vector<std::size_t>& stack, const Begin& begin,
                  const Depends& depends, const Attach& attach) {
  stack.clear();
  for (std::size_t j = 1; j < bunsetsu; ++j) {
    stack.push_back(j - 1);
    begin(j);
    while (!stack.empty() && (j + 1 == bunsetsu || depends(stack.back(), j))) {
      attach(stack.back(), j);
      stack.pop_back();
    }
  }
}

// Decisions as rows of features, and whether the modifier depends on the candidate.
struct BunsetsuDecisions {
  FeatureRows rows;
  std::vector<std::int8_t> labels;  // 0 or 1
};

// The decisions that lead to these heads, sentence by sentence. A head that the parser cannot give (to the
// left, or under a crossing dependency) is never found, and its modifier depends on the last bunsetsu.
BunsetsuDecisions bunsetsu_decisions(const data::BunsetsuText& text, std::span<const std::int32_t> heads,
                                     const BunsetsuFeatures& features);

// The decisions that lead to these heads, and their features, as far as they occur so often.
struct BunsetsuTraining {
  BunsetsuFeatures features;
  BunsetsuDecisions decisions;
};
BunsetsuTraining bunsetsu_training(const data::BunsetsuText& text, std::span<const std::int32_t> heads,
                                   std::vector<BunsetsuTemplate> templates, std::int64_t min_count);

// The head of each bunsetsu; no_head for the last one of a sentence. The engine has one score, above 0 where
// the modifier depends on the candidate. Sentences go in parallel, and any number of threads gives the same
// result.
std::vector<std::int32_t> parse_bunsetsu(const data::BunsetsuText& text, const BunsetsuFeatures& features,
                                         const engines::Engine& engine, int threads);

}  // namespace unkernel::parsing
