// Beam search: follows the best few sequences of moves instead of a single sequence.
//
// The score of a sequence is the sum of the scores of its moves and labels. Each step extends every state by
// every valid move, gives arcs their best labels, and keeps the `width` sequences with the largest scores.
// Finished sequences are not extended. States often have equal features, so each row of features is scored
// once per sentence.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/parsing/arc_eager/parser.hpp"

namespace unkernel::parsing {

// A beam copies states, which takes time quadratic in the length of the sentence. Sentences with more words
// than this are parsed with a beam of 1.
constexpr std::size_t longest_for_beam = 1000;

// Caches the scores of a sentence's feature rows. A part is one of the classifiers of a parser (spec.hpp).
// The cache is cleared when it has `most_rows` rows.
class RowScores {
 public:
  void clear();

  // Returns the scores of a row: the result of compute(part, columns). They are valid until the next call.
  template <class Compute>
  std::span<const double> of(std::size_t part, std::span<const std::int32_t> columns,
                             const Compute& compute) {
    if (rows_.size() == most_rows) clear();
    std::int32_t& number = numbers_[hash(part, columns)];
    if (number == 0 || !is_row(rows_[index_of(number)], part, columns)) {
      number = static_cast<std::int32_t>(rows_.size()) + 1;
      add(part, columns, compute(part, columns));
    }
    const Row& row = rows_[index_of(number)];
    return std::span(scores_).subspan(row.first_score, row.scores);
  }

 private:
  static constexpr std::size_t most_rows = 1 << 16;

  struct Row {
    std::size_t part;
    std::size_t first_column, columns;
    std::size_t first_score, scores;
  };

  static std::uint64_t hash(std::size_t part, std::span<const std::int32_t> columns);
  static std::size_t index_of(std::int32_t number) { return static_cast<std::size_t>(number) - 1; }
  bool is_row(const Row& row, std::size_t part, std::span<const std::int32_t> columns) const;
  template <class Scores>
  void add(std::size_t part, std::span<const std::int32_t> columns, const Scores& scores) {
    rows_.push_back({part, columns_.size(), columns.size(), scores_.size(), scores.size()});
    columns_.insert(columns_.end(), columns.begin(), columns.end());
    scores_.insert(scores_.end(), scores.begin(), scores.end());
  }

  FlatMap<std::uint64_t, std::int32_t> numbers_;  // rows by hash, counted from 1
  std::vector<Row> rows_;
  std::vector<std::int32_t> columns_;
  std::vector<double> scores_;
};

// The last step of a sequence of moves, with a link to the step before it.
struct PathStep {
  std::int32_t previous;  // the number of the previous step, or no_step
  Move move;
  std::int32_t label;
  bool correct;  // this step and all earlier steps are correct
};
constexpr std::int32_t no_step = -1;

struct BeamItem {
  ArcEagerState state;
  double score = 0.0;
  std::int32_t last_step = no_step;
};

// The states of one step, the best first.
class Beam {
 public:
  void begin(std::size_t words);
  bool finished() const {
    return std::ranges::all_of(items_, [](const BeamItem& item) { return item.state.finished(); });
  }
  const BeamItem& best() const { return items_.front(); }

 private:
  template <class Scorer>
  friend class BeamSearch;

  struct Extension {
    double score;  // of the sequence
    std::size_t item;
    Move move;
    std::int32_t label;
    bool is_idle;  // the item is finished and makes no move
  };

  // Keeps the best `width` extensions, the best first.
  void keep_best(std::size_t width);
  // Sets next_items_[k] to the item that extension k extends. Copies the item if a later extension also needs
  // it, otherwise moves it.
  void move_or_copy(std::size_t k);

  std::vector<BeamItem> items_;
  std::vector<BeamItem> next_items_;
  std::vector<Extension> extensions_;
};

// The buffers of a search, reused for each sentence.
struct BeamBuffers {
  RowScores move_scores;
  RowScores label_scores;
  std::vector<PathStep> steps;  // of all beams
  Beam beam;

  void begin(std::size_t words);
  // Returns the sequence of steps that ends with `last_step`.
  std::vector<PathStep> path_to(std::int32_t last_step) const;
};

// The rule of a search for the best tree: it allows all moves, and gives an arc its best label. Rules for
// training allow fewer moves, choose gold labels, or tell which moves are correct.
struct AnyChoice {
  bool allows(const ArcEagerState&, Move) const { return true; }
  std::size_t label(const Arc&, const std::vector<std::int32_t>&, std::span<const double> scores) const {
    return best_class(scores);
  }
  bool is_correct(const ArcEagerState&, Move, std::int32_t) const { return true; }
};

// Searches sentences. A Scorer has move_scores(part, columns) and label_scores(part, columns), which return
// one score per class.
template <class Scorer>
class BeamSearch {
 public:
  BeamSearch(const ArcEagerSpec& spec, Scorer& scorer, ParseBuffers& parse_buffers, BeamBuffers& buffers)
      : spec_(spec),
        scorer_(scorer),
        symbols_(parse_buffers.symbols),
        row_(parse_buffers.row),
        buffers_(buffers) {}

  // Extends the sequences of a beam by one step, and keeps the best `width`.
  template <class Choice>
  void step(Beam& beam, std::size_t width, const Choice& choice) {
    list_extensions(beam, choice);
    beam.keep_best(width);
    beam.next_items_.resize(beam.extensions_.size());
    for (std::size_t k = 0; k < beam.extensions_.size(); ++k) {
      const Beam::Extension& extension = beam.extensions_[k];
      BeamItem& item = beam.next_items_[k];
      beam.move_or_copy(k);
      item.score = extension.score;
      if (!extension.is_idle) make_move(item, extension.move, extension.label, choice);
    }
    beam.items_.swap(beam.next_items_);
  }

 private:
  template <class Choice>
  void list_extensions(Beam& beam, const Choice& choice) {
    beam.extensions_.clear();
    for (std::size_t k = 0; k < beam.items_.size(); ++k) {
      const BeamItem& item = beam.items_[k];
      if (item.state.finished() || item.state.top() == no_word) {
        beam.extensions_.push_back({item.score, k, Move::shift, no_label, item.state.finished()});
      } else {
        list_extensions_of(k, beam, choice);
      }
    }
  }

  template <class Choice>
  void list_extensions_of(std::size_t number, Beam& beam, const Choice& choice) {
    const BeamItem& item = beam.items_[number];
    const ArcEagerState& state = item.state;
    const std::size_t part = spec_.move_part(state, symbols_);
    const auto& classes = spec_.moves().classes(part);
    spec_.move_features().extract(before_move(state, symbols_), row_);
    const auto scores = buffers_.move_scores.of(
        part, row_.columns, [&](std::size_t of, auto columns) { return scorer_.move_scores(of, columns); });
    const auto is_possible = [&](Move move) { return valid(state, move) && choice.allows(state, move); };
    const std::size_t old_size = beam.extensions_.size();
    for (std::size_t k = 0; k < classes.size(); ++k) {
      const auto move = static_cast<Move>(classes[k]);
      if (is_possible(move)) beam.extensions_.push_back(extend_item(item, number, move, scores[k], choice));
    }
    if (beam.extensions_.size() > old_size) return;
    // No possible move occurred in this part in training, so take the first.
    const auto* move = std::ranges::find_if(all_moves, is_possible);
    assert(move != std::end(all_moves));
    beam.extensions_.push_back(extend_item(item, number, *move, 0.0, choice));
  }

  template <class Choice>
  Beam::Extension extend_item(const BeamItem& item, std::size_t number, Move move, double move_score,
                              const Choice& choice) {
    Beam::Extension extension{item.score + move_score, number, move, no_label, false};
    if (!makes_arc(move)) return extension;
    const Arc arc = arc_of(item.state, move);
    const std::size_t part = spec_.arc_part(arc, symbols_);
    const auto& classes = spec_.arcs().classes(part);
    extension.label = classes.front();
    if (classes.size() == 1) return extension;
    spec_.arc_features().extract(situation_of_arc(item.state, symbols_, arc), row_);
    const auto scores = buffers_.label_scores.of(
        part, row_.columns, [&](std::size_t of, auto columns) { return scorer_.label_scores(of, columns); });
    const std::size_t label = choice.label(arc, classes, scores);
    extension.score += scores[label];
    extension.label = classes[label];
    return extension;
  }

  template <class Choice>
  void make_move(BeamItem& item, Move move, std::int32_t label, const Choice& choice) {
    const bool correct = (item.last_step == no_step || step_at(item.last_step).correct) &&
                         choice.is_correct(item.state, move, label);
    buffers_.steps.push_back({item.last_step, move, label, correct});
    item.last_step = static_cast<std::int32_t>(buffers_.steps.size()) - 1;
    apply(item.state, move, label);
  }

  const PathStep& step_at(std::int32_t number) const {
    return buffers_.steps[static_cast<std::size_t>(number)];
  }

  const ArcEagerSpec& spec_;
  Scorer& scorer_;
  const SentenceSymbols& symbols_;
  FeatureRow& row_;
  BeamBuffers& buffers_;
};

// Searches the sentence whose symbols are in the parse buffers. The result is the best item of the beam.
template <class Scorer>
void search(const ArcEagerSpec& spec, Scorer& scorer, std::size_t width, ParseBuffers& parse_buffers,
            BeamBuffers& buffers, const Monitor& monitor) {
  const std::size_t words = parse_buffers.symbols.words();
  const std::size_t allowed_width = words <= longest_for_beam ? width : 1;
  buffers.begin(words);
  BeamSearch<Scorer> steps(spec, scorer, parse_buffers, buffers);
  while (!buffers.beam.finished()) {
    monitor.throw_if_stopped();  // a sentence may be long
    steps.step(buffers.beam, allowed_width, AnyChoice{});
  }
}

// Parses the sentence whose symbols are in the parse buffers, and stores its tree there. A beam of 1 is
// greedy.
template <class Scorer>
void parse_with_beam(const ArcEagerSpec& spec, Scorer& scorer, std::size_t width, ParseBuffers& parse_buffers,
                     BeamBuffers& buffers, const Monitor& monitor) {
  if (width == 1) return parse(spec, scorer, parse_buffers, monitor);
  search(spec, scorer, width, parse_buffers, buffers, monitor);
  parse_buffers.state = buffers.beam.best().state;
  store_tree(spec, parse_buffers, monitor);
}

}  // namespace unkernel::parsing
