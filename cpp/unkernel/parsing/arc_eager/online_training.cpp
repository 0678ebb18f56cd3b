#include "unkernel/parsing/arc_eager/online_training.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace unkernel::parsing {
namespace {

constexpr std::size_t no_class = static_cast<std::size_t>(-1);

std::vector<AveragedWeights> weights_for(const DecisionParts& parts, const FeatureSpace& features, int degree,
                                         std::uint32_t min_updates) {
  std::vector<AveragedWeights> weights;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    weights.emplace_back(degree, parts.classes(part).size(), min_updates, features.core_columns());
  }
  return weights;
}

// Scores with averaged weights, for parsing between epochs.
class AverageScorer {
 public:
  AverageScorer(std::vector<AveragedWeights>& moves, std::vector<AveragedWeights>& arcs)
      : moves_(moves), arcs_(arcs) {}
  std::span<const double> move_scores(std::size_t part, std::span<const std::int32_t> columns) {
    return moves_[part].averaged_score(columns);
  }
  std::span<const double> label_scores(std::size_t part, std::span<const std::int32_t> columns) {
    return arcs_[part].averaged_score(columns);
  }
  std::span<const double> decided_arcs(std::size_t part, std::span<const std::int32_t> columns) {
    return label_scores(part, columns);
  }
  std::span<const double> decided_moves(std::size_t part, std::span<const std::int32_t> columns) {
    return move_scores(part, columns);
  }

 private:
  std::vector<AveragedWeights>& moves_;
  std::vector<AveragedWeights>& arcs_;
};

}  // namespace

OnlineTrainer::OnlineTrainer(const ArcEagerSpec& spec, const data::ColumnText& text,
                             std::span<const LabelledTree> trees, const OnlineOptions& options)
    : spec_(spec),
      text_(text),
      trees_(trees),
      options_(options),
      random_(options.seed),
      order_(trees.size()),
      moves_(weights_for(spec.moves(), spec.move_features(), options.degree, options.min_updates)),
      arcs_(weights_for(spec.arcs(), spec.arc_features(), options.label_degree, options.min_updates)),
      beam_learner_(spec, options.beam, moves_, arcs_) {
  check_same_sentences(text, trees);
  const std::size_t columns = std::max(spec.move_features().columns(), spec.arc_features().columns());
  if (columns > static_cast<std::size_t>(AveragedWeights::most_columns)) {
    throw std::invalid_argument("the treebank has " + std::to_string(columns) +
                                " features, but online learning supports at most " +
                                std::to_string(AveragedWeights::most_columns) + ": raise min_count");
  }
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

EpochCounts OnlineTrainer::run_epoch(const Monitor& monitor) {
  if (options_.beam > 1 && epochs_ == options_.greedy_epochs) {
    for (AveragedWeights& weights : moves_) weights.continue_from_averages();
    for (AveragedWeights& weights : arcs_) weights.continue_from_averages();
  }
  random_.shuffle(std::span(order_));
  EpochCounts counts;
  for (const std::size_t sentence : order_) learn_sentence(sentence, counts, monitor);
  ++epochs_;
  return counts;
}

void OnlineTrainer::learn_sentence(std::size_t sentence, EpochCounts& counts, const Monitor& monitor) {
  const LabelledTree& gold = trees_[sentence];
  spec_.look_up(text_, static_cast<std::int64_t>(sentence), buffers_.symbols);
  if (width_in(epochs_ + 1) == 1 || buffers_.symbols.words() > longest_for_beam)
    return learn_greedily(gold, counts, monitor);
  ++counts.sentences;
  counts.wrong_sentences += beam_learner_.learn(gold, buffers_, monitor);
}

void OnlineTrainer::learn_greedily(const LabelledTree& gold, EpochCounts& counts, const Monitor& monitor) {
  ArcEagerState& state = buffers_.state;
  for (state.begin(buffers_.symbols.words()); !state.finished();) {
    monitor.throw_if_stopped();  // a sentence may be long
    const Move move = learn_move(gold, counts);
    apply(state, move, makes_arc(move) ? learn_label(gold, arc_of(state, move), counts) : no_label);
  }
}

// Learns the next move, and returns the move with which parsing goes on.
Move OnlineTrainer::learn_move(const LabelledTree& gold, EpochCounts& counts) {
  const ArcEagerState& state = buffers_.state;
  if (state.top() == no_word) return Move::shift;
  const std::size_t part = spec_.move_part(state, buffers_.symbols);
  const auto& classes = spec_.moves().classes(part);
  AveragedWeights& weights = moves_[part];
  spec_.move_features().extract(before_move(state, buffers_.symbols), buffers_.row);
  const std::span<const float> scores = weights.score(buffers_.row.columns);
  weights.next_example();

  int costs[move_count];
  int lowest_cost = -1;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    const auto move = static_cast<Move>(classes[k]);
    costs[k] = valid(state, move) ? cost(state, move, gold.heads) : -1;
    if (costs[k] >= 0 && (lowest_cost < 0 || costs[k] < lowest_cost)) lowest_cost = costs[k];
  }
  if (lowest_cost < 0) return best_move(state, std::span(classes), scores);
  std::size_t correct = no_class, wrong = no_class;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    if (costs[k] < 0) continue;
    std::size_t& best = costs[k] == lowest_cost ? correct : wrong;
    if (best == no_class || scores[k] > scores[best]) best = k;
  }
  const bool is_mistake = wrong != no_class && scores[wrong] >= scores[correct];
  ++counts.moves;
  counts.wrong_moves += is_mistake;
  const std::size_t next = is_mistake && should_explore() ? wrong : correct;
  if (is_mistake) weights.update(correct, wrong);
  return static_cast<Move>(classes[next]);
}

// Learns the label of an arc, and returns the label with which parsing goes on.
std::int32_t OnlineTrainer::learn_label(const LabelledTree& gold, const Arc& arc, EpochCounts& counts) {
  const std::size_t part = spec_.arc_part(arc, buffers_.symbols);
  const auto& classes = spec_.arcs().classes(part);
  AveragedWeights& weights = arcs_[part];
  spec_.arc_features().extract(situation_of_arc(buffers_.state, buffers_.symbols, arc), buffers_.row);
  const std::span<const float> scores = weights.score(buffers_.row.columns);
  weights.next_example();
  const std::size_t chosen = best_class(scores);
  if (gold.heads[static_cast<std::size_t>(arc.child)] != arc.head) return classes[chosen];
  const std::int32_t label = gold.labels[static_cast<std::size_t>(arc.child)];
  const std::size_t correct = index_of_class(classes, label);
  const std::size_t wrong = best_except(scores, correct);
  ++counts.arcs;
  if (wrong >= scores.size() || scores[wrong] < scores[correct]) return label;
  ++counts.wrong_labels;
  weights.update(correct, wrong);
  return epochs_ < options_.gold_epochs ? label : classes[chosen];
}

Parsed OnlineTrainer::parse(const data::ColumnText& text, const Monitor& monitor) {
  for (AveragedWeights& weights : moves_) weights.update_rounding_unit();
  for (AveragedWeights& weights : arcs_) weights.update_rounding_unit();
  AverageScorer scorer(moves_, arcs_);
  Parsed parsed;
  for (std::int64_t sentence = 0; sentence < text.sentences(); ++sentence) {
    monitor.throw_if_stopped();
    spec_.look_up(text, sentence, buffers_.symbols);
    parse_with_beam(spec_, scorer, width_in(epochs_), buffers_, beam_buffers_, monitor);
    parsed.heads.insert(parsed.heads.end(), buffers_.tree.heads.begin() + 1, buffers_.tree.heads.end());
    parsed.labels.insert(parsed.labels.end(), buffers_.tree.labels.begin() + 1, buffers_.tree.labels.end());
  }
  return parsed;
}

}  // namespace unkernel::parsing
