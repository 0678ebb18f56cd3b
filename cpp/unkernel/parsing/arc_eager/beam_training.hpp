// Trains the weights of a parser for beam search: the structured perceptron with updates at the largest
// violation (Huang, Fayong & Guo 2012).
//
// Two beams parse a sentence: the free beam may make any move; the gold beam only makes moves that lose the
// fewest gold arcs, with gold labels. Many sequences of moves lead to the gold tree; the best sequence of the
// gold beam counts as correct. If the free beam ends with a wrong tree, let t be the step in which its best
// sequence is wrong and leads the correct sequence by the largest difference. Up to step t, the weights of
// the moves and labels of the correct sequence are increased by 1, and those of the wrong sequence decreased
// by 1.
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
  // The weights, one set per part, must outlive the learner.
  BeamLearner(const ArcEagerSpec& spec, std::size_t width, std::vector<AveragedWeights>& moves,
              std::vector<AveragedWeights>& arcs)
      : spec_(spec), width_(width), moves_(moves), arcs_(arcs) {}

  // Learns from the sentence whose symbols are in the buffers. Returns whether its predicted tree was wrong.
  bool learn(const LabelledTree& gold, ParseBuffers& buffers, const Monitor& monitor);

 private:
  // The last steps of the correct and of the wrong sequence.
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
