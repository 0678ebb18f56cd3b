#include "unkernel/parsing/arc_eager/parser.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "unkernel/base/parallel.hpp"
#include "unkernel/parsing/arc_eager/beam.hpp"
#include "unkernel/parsing/arc_eager/engine_scorer.hpp"

namespace unkernel::parsing {
namespace {

void check(const DecisionParts& parts, std::span<const engines::Engine* const> engines, const char* what) {
  bool is_consistent = engines.size() == parts.size();
  for (std::size_t part = 0; is_consistent && part < parts.size(); ++part) {
    const std::size_t classes = parts.classes(part).size();
    // A part with a single class needs no buffer for scores.
    if (classes == 1) {
      is_consistent = engines[part] == nullptr;
    } else {
      is_consistent = engines[part] != nullptr && engines[part]->scores() == (classes == 2 ? 1 : classes);
    }
  }
  if (!is_consistent)
    throw std::invalid_argument(std::string("the classifiers of ") + what + " do not fit the parser");
}

void add_row(const FeatureRow& row, std::size_t part, std::size_t place, DecisionRows& rows) {
  rows.columns.insert(rows.columns.end(), row.columns.begin(), row.columns.end());
  rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
  rows.parts.push_back(static_cast<std::int32_t>(part));
  rows.classes.push_back(static_cast<std::int32_t>(place));
}

}  // namespace

void check(const ArcEagerSpec& spec, const ParserEngines& engines) {
  check(spec.moves(), engines.moves, "moves");
  check(spec.arcs(), engines.arcs, "labels");
}

Parsed parse(const ArcEagerSpec& spec, const ParserEngines& engines, const data::ColumnText& text,
             const ParseOptions& options, const Monitor& monitor) {
  check(spec, engines);
  const auto tokens = static_cast<std::size_t>(text.tokens());
  Parsed parsed{std::vector<std::int32_t>(tokens), std::vector<std::int32_t>(tokens)};
  constexpr std::int64_t grain = 64;  // sentences per task, each with its own worker
  parallel_ranges(options.threads, text.sentences(),
                  std::max(grain, text.sentences() / (8 * std::max(options.threads, 1))),
                  [&](std::int64_t first, std::int64_t last) {
                    EngineScorer scorer(spec, engines);
                    ParseBuffers buffers;
                    BeamBuffers beam_buffers;
                    for (std::int64_t sentence = first; sentence < last; ++sentence) {
                      monitor.throw_if_stopped();
                      spec.look_up(text, sentence, buffers.symbols);
                      parse_with_beam(spec, scorer, options.beam, buffers, beam_buffers, monitor);
                      const auto begin = static_cast<std::ptrdiff_t>(text.first_token(sentence));
                      std::copy(buffers.tree.heads.begin() + 1, buffers.tree.heads.end(),
                                parsed.heads.begin() + begin);
                      std::copy(buffers.tree.labels.begin() + 1, buffers.tree.labels.end(),
                                parsed.labels.begin() + begin);
                    }
                  });
  return parsed;
}

void check_same_sentences(const data::ColumnText& text, std::span<const LabelledTree> trees) {
  bool is_same = static_cast<std::size_t>(text.sentences()) == trees.size();
  for (std::size_t s = 0; is_same && s < trees.size(); ++s) {
    const auto sentence = static_cast<std::int64_t>(s);
    is_same = static_cast<std::size_t>(text.first_token(sentence + 1) - text.first_token(sentence)) + 1 ==
              trees[s].heads.size();
  }
  if (!is_same) throw std::invalid_argument("the parser was trained on a different text");
}

OracleRows oracle_rows(const ArcEagerSpec& spec, const data::ColumnText& text,
                       std::span<const LabelledTree> trees, const Monitor& monitor) {
  check_same_sentences(text, trees);
  OracleRows rows;
  ParseBuffers buffers;
  for (std::size_t s = 0; s < trees.size(); ++s) {
    spec.look_up(text, static_cast<std::int64_t>(s), buffers.symbols);
    for_each_canonical_move(trees[s], buffers.state, [&](Move move) {
      monitor.throw_if_stopped();
      if (buffers.state.top() == no_word) return;  // there is no choice
      spec.move_features().extract(before_move(buffers.state, buffers.symbols), buffers.row);
      const std::size_t part = spec.move_part(buffers.state, buffers.symbols);
      add_row(buffers.row, part, index_of_class(spec.moves().classes(part), static_cast<std::int32_t>(move)),
              rows.moves);
      if (!makes_arc(move)) return;
      const Arc arc = arc_of(buffers.state, move);
      // In trees with several roots, a later root may get an arc that is not in the tree: no label is known.
      if (trees[s].heads[place(arc.child)] != arc.head) return;
      spec.arc_features().extract(situation_of_arc(buffers.state, buffers.symbols, arc), buffers.row);
      const std::size_t arc_part = spec.arc_part(arc, buffers.symbols);
      const std::int32_t label = trees[s].labels[static_cast<std::size_t>(arc.child)];
      add_row(buffers.row, arc_part, index_of_class(spec.arcs().classes(arc_part), label), rows.arcs);
    });
  }
  return rows;
}

}  // namespace unkernel::parsing
