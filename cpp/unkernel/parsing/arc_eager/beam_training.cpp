#include "unkernel/parsing/arc_eager/beam_training.hpp"

#include <algorithm>
#include <limits>

namespace unkernel::parsing {
namespace {

constexpr std::size_t gold_width = 4;

// Scores with the current weights.
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

// Returns whether no other move loses fewer gold arcs. If a tree has several roots, every move loses some
// arcs.
bool loses_least(const ArcEagerState& state, Move move, GoldHeads gold) {
  const int lost = cost(state, move, gold);
  return lost == 0 || std::ranges::none_of(all_moves, [&](Move other) {
           return valid(state, other) && cost(state, other, gold) < lost;
         });
}

bool is_gold(const Arc& arc, GoldHeads gold) { return gold[place(arc.child)] == arc.head; }

// Allows any choice. Correct are the moves that lose least, and gold arcs with their labels.
struct ComparedChoice : AnyChoice {
  explicit ComparedChoice(const LabelledTree& tree) : gold(tree) {}
  bool is_correct(const ArcEagerState& state, Move move, std::int32_t label) const {
    if (!loses_least(state, move, gold.heads)) return false;
    return !makes_arc(move) || !is_gold(arc_of(state, move), gold.heads) ||
           gold.labels[place(arc_of(state, move).child)] == label;
  }
  const LabelledTree& gold;
};

struct CorrectChoice : AnyChoice {
  explicit CorrectChoice(const LabelledTree& tree) : gold(tree) {}
  bool allows(const ArcEagerState& state, Move move) const { return loses_least(state, move, gold.heads); }
  std::size_t label(const Arc& arc, const std::vector<std::int32_t>& classes,
                    std::span<const double> scores) const {
    return is_gold(arc, gold.heads) ? place_among(classes, gold.labels[place(arc.child)])
                                    : best_class(scores);
  }
  const LabelledTree& gold;
};

std::size_t common_steps(std::span<const PathStep> one, std::span<const PathStep> other) {
  const auto same = [](const PathStep& a, const PathStep& b) {
    return a.move == b.move && a.label == b.label;
  };
  return static_cast<std::size_t>(std::ranges::mismatch(one, other, same).in1 - one.begin());
}

}  // namespace

bool BeamLearner::learn(const LabelledTree& gold, ParseRoom& room, const Monitor& monitor) {
  for (AveragedWeights& weights : moves_) weights.next_example();
  for (AveragedWeights& weights : arcs_) weights.next_example();
  const Violation found = largest_violation(gold, room, monitor);
  if (is_correct(beams_.beam.best())) return false;
  const std::vector<PathStep> correct = beams_.path_to(found.correct), wrong = beams_.path_to(found.wrong);
  const std::size_t first = common_steps(correct, wrong);
  add_along(correct, first, 1.0F, room);
  add_along(wrong, first, -1.0F, room);
  return true;
}

bool BeamLearner::is_correct(const BeamItem& item) const {
  return item.last_step == no_step || beams_.steps[static_cast<std::size_t>(item.last_step)].correct;
}

BeamLearner::Violation BeamLearner::largest_violation(const LabelledTree& gold, ParseRoom& room,
                                                      const Monitor& monitor) {
  CurrentScorer scorer(moves_, arcs_);
  beams_.begin(room.symbols.words());
  gold_beam_.begin(room.symbols.words());
  BeamSearch<CurrentScorer> search(spec_, scorer, room, beams_);
  Violation largest;
  double ahead = -std::numeric_limits<double>::infinity();
  while (!beams_.beam.finished() || !gold_beam_.finished()) {
    monitor.throw_if_stopped();
    search.step(beams_.beam, width_, ComparedChoice(gold));
    search.step(gold_beam_, gold_width, CorrectChoice(gold));
    const BeamItem &best = beams_.beam.best(), &correct = gold_beam_.best();
    if (is_correct(best) || best.score - correct.score < ahead) continue;
    ahead = best.score - correct.score;
    largest = {correct.last_step, best.last_step};
  }
  return largest;
}

// Begins at the step `first`.
void BeamLearner::add_along(std::span<const PathStep> path, std::size_t first, float amount,
                            ParseRoom& room) {
  room.state.begin(room.symbols.words());
  for (std::size_t k = 0; k < path.size(); ++k) {
    const auto& [before, move, label, correct] = path[k];
    if (k >= first) add_move(move, amount, room);
    if (k >= first && makes_arc(move)) add_label(arc_of(room.state, move), label, amount, room);
    apply(room.state, move, label);
  }
}

void BeamLearner::add_move(Move move, float amount, ParseRoom& room) {
  if (room.state.top() == no_word) return;
  const std::size_t part = spec_.move_part(room.state, room.symbols);
  const auto& classes = spec_.moves().classes(part);
  const std::size_t chosen = place_among(classes, static_cast<std::int32_t>(move));
  if (chosen == classes.size()) return;  // a move that the part has not seen and scores with 0
  spec_.move_features().extract(before_move(room.state, room.symbols), room.row);
  moves_[part].add(room.row.columns, chosen, amount);
}

void BeamLearner::add_label(const Arc& arc, std::int32_t label, float amount, ParseRoom& room) {
  const std::size_t part = spec_.arc_part(arc, room.symbols);
  const std::size_t chosen = place_among(spec_.arcs().classes(part), label);
  spec_.arc_features().extract(of_arc(room.state, room.symbols, arc), room.row);
  arcs_[part].add(room.row.columns, chosen, amount);
}

}  // namespace unkernel::parsing
