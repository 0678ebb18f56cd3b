// Arc-eager parsing: greedy, with one decision after another and no backtracking, or with the beam of
// beam.hpp.
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

// The buffers for parsing a sentence, reused.
struct ParseRoom {
  SentenceSymbols symbols;
  ArcEagerState state;
  FeatureRow row;
  LabelledTree tree;
};

// Returns the valid move with the largest score; if the classifier knows no valid move, the first valid one.
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

// A Scorer has move_scores(part, columns), with one score per class of the part; and decided_moves and
// decided_arcs, which may stop as soon as the largest score is certain.
template <class Scorer>
std::int32_t choose_label(const ArcEagerSpec& spec, Scorer& scorer, const Arc& arc, ParseRoom& room) {
  const std::size_t part = spec.arc_part(arc, room.symbols);
  const auto& classes = spec.arcs().classes(part);
  if (classes.size() == 1) return classes.front();
  spec.arc_features().extract(of_arc(room.state, room.symbols, arc), room.row);
  return classes[best_class(scorer.decided_arcs(part, room.row.columns))];
}

template <class Scorer>
Move choose_move(const ArcEagerSpec& spec, Scorer& scorer, ParseRoom& room) {
  if (room.state.top() == no_word) return Move::shift;  // the only valid move
  const std::size_t part = spec.move_part(room.state, room.symbols);
  spec.move_features().extract(before_move(room.state, room.symbols), room.row);
  const auto& classes = spec.moves().classes(part);
  const auto favourite = static_cast<Move>(classes[best_class(scorer.decided_moves(part, room.row.columns))]);
  if (valid(room.state, favourite)) return favourite;
  return best_move(room.state, std::span(classes), scorer.move_scores(part, room.row.columns));
}

// Leaves the tree of the finished state in the room.
inline void take_tree(const ArcEagerSpec& spec, ParseRoom& room, const Monitor& monitor) {
  const ArcEagerState& state = room.state;
  const std::size_t words = room.symbols.words();
  room.tree.heads.assign(words + 1, no_word);
  room.tree.labels.assign(words + 1, spec.root_label());
  for (Word word = 1; word <= static_cast<Word>(words); ++word) {
    if (state.head(word) == no_word) continue;
    room.tree.heads[place(word)] = state.head(word);
    room.tree.labels[place(word)] = state.label(word);
  }
  deprojectivise(room.tree, spec.labels(), monitor);
}

// Parses the sentence whose symbols are in the room, and leaves its tree there.
template <class Scorer>
void parse(const ArcEagerSpec& spec, Scorer& scorer, ParseRoom& room, const Monitor& monitor) {
  ArcEagerState& state = room.state;
  for (state.begin(room.symbols.words()); !state.finished();) {
    monitor.throw_if_stopped();  // sentences may be long
    const Move move = choose_move(spec, scorer, room);
    apply(state, move, makes_arc(move) ? choose_label(spec, scorer, arc_of(state, move), room) : no_label);
  }
  take_tree(spec, room, monitor);
}

// One engine per part; null for a part with a single class.
struct ParserEngines {
  std::vector<const engines::Engine*> moves;
  std::vector<const engines::Engine*> arcs;
};

// Throws std::invalid_argument unless every part has an engine with the required number of scores.
void check(const ArcEagerSpec& spec, const ParserEngines& engines);

// The result for each token of the text: its head, counted from 1 in its sentence (0: the root), and the
// number of its label. Does not depend on the number of threads.
struct Parsed {
  std::vector<std::int32_t> heads;
  std::vector<std::int32_t> labels;
};
struct ParseOptions {
  std::size_t beam;  // 1: greedy
  int threads;
};
Parsed parse(const ArcEagerSpec& spec, const ParserEngines& engines, const data::ColumnText& text,
             const ParseOptions& options, const Monitor& monitor);

// Training rows from the canonical moves of a treebank and their arcs: the concatenated columns of all rows,
// where each row begins, its part and its class (as an index into the part's classes).
struct DecisionRows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<std::int32_t> parts;
  std::vector<std::int32_t> classes;
};
struct OracleRows {
  DecisionRows moves;
  DecisionRows arcs;
};
// Throws std::invalid_argument unless the trees were made from this text.
OracleRows oracle_rows(const ArcEagerSpec& spec, const data::ColumnText& text,
                       std::span<const LabelledTree> trees, const Monitor& monitor);

// Throws std::invalid_argument unless there is one tree per sentence, with the same number of words.
void check_same_sentences(const data::ColumnText& text, std::span<const LabelledTree> trees);

}  // namespace unkernel::parsing
