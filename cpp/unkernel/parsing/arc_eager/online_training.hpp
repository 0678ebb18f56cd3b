// Trains an arc-eager parser online, from its mistakes.
//
// In each epoch, the parser processes the sentences in a new random order, one move after another. A move is
// correct if no other move loses fewer gold arcs. If a wrong move has the largest score, the weights of the
// best correct move increase, and those of the best wrong move decrease (averaged_weights.hpp). A tie also
// counts as a mistake, because averaged weights might choose the wrong move.
//
// From epoch `gold_epochs` on, the parser makes its wrong move with probability `exploration`, so that it
// learns from states after mistakes: training with exploration by a dynamic oracle (Goldberg & Nivre 2012).
// Labels are learnt on gold arcs. For a parser with a beam, epochs from `greedy_epochs` on use
// beam_training.hpp, and continue from the averages of the greedy epochs.
//
// The result depends only on the input and the seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/parsing/arc_eager/beam_training.hpp"
#include "unkernel/parsing/arc_eager/parser.hpp"
#include "unkernel/parsing/online/averaged_weights.hpp"

namespace unkernel::parsing {

struct OnlineOptions {
  int degree;
  int label_degree;
  std::uint32_t min_updates;
  int gold_epochs;
  double exploration;
  std::size_t beam;  // 1 for a greedy parser
  int greedy_epochs;
  std::uint64_t seed;
};

// Statistics of an epoch. A greedy epoch counts decisions, an epoch with a beam counts sentences.
struct EpochCounts {
  std::int64_t moves = 0;
  std::int64_t wrong_moves = 0;
  std::int64_t arcs = 0;
  std::int64_t wrong_labels = 0;
  std::int64_t sentences = 0;
  std::int64_t wrong_sentences = 0;
};

class OnlineTrainer {
 public:
  // The spec must have learnt from this text, and `trees` must be the trees that it returned. Spec, text and
  // trees must outlive the trainer.
  OnlineTrainer(const ArcEagerSpec& spec, const data::ColumnText& text, std::span<const LabelledTree> trees,
                const OnlineOptions& options);
  OnlineTrainer(const OnlineTrainer&) = delete;
  OnlineTrainer& operator=(const OnlineTrainer&) = delete;

  EpochCounts run_epoch(const Monitor& monitor);
  int epochs() const { return epochs_; }
  // Parses with the current averages: with the beam if an epoch has used it, otherwise greedily.
  Parsed parse(const data::ColumnText& text, const Monitor& monitor);

  const std::vector<AveragedWeights>& moves() const { return moves_; }
  const std::vector<AveragedWeights>& arcs() const { return arcs_; }

 private:
  std::size_t width_in(int epoch) const { return epoch > options_.greedy_epochs ? options_.beam : 1; }
  void learn_sentence(std::size_t sentence, EpochCounts& counts, const Monitor& monitor);
  void learn_greedily(const LabelledTree& gold, EpochCounts& counts, const Monitor& monitor);
  Move learn_move(const LabelledTree& gold, EpochCounts& counts);
  std::int32_t learn_label(const LabelledTree& gold, const Arc& arc, EpochCounts& counts);
  bool should_explore() {
    return epochs_ >= options_.gold_epochs && random_.below(1 << 20) < options_.exploration * (1 << 20);
  }

  const ArcEagerSpec& spec_;
  const data::ColumnText& text_;
  std::span<const LabelledTree> trees_;
  OnlineOptions options_;
  Random random_;
  int epochs_ = 0;
  std::vector<std::size_t> order_;
  std::vector<AveragedWeights> moves_;
  std::vector<AveragedWeights> arcs_;
  ParseBuffers buffers_;
  BeamBuffers beam_buffers_;
  BeamLearner beam_learner_;
};

}  // namespace unkernel::parsing
