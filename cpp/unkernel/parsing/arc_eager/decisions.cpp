#include "unkernel/parsing/arc_eager/decisions.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace unkernel::parsing {
namespace {

// One score per class. Two classes share one score, which is positive for the second.
class Scores {
 public:
  std::span<const double> operator()(const engines::Engine* engine, std::size_t classes,
                                     std::span<const std::int32_t> columns) {
    scores_.assign(std::max<std::size_t>(classes, 2), 0.0);
    if (engine == nullptr) return {scores_.data(), classes};
    const std::unique_ptr<engines::Worker> worker = engine->worker();
    engine->score(engines::SparseRow<std::int32_t>{columns}, *worker,
                  scores_.data() + (engine->scores() == 1 ? 1 : 0));
    return {scores_.data(), classes};
  }

 private:
  std::vector<double> scores_;
};

class Recorder {
 public:
  Recorder(const ArcEagerSpec& spec, const ParserEngines& engines) : spec_(spec), engines_(engines) {}

  void record(const data::ColumnText& text, std::int64_t sentence) {
    sentence_ = static_cast<std::int32_t>(sentence);
    spec_.vocabulary().look_up(text, sentence, room_.symbols);
    for (room_.state.begin(room_.symbols.words()); !room_.state.finished();) {
      const Move move = next_move();
      apply(room_.state, move, makes_arc(move) ? next_label(arc_of(room_.state, move)) : no_label);
    }
  }

  ParserDecisions made;

 private:
  Move next_move() {
    const ArcEagerState& state = room_.state;
    if (state.top() == no_word) return Move::shift;
    const std::size_t part = spec_.move_part(state, room_.symbols);
    const auto& classes = spec_.moves().classes(part);
    spec_.move_features().extract(before_move(state, room_.symbols), room_.row);
    const auto scores = scores_(engines_.moves[part], classes.size(), room_.row.columns);
    const Move move = best_move(state, std::span(classes), scores);
    const auto chosen = static_cast<std::int32_t>(move);
    const bool known = std::find(classes.begin(), classes.end(), chosen) != classes.end();
    if (classes.size() > 1 && known) add(false, {state.top(), state.next()}, part, chosen);
    return move;
  }

  std::int32_t next_label(const Arc& arc) {
    const std::size_t part = spec_.arc_part(arc, room_.symbols);
    const auto& classes = spec_.arcs().classes(part);
    if (classes.size() == 1) return classes.front();
    spec_.arc_features().extract(of_arc(room_.state, room_.symbols, arc), room_.row);
    const std::int32_t label =
        classes[best_class(scores_(engines_.arcs[part], classes.size(), room_.row.columns))];
    add(true, {arc.head, arc.child}, part, label);
    return label;
  }

  void add(bool label, std::pair<Word, Word> words, std::size_t part, std::int32_t chosen) {
    const ArcEagerState& state = room_.state;
    made.columns.insert(made.columns.end(), room_.row.columns.begin(), room_.row.columns.end());
    made.offsets.push_back(static_cast<std::int64_t>(made.columns.size()));
    made.labels.push_back(label ? 1 : 0);
    made.sentences.push_back(sentence_);
    made.firsts.push_back(words.first);
    made.seconds.push_back(words.second);
    made.parts.push_back(static_cast<std::int32_t>(part));
    made.chosen.push_back(chosen);
    std::int8_t possible = 0;
    for (const Move move : all_moves)
      possible = static_cast<std::int8_t>(possible | (valid(state, move) ? 1 << static_cast<int>(move) : 0));
    made.valid.push_back(possible);
  }

  const ArcEagerSpec& spec_;
  const ParserEngines& engines_;
  ParseRoom room_;
  Scores scores_;
  std::int32_t sentence_ = 0;
};

}  // namespace

ParserDecisions decisions(const ArcEagerSpec& spec, const ParserEngines& engines,
                          const data::ColumnText& text, const Monitor& monitor) {
  check(spec, engines);
  Recorder recorder(spec, engines);
  for (std::int64_t sentence = 0; sentence < text.sentences(); ++sentence) {
    monitor.throw_if_stopped();
    recorder.record(text, sentence);
  }
  return std::move(recorder.made);
}

}  // namespace unkernel::parsing
