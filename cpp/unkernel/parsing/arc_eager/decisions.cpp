#include "unkernel/parsing/arc_eager/decisions.hpp"

#include <algorithm>
#include <utility>

#include "unkernel/parsing/arc_eager/beam.hpp"
#include "unkernel/parsing/arc_eager/engine_scorer.hpp"

namespace unkernel::parsing {
namespace {

class Recorder {
 public:
  Recorder(const ArcEagerSpec& spec, const ParserEngines& engines, std::size_t beam)
      : spec_(spec), scorer_(spec, engines), beam_(beam) {}

  void record(const data::ColumnText& text, std::int64_t sentence, const Monitor& monitor) {
    sentence_ = static_cast<std::int32_t>(sentence);
    spec_.look_up(text, sentence, buffers_.symbols);
    buffers_.state.begin(buffers_.symbols.words());
    if (beam_ > 1) {
      search(spec_, scorer_, beam_, buffers_, beam_buffers_, monitor);
      for (const PathStep& step : beam_buffers_.path_to(beam_buffers_.beam.best().last_step))
        make_move(step.move, step.label);
      return;
    }
    while (!buffers_.state.finished()) {
      monitor.throw_if_stopped();  // a sentence may be long
      const Move move = choose_move(spec_, scorer_, buffers_);
      make_move(move, makes_arc(move) ? choose_label(spec_, scorer_, arc_of(buffers_.state, move), buffers_)
                                      : no_label);
    }
  }

  ParserDecisions recorded;

 private:
  void make_move(Move move, std::int32_t label) {
    if (buffers_.state.top() != no_word) record_move(move);
    if (makes_arc(move)) record_label(arc_of(buffers_.state, move), label);
    apply(buffers_.state, move, label);
  }

  void record_move(Move move) {
    const ArcEagerState& state = buffers_.state;
    const std::size_t part = spec_.move_part(state, buffers_.symbols);
    const auto& classes = spec_.moves().classes(part);
    const auto chosen = static_cast<std::int32_t>(move);
    const bool is_learnt = std::find(classes.begin(), classes.end(), chosen) != classes.end();
    if (classes.size() == 1 || !is_learnt) return;
    spec_.move_features().extract(before_move(state, buffers_.symbols), buffers_.row);
    add(false, {state.top(), state.next()}, part, chosen);
  }

  void record_label(const Arc& arc, std::int32_t label) {
    const std::size_t part = spec_.arc_part(arc, buffers_.symbols);
    if (spec_.arcs().classes(part).size() == 1) return;
    spec_.arc_features().extract(situation_of_arc(buffers_.state, buffers_.symbols, arc), buffers_.row);
    add(true, {arc.head, arc.child}, part, label);
  }

  void add(bool is_label, std::pair<Word, Word> words, std::size_t part, std::int32_t chosen) {
    const ArcEagerState& state = buffers_.state;
    recorded.columns.insert(recorded.columns.end(), buffers_.row.columns.begin(), buffers_.row.columns.end());
    recorded.offsets.push_back(static_cast<std::int64_t>(recorded.columns.size()));
    recorded.labels.push_back(is_label ? 1 : 0);
    recorded.sentences.push_back(sentence_);
    recorded.firsts.push_back(words.first);
    recorded.seconds.push_back(words.second);
    recorded.parts.push_back(static_cast<std::int32_t>(part));
    recorded.chosen.push_back(chosen);
    int valid_moves = 0;
    for (const Move move : all_moves) {
      if (valid(state, move)) valid_moves |= 1 << static_cast<int>(move);
    }
    recorded.valid.push_back(static_cast<std::int8_t>(valid_moves));
  }

  const ArcEagerSpec& spec_;
  EngineScorer scorer_;
  std::size_t beam_;
  ParseBuffers buffers_;
  BeamBuffers beam_buffers_;
  std::int32_t sentence_ = 0;
};

}  // namespace

ParserDecisions decisions(const ArcEagerSpec& spec, const ParserEngines& engines,
                          const data::ColumnText& text, std::size_t beam, const Monitor& monitor) {
  check(spec, engines);
  Recorder recorder(spec, engines, beam);
  for (std::int64_t sentence = 0; sentence < text.sentences(); ++sentence) {
    monitor.throw_if_stopped();
    recorder.record(text, sentence, monitor);
  }
  return std::move(recorder.recorded);
}

}  // namespace unkernel::parsing
