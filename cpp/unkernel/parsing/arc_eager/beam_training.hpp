// Trains the weights of a parser for beam search: the structured perceptron with updates at the largest
// violation (Huang, Fayong & Guo 2012).
//
// Two beams parse a sentence: one is free, the other is confined to moves that lose fewest gold arcs, with
// gold labels. A tree has many sequences of moves, and the one with the largest score is taken as correct. If
// the free beam ends with a wrong tree, let t be the step in which the best free sequence is wrong and leads
// the best correct one by most. The rows of the correct sequence up to t gain 1 for the classes that it
// chose, and those of the wrong one lose 1.
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

  // Learns the sentence whose symbols are in the room. Returns whether its tree was wrong.
  bool learn(const LabelledTree& gold, ParseRoom& room, const Monitor& monitor);

 private:
  // The last steps of two sequences.
  struct Violation {
    std::int32_t correct = no_step;
    std::int32_t wrong = no_step;
  };

  Violation largest_violation(const LabelledTree& gold, ParseRoom& room, const Monitor& monitor);
  bool is_correct(const BeamItem& item) const;
  void add_along(std::span<const PathStep> path, std::size_t first, float amount, ParseRoom& room);
  void add_move(Move move, float amount, ParseRoom& room);
  void add_label(const Arc& arc, std::int32_t label, float amount, ParseRoom& room);

  const ArcEagerSpec& spec_;
  std::size_t width_;
  std::vector<AveragedWeights>& moves_;
  std::vector<AveragedWeights>& arcs_;
  BeamRoom beams_;
  Beam gold_beam_;
};

}  // namespace unkernel::parsing
