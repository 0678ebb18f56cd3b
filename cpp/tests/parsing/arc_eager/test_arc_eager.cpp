// Any sequence of valid moves gives one tree, canonical moves build every projective tree, and the costs of
// the oracle are the numbers of gold arcs that are lost according to an exhaustive search.
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "check.hpp"
#include "parsing/arc_eager/random_heads.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::parsing;

Heads heads_of(const ArcEagerState& state) {
  Heads heads{no_word};
  for (Word word = 1; word <= static_cast<Word>(state.words()); ++word) heads.push_back(state.head(word));
  return heads;
}

std::vector<Move> valid_moves(const ArcEagerState& state) {
  std::vector<Move> moves;
  for (const Move move : all_moves) {
    if (valid(state, move)) moves.push_back(move);
  }
  return moves;
}

// --- Any moves ---------------------------------------------------------------------------------------

void check_children(const ArcEagerState& state) {
  const Heads heads = heads_of(state);
  for (Word word = 1; word <= static_cast<Word>(state.words()); ++word) {
    std::vector<Word> left, right;  // the outermost first
    for (Word other = 1; other < word; ++other) {
      if (head_of(heads, other) == word) left.push_back(other);
    }
    for (Word other = static_cast<Word>(state.words()); other > word; --other) {
      if (head_of(heads, other) == word) right.push_back(other);
    }
    const auto at = [](const std::vector<Word>& all, std::size_t k) {
      return k < all.size() ? all[k] : no_word;
    };
    CHECK(state.left(word) == at(left, 0) && state.second_left(word) == at(left, 1));
    CHECK(state.right(word) == at(right, 0) && state.second_right(word) == at(right, 1));
    CHECK(state.left_children(word) == static_cast<std::int32_t>(left.size()));
    CHECK(state.right_children(word) == static_cast<std::int32_t>(right.size()));
  }
}

void test_any_valid_moves_make_one_tree(Random& random) {
  ArcEagerState state;  // reused, as parsers do
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::size_t words = 1 + random.below(trial % 100 == 0 ? 200 : 9);
    std::size_t moves = 0;
    for (state.begin(words); !state.finished(); ++moves) {
      const std::vector<Move> possible = valid_moves(state);
      CHECK(!possible.empty() && state.next() != no_word);
      const Move move = possible[random.below(static_cast<std::uint32_t>(possible.size()))];
      apply(state, move, makes_arc(move) ? static_cast<std::int32_t>(moves) : no_label);
      CHECK(moves < 4 * words);
      if (words < 10) check_children(state);
    }
    const Heads heads = heads_of(state);
    CHECK(is_one_tree(heads) && is_projective(heads));
    for (Word word = 1; word <= static_cast<Word>(words); ++word)
      CHECK((state.label(word) == no_label) == (state.head(word) == no_word));
  }
}

void test_a_sentence_without_words() {
  ArcEagerState state;
  state.begin(0);
  CHECK(state.finished() && state.words() == 0 && state.next() == no_word && state.top() == no_word);
}

// The last word returns to the input if it has no head, and may not be shifted again.
void test_headless_words_return_to_the_input() {
  ArcEagerState state;
  state.begin(2);
  apply(state, Move::shift, no_label);
  CHECK(!state.unshifted() && state.stack(0) == 1 && state.stack(1) == no_word && state.input(0) == 2 &&
        state.input(1) == no_word);
  apply(state, Move::shift, no_label);
  CHECK(state.unshifted() && state.next() == 2 && state.top() == 1 && state.end() == 3);
  CHECK((valid_moves(state) == std::vector{Move::left_arc, Move::right_arc}));
  apply(state, Move::left_arc, 0);
  CHECK((valid_moves(state) == std::vector{Move::shift}));
  apply(state, Move::shift, no_label);
  CHECK((state.finished() && heads_of(state) == Heads{0, 2, 0}));
}

// --- Canonical moves ---------------------------------------------------------------------------------

void check_canonical_moves(const Heads& gold) {
  ArcEagerState state;
  for (state.begin(gold.size() - 1); !state.finished();) {
    const Move move = canonical_move(state, gold);
    CHECK(valid(state, move) && cost(state, move, gold) == 0);
    apply(state, move, 0);
  }
  CHECK(heads_of(state) == gold);
}

void test_canonical_moves_build_every_projective_tree(Random& random) {
  for (std::size_t words = 1; words <= 6; ++words) {
    for (const Heads& gold : projective_trees(words)) check_canonical_moves(gold);
  }
  for (int trial = 0; trial < 2'000; ++trial) {
    const Heads gold = random_projective_tree(1 + random.below(40), random);
    CHECK(is_one_tree(gold) && is_projective(gold));
    check_canonical_moves(gold);
  }
}

// --- Costs by exhaustive search ----------------------------------------------------------------------

// A state of arc-eager parsing without UNSHIFT, which ends when no input remains. Words without a head become
// roots.
struct PlainState {
  Word next;
  Word end;
  std::vector<Word> stack;
  std::vector<Word> heads;

  bool operator<(const PlainState& other) const {
    return std::tie(next, end, stack, heads) < std::tie(other.next, other.end, other.stack, other.heads);
  }
};

PlainState plain_state_of(const ArcEagerState& state) {
  return {state.next(), state.end(), {state.stacked().begin(), state.stacked().end()}, heads_of(state)};
}

std::optional<PlainState> apply_move(PlainState state, Move move) {
  const auto head = [&](Word word) -> Word& { return state.heads[static_cast<std::size_t>(word)]; };
  const bool has_top = !state.stack.empty();
  if (move != Move::shift && !has_top) return std::nullopt;
  const Word top = has_top ? state.stack.back() : no_word;
  if (move == Move::reduce && head(top) == no_word) return std::nullopt;
  if (move == Move::left_arc && head(top) != no_word) return std::nullopt;
  if (move == Move::left_arc) head(top) = state.next;
  if (move == Move::right_arc) head(state.next) = top;
  if (move == Move::reduce || move == Move::left_arc) {
    state.stack.pop_back();
  } else {
    state.stack.push_back(state.next++);
  }
  return state;
}

// Finds the largest number of gold heads, including roots, that any sequence of further moves can reach.
class Search {
 public:
  explicit Search(const Heads& gold) : gold_(gold) {}

  int most_gold_heads(const PlainState& state) {
    if (state.next == state.end) return count_gold_heads(state.heads);
    if (const auto cached = cache_.find(state); cached != cache_.end()) return cached->second;
    int best = 0;
    for (const Move move : all_moves) {
      if (const auto next = apply_move(state, move)) best = std::max(best, most_gold_heads(*next));
    }
    return cache_[state] = best;
  }

 private:
  int count_gold_heads(const Heads& heads) const {
    int correct = 0;
    for (std::size_t word = 1; word < heads.size(); ++word) correct += heads[word] == gold_[word];
    return correct;
  }

  const Heads& gold_;
  std::map<PlainState, int> cache_;
};

// Checks the costs in every reachable state.
void check_costs(const Heads& gold) {
  Search search(gold);
  std::set<std::pair<PlainState, bool>> visited;
  ArcEagerState first;
  first.begin(gold.size() - 1);
  std::vector<ArcEagerState> pending{first};
  while (!pending.empty()) {
    const ArcEagerState state = pending.back();
    pending.pop_back();
    if (state.finished() || !visited.insert({plain_state_of(state), state.unshifted()}).second) continue;
    for (const Move move : valid_moves(state)) {
      CHECK(cost(state, move, gold) ==
            search.most_gold_heads(plain_state_of(state)) -
                search.most_gold_heads(apply_move(plain_state_of(state), move).value()));
      pending.push_back(state);
      apply(pending.back(), move, 0);
    }
  }
}

void test_costs_equal_an_exhaustive_search(Random& random) {
  for (std::size_t words = 1; words <= 4; ++words) {
    for (const Heads& gold : projective_trees(words)) check_costs(gold);
  }
  for (int trial = 0; trial < 40; ++trial) check_costs(random_projective_tree(5 + random.below(2), random));
}

}  // namespace

int main() {
  Random random(1);
  test_a_sentence_without_words();
  test_headless_words_return_to_the_input();
  test_any_valid_moves_make_one_tree(random);
  test_canonical_moves_build_every_projective_tree(random);
  test_costs_equal_an_exhaustive_search(random);
  return 0;
}
