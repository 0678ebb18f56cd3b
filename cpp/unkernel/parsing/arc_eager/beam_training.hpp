// Trains the weights of a parser for beam search: the structured perceptron with updates at the largest
// violation (Huang, Fayong & Guo 2012).
//
// Two beams parse a sentence. The free beam may make any move; the gold beam makes only moves that lose the
// fewest gold arcs, with gold labels. Several sequences of moves may lead to the gold tree; the best sequence
// of the gold beam counts as correct. If the free beam ends with a wrong tree, consider the steps in which
// its best sequence is wrong. Let t be the one in which this sequence is furthest ahead of the correct
// sequence. Up to step t, weights of moves and labels increase by 1 along the correct sequence, and decrease
// by 1 along the wrong sequence.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/parsing/arc_eager/beam.hpp"
#include "unkernel/parsing/online/averaged_weights.hpp"

namespace unkernel::parsing {

class BeamLearner {
 public:
  // Learns the weights, one set per part, which must outlive the learner.
  BeamLearner(const ArcEagerSpec& spec, std::size_t width, std::vector<AveragedWeights>& moves,
              std::vector<AveragedWeights>& arcs)
      : spec_(spec), width_(width), moves_(moves), arcs_(arcs) {}

  // Learns from the sentence whose symbols are in the buffers. Returns whether its predicted tree was wrong.
  bool learn(const LabelledTree& gold, ParseBuffers& buffers, const Monitor& monitor);

 private:
  // The last steps of the correct and of the wrong sequence, up to which weights change.
  struct Violation {
    std::int32_t correct = no_step;
    std::int32_t wrong = no_step;
  };

  Violation largest_violation(const LabelledTree& gold, ParseBuffers& buffers, const Monitor& monitor);
  bool is_correct(const BeamItem& item) const;
  void add_along(std::span<const PathStep> path, std::size_t first, float amount, ParseBuffers& buffers);
  void add_move(Move move, float amount, ParseBuffers& buffers);
  void add_label(const Arc& arc, std::int32_t label, float amount, ParseBuffers& buffers);

  const ArcEagerSpec& spec_;
  std::size_t width_;
  std::vector<AveragedWeights>& moves_;
  std::vector<AveragedWeights>& arcs_;
  BeamBuffers beams_;
  Beam gold_beam_;
};

}  // namespace unkernel::parsing
