// Arc-eager parsing: greedy (one decision after another, without backtracking) or with the beam of beam.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/parsing/arc_eager/spec.hpp"

namespace unkernel::parsing {

// The buffers of a parse, reused for each sentence.
struct ParseBuffers {
  SentenceSymbols symbols;
  ArcEagerState state;
  FeatureRow row;
  LabelledTree tree;
};

// Returns the valid move with the largest score. If no class of the classifier is valid, returns the first
// valid move.
template <class Score>
Move best_move(const ArcEagerState& state, std::span<const std::int32_t> classes,
               std::span<const Score> scores) {
  const std::int32_t* best = nullptr;
  Score highest{};
  for (std::size_t k = 0; k < classes.size(); ++k) {
    if ((best == nullptr || scores[k] > highest) && valid(state, static_cast<Move>(classes[k]))) {
      best = &classes[k];
      highest = scores[k];
    }
  }
  if (best != nullptr) return static_cast<Move>(*best);
  for (const Move move : all_moves) {
    if (valid(state, move)) return move;
  }
  return Move::shift;
}

template <class Score>
std::size_t best_class(std::span<const Score> scores) {
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// Chooses the label of an arc. A Scorer has move_scores(part, columns), which returns one score per class of
// the part. Its decided_moves and decided_arcs may stop as soon as the largest score is certain.
template <class Scorer>
std::int32_t choose_label(const ArcEagerSpec& spec, Scorer& scorer, const Arc& arc, ParseBuffers& buffers) {
  const std::size_t part = spec.arc_part(arc, buffers.symbols);
  const auto& classes = spec.arcs().classes(part);
  if (classes.size() == 1) return classes.front();
  spec.arc_features().extract(situation_of_arc(buffers.state, buffers.symbols, arc), buffers.row);
  return classes[best_class(scorer.decided_arcs(part, buffers.row.columns))];
}

template <class Scorer>
Move choose_move(const ArcEagerSpec& spec, Scorer& scorer, ParseBuffers& buffers) {
  if (buffers.state.top() == no_word) return Move::shift;  // the only valid move
  const std::size_t part = spec.move_part(buffers.state, buffers.symbols);
  spec.move_features().extract(before_move(buffers.state, buffers.symbols), buffers.row);
  const auto& classes = spec.moves().classes(part);
  const auto move = static_cast<Move>(classes[best_class(scorer.decided_moves(part, buffers.row.columns))]);
  if (valid(buffers.state, move)) return move;
  return best_move(buffers.state, std::span(classes), scorer.move_scores(part, buffers.row.columns));
}

// Stores the tree of the finished state in the buffers.
inline void store_tree(const ArcEagerSpec& spec, ParseBuffers& buffers, const Monitor& monitor) {
  const ArcEagerState& state = buffers.state;
  const std::size_t words = buffers.symbols.words();
  buffers.tree.heads.assign(words + 1, no_word);
  buffers.tree.labels.assign(words + 1, spec.root_label());
  for (Word word = 1; word <= static_cast<Word>(words); ++word) {
    if (state.head(word) == no_word) continue;
    buffers.tree.heads[place(word)] = state.head(word);
    buffers.tree.labels[place(word)] = state.label(word);
  }
  deprojectivise(buffers.tree, spec.labels(), monitor);
}

// Parses the sentence whose symbols are in the buffers, and stores its tree in them.
template <class Scorer>
void parse(const ArcEagerSpec& spec, Scorer& scorer, ParseBuffers& buffers, const Monitor& monitor) {
  ArcEagerState& state = buffers.state;
  for (state.begin(buffers.symbols.words()); !state.finished();) {
    monitor.throw_if_stopped();  // a sentence may be long
    const Move move = choose_move(spec, scorer, buffers);
    apply(state, move, makes_arc(move) ? choose_label(spec, scorer, arc_of(state, move), buffers) : no_label);
  }
  store_tree(spec, buffers, monitor);
}

// The engines of the parts, one each; null for a part with a single class.
struct ParserEngines {
  std::vector<const engines::Engine*> moves;
  std::vector<const engines::Engine*> arcs;
};

// Throws std::invalid_argument unless every part has an engine with the required number of scores.
void check(const ArcEagerSpec& spec, const ParserEngines& engines);

// The head of each token, counted from 1 in its sentence (0: the root), and the number of its label. The
// number of threads does not change the result.
struct Parsed {
  std::vector<std::int32_t> heads;
  std::vector<std::int32_t> labels;
};
struct ParseOptions {
  std::size_t beam;  // 1 for a greedy parse
  int threads;
};
Parsed parse(const ArcEagerSpec& spec, const ParserEngines& engines, const data::ColumnText& text,
             const ParseOptions& options, const Monitor& monitor);

// Training rows, one per canonical move of a treebank, or one per arc that these moves make.
struct DecisionRows {
  std::vector<std::int64_t> offsets{0};  // rows + 1, into the columns
  std::vector<std::int32_t> columns;
  std::vector<std::int32_t> parts;    // of the rows
  std::vector<std::int32_t> classes;  // of the rows, as indices into the classes of the part
};
struct OracleRows {
  DecisionRows moves;
  DecisionRows arcs;
};
// Returns training rows. Throws std::invalid_argument unless the trees were made from this text.
OracleRows oracle_rows(const ArcEagerSpec& spec, const data::ColumnText& text,
                       std::span<const LabelledTree> trees, const Monitor& monitor);

// Throws std::invalid_argument unless there is one tree per sentence, with as many words as the sentence.
void check_same_sentences(const data::ColumnText& text, std::span<const LabelledTree> trees);

}  // namespace unkernel::parsing
