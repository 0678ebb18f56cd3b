// Sassano's linear-time parser for Japanese dependencies (COLING 2004).
//
// A sentence is a sequence of phrases, its bunsetsu. Each depends on a bunsetsu to its right, and
// dependencies do not cross. A stack holds the bunsetsu without a head. From left to right, each bunsetsu
// becomes the candidate head. While the top of the stack depends on the candidate, the top is popped; then
// the candidate is pushed. n bunsetsu take at most 2n decisions. All bunsetsu that remain on the stack depend
// on the last bunsetsu, without a decision. So the tree is always well-formed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/data/text/bunsetsu_text.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/parsing/bunsetsu/features.hpp"
#include "unkernel/parsing/features/feature_rows.hpp"

namespace unkernel::parsing {

// Calls begin(j) before the first decision about candidate j, depends(i, j) to decide whether i depends on j,
// and attach(i, j) for each dependency. The caller passes the stack, so that its memory can be reused.
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

// One row of features per decision, and a label: whether the modifier depends on the candidate.
struct BunsetsuDecisions {
  FeatureRows rows;
  std::vector<std::int8_t> labels;  // 0 or 1
};

// Returns the decisions that lead to these heads, sentence by sentence. If the parser cannot produce a head
// (to the left, or across another dependency), its modifier depends on the last bunsetsu instead.
BunsetsuDecisions bunsetsu_decisions(const data::BunsetsuText& text, std::span<const std::int32_t> heads,
                                     const BunsetsuFeatures& features, const Monitor& monitor);

// The decisions that lead to the gold heads, and the features that occur in at least `min_count` of them.
struct BunsetsuTraining {
  BunsetsuFeatures features;
  BunsetsuDecisions decisions;
};
BunsetsuTraining bunsetsu_training(const data::BunsetsuText& text, std::span<const std::int32_t> heads,
                                   std::vector<BunsetsuTemplate> templates, std::int64_t min_count,
                                   const Monitor& monitor);

// Returns the head of each bunsetsu; the last bunsetsu of a sentence gets no_head. The engine must have one
// score, which is positive if the modifier depends on the candidate. Parses sentences in parallel; the number
// of threads does not change the result.
std::vector<std::int32_t> parse_bunsetsu(const data::BunsetsuText& text, const BunsetsuFeatures& features,
                                         const engines::Engine& engine, Threads threads);

}  // namespace unkernel::parsing
