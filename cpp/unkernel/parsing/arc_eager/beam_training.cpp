#include "unkernel/parsing/arc_eager/beam_training.hpp"

#include <algorithm>
#include <limits>

namespace unkernel::parsing {
namespace {

constexpr std::size_t gold_width = 4;

// Scores moves and labels with the current weights.
class CurrentScorer {
 public:
  CurrentScorer(std::vector<AveragedWeights>& moves, std::vector<AveragedWeights>& arcs)
      : moves_(moves), arcs_(arcs) {}
  std::span<const float> move_scores(std::size_t part, std::span<const std::int32_t> columns) {
    return moves_[part].score(columns);
  }
  std::span<const float> label_scores(std::size_t part, std::span<const std::int32_t> columns) {
    return arcs_[part].score(columns);
  }

 private:
  std::vector<AveragedWeights>& moves_;
  std::vector<AveragedWeights>& arcs_;
};

// Returns whether no other valid move loses fewer gold arcs. If a tree has several roots, every move may lose
// arcs.
bool loses_least(const ArcEagerState& state, Move move, GoldHeads gold) {
  const int lost = cost(state, move, gold);
  return lost == 0 || std::ranges::none_of(all_moves, [&](Move other) {
           return valid(state, other) && cost(state, other, gold) < lost;
         });
}

bool is_gold(const Arc& arc, GoldHeads gold) { return gold[place(arc.child)] == arc.head; }

// Allows all moves. A move is correct if no other move loses fewer gold arcs; a gold arc must also have its
// gold label.
struct ComparedChoice : AnyChoice {
  explicit ComparedChoice(const LabelledTree& tree) : gold(tree) {}
  bool is_correct(const ArcEagerState& state, Move move, std::int32_t label) const {
    if (!loses_least(state, move, gold.heads)) return false;
    return !makes_arc(move) || !is_gold(arc_of(state, move), gold.heads) ||
           gold.labels[place(arc_of(state, move).child)] == label;
  }
  const LabelledTree& gold;
};

// Allows the moves that lose the fewest gold arcs. Gold arcs get their gold labels.
struct CorrectChoice : AnyChoice {
  explicit CorrectChoice(const LabelledTree& tree) : gold(tree) {}
  bool allows(const ArcEagerState& state, Move move) const { return loses_least(state, move, gold.heads); }
  std::size_t label(const Arc& arc, const std::vector<std::int32_t>& classes,
                    std::span<const double> scores) const {
    return is_gold(arc, gold.heads) ? index_of_class(classes, gold.labels[place(arc.child)])
                                    : best_class(scores);
  }
  const LabelledTree& gold;
};

// Returns how many first steps two paths have in common.
std::size_t common_steps(std::span<const PathStep> one, std::span<const PathStep> other) {
  const auto are_equal = [](const PathStep& a, const PathStep& b) {
    return a.move == b.move && a.label == b.label;
  };
  return static_cast<std::size_t>(std::ranges::mismatch(one, other, are_equal).in1 - one.begin());
}

}  // namespace

bool BeamLearner::learn(const LabelledTree& gold, ParseBuffers& buffers, const Monitor& monitor) {
  for (AveragedWeights& weights : moves_) weights.next_example();
  for (AveragedWeights& weights : arcs_) weights.next_example();
  const Violation violation = largest_violation(gold, buffers, monitor);
  if (is_correct(beams_.beam.best())) return false;
  const std::vector<PathStep> correct = beams_.path_to(violation.correct),
                              wrong = beams_.path_to(violation.wrong);
  const std::size_t first = common_steps(correct, wrong);
  add_along(correct, first, 1.0F, buffers);
  add_along(wrong, first, -1.0F, buffers);
  return true;
}

bool BeamLearner::is_correct(const BeamItem& item) const {
  return item.last_step == no_step || beams_.steps[static_cast<std::size_t>(item.last_step)].correct;
}

BeamLearner::Violation BeamLearner::largest_violation(const LabelledTree& gold, ParseBuffers& buffers,
                                                      const Monitor& monitor) {
  CurrentScorer scorer(moves_, arcs_);
  beams_.begin(buffers.symbols.words());
  gold_beam_.begin(buffers.symbols.words());
  BeamSearch<CurrentScorer> search(spec_, scorer, buffers, beams_);
  Violation largest;
  double largest_lead = -std::numeric_limits<double>::infinity();
  while (!beams_.beam.finished() || !gold_beam_.finished()) {
    monitor.throw_if_stopped();
    search.step(beams_.beam, width_, ComparedChoice(gold));
    search.step(gold_beam_, gold_width, CorrectChoice(gold));
    const BeamItem &best = beams_.beam.best(), &correct = gold_beam_.best();
    if (is_correct(best) || best.score - correct.score < largest_lead) continue;
    largest_lead = best.score - correct.score;
    largest = {correct.last_step, best.last_step};
  }
  return largest;
}

// Adds `amount` to the weights of the moves and labels of a path, from step `first` on.
void BeamLearner::add_along(std::span<const PathStep> path, std::size_t first, float amount,
                            ParseBuffers& buffers) {
  buffers.state.begin(buffers.symbols.words());
  for (std::size_t k = 0; k < path.size(); ++k) {
    const auto& [previous, move, label, correct] = path[k];
    if (k >= first) add_move(move, amount, buffers);
    if (k >= first && makes_arc(move)) add_label(arc_of(buffers.state, move), label, amount, buffers);
    apply(buffers.state, move, label);
  }
}

void BeamLearner::add_move(Move move, float amount, ParseBuffers& buffers) {
  if (buffers.state.top() == no_word) return;
  const std::size_t part = spec_.move_part(buffers.state, buffers.symbols);
  const auto& classes = spec_.moves().classes(part);
  const std::size_t chosen = index_of_class(classes, static_cast<std::int32_t>(move));
  if (chosen == classes.size()) return;  // a move that did not occur in training has score 0
  spec_.move_features().extract(before_move(buffers.state, buffers.symbols), buffers.row);
  moves_[part].add(buffers.row.columns, chosen, amount);
}

void BeamLearner::add_label(const Arc& arc, std::int32_t label, float amount, ParseBuffers& buffers) {
  const std::size_t part = spec_.arc_part(arc, buffers.symbols);
  const std::size_t chosen = index_of_class(spec_.arcs().classes(part), label);
  spec_.arc_features().extract(situation_of_arc(buffers.state, buffers.symbols, arc), buffers.row);
  arcs_[part].add(buffers.row.columns, chosen, amount);
}

}  // namespace unkernel::parsing
