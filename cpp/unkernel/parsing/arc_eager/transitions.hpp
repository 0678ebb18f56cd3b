// The arc-eager transition system (Nivre 2003), as in section 5 of Chang et al. 2010: a stack, the remaining
// words, and the arcs made so far.
//
//   SHIFT      pushes the next word
//   REDUCE     pops the top, which has a head
//   LEFT-ARC   makes the next word the head of the top, which has no head yet, and pops the top
//   RIGHT-ARC  makes the top the head of the next word, and pushes the next word
//
// Every sentence gets a single tree: if no words remain and the top has no head, the top becomes the next
// word again (UNSHIFT of Nivre & Fernandez-Gonzalez 2014). Such a word may be shifted again only if the stack
// is empty. The last word without a head is the root. Every word is shifted once, unshifted at most once, and
// popped, so a sentence of n words takes less than 4n transitions.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::parsing {

// Words count from 1. 0 means no word or, as a head, the root of the sentence.
using Word = std::int32_t;
constexpr Word no_word = 0;
constexpr std::int32_t no_label = -1;

// Returns the index of a word in arrays with one entry per word.
constexpr std::size_t place(Word word) { return static_cast<std::size_t>(word); }

// The gold head of each word; index 0 is unused.
using GoldHeads = std::span<const Word>;

class ArcEagerState {
 public:
  void begin(std::size_t words) {
    next_ = 1;
    end_ = static_cast<Word>(words) + 1;
    unshifted_ = false;
    stack_.clear();
    nodes_.assign(words + 1, Node{});
  }

  bool finished() const { return next_ == end_ && stack_.empty(); }

  Word next() const { return next_ < end_ ? next_ : no_word; }
  // Returns the k-th remaining word, counted from 0.
  Word input(std::int32_t k) const { return next_ + k < end_ ? next_ + k : no_word; }
  // Returns the k-th word of the stack, counted from 0 at the top.
  Word stack(std::int32_t k) const {
    const auto depth = static_cast<std::size_t>(k);
    return depth < stack_.size() ? stack_[stack_.size() - 1 - depth] : no_word;
  }
  Word top() const { return stack_.empty() ? no_word : stack_.back(); }
  std::span<const Word> stacked() const { return stack_; }
  Word end() const { return end_; }
  // Returns whether the next word has been on the stack before.
  bool unshifted() const { return unshifted_; }

  std::size_t words() const { return nodes_.size() - 1; }
  Word head(Word word) const { return node(word).head; }
  std::int32_t label(Word word) const { return node(word).label; }
  // Return the outermost child on each side, and the child next to it.
  Word left(Word word) const { return node(word).left; }
  Word second_left(Word word) const { return node(word).second_left; }
  Word right(Word word) const { return node(word).right; }
  Word second_right(Word word) const { return node(word).second_right; }
  std::int32_t left_children(Word word) const { return node(word).left_children; }
  std::int32_t right_children(Word word) const { return node(word).right_children; }

  void push_next() {
    stack_.push_back(next_++);
    unshifted_ = false;
    unshift_headless();
  }
  void pop() {
    stack_.pop_back();
    unshift_headless();
  }
  // Attaches a child. On both sides, children are attached from the inside outwards.
  void attach(Word head, Word child, std::int32_t label) {
    nodes_[place(child)].head = head;
    nodes_[place(child)].label = label;
    Node& parent = nodes_[place(head)];
    if (child < head) {
      parent.second_left = parent.left;
      parent.left = child;
      ++parent.left_children;
    } else {
      parent.second_right = parent.right;
      parent.right = child;
      ++parent.right_children;
    }
  }

 private:
  struct Node {
    Word head = no_word;
    std::int32_t label = no_label;
    Word left = no_word;
    Word second_left = no_word;
    Word right = no_word;
    Word second_right = no_word;
    std::int32_t left_children = 0;
    std::int32_t right_children = 0;
  };

  const Node& node(Word word) const { return nodes_[place(word)]; }

  // If no words remain, pops words up to one without a head, and makes this word the next word again.
  void unshift_headless() {
    while (next_ == end_ && !stack_.empty()) {
      const Word last = stack_.back();
      stack_.pop_back();
      if (node(last).head == no_word && !stack_.empty()) {
        next_ = last;
        end_ = last + 1;
        unshifted_ = true;
      }
    }
  }

  Word next_ = 1;
  Word end_ = 1;
  bool unshifted_ = false;
  std::vector<Word> stack_;
  std::vector<Node> nodes_;
};

// --- The transitions -----------------------------------------------------------------------------------
//
// `cost` counts the gold arcs that are possible before the move and impossible after it: the dynamic oracle
// of Goldberg & Nivre 2012. It is exact for projective trees in the system without UNSHIFT. An arc that needs
// an UNSHIFT counts as lost, so that moves do not depend on a later UNSHIFT. Being the root counts as an arc.

namespace oracle {

// Returns the number of gold arcs between the next word and words on the stack. They are the arc to its gold
// head, if this is on the stack and is not `except`, and the arcs to its gold children on the stack without a
// head.
inline int arcs_to_stack(const ArcEagerState& state, GoldHeads gold, Word except) {
  const Word next = state.next();
  int arcs = 0;
  for (const Word word : state.stacked()) {
    arcs += word != except && gold[static_cast<std::size_t>(next)] == word;
    arcs += state.head(word) == no_word && gold[static_cast<std::size_t>(word)] == next;
  }
  return arcs;
}

// Returns how many gold children of a word are the next word or come after it.
inline int children_to_come(const ArcEagerState& state, GoldHeads gold, Word parent) {
  const auto first = gold.begin() + state.next();
  return static_cast<int>(std::count(first, gold.begin() + state.end(), parent));
}

// Returns whether the gold head of the word is a remaining word other than `new_head`, or the word is the
// root.
inline bool awaits_other_head(const ArcEagerState& state, GoldHeads gold, Word word, Word new_head) {
  const Word head = gold[static_cast<std::size_t>(word)];
  return head == no_word || (head != new_head && head >= state.next() && head < state.end());
}

}  // namespace oracle

struct Shift {
  static bool valid(const ArcEagerState& state) { return !state.unshifted() || state.top() == no_word; }
  static int cost(const ArcEagerState& state, GoldHeads gold) {
    return oracle::arcs_to_stack(state, gold, no_word);
  }
  static void apply(ArcEagerState& state) { state.push_next(); }
};

struct Reduce {
  static bool valid(const ArcEagerState& state) {
    return state.top() != no_word && state.head(state.top()) != no_word;
  }
  static int cost(const ArcEagerState& state, GoldHeads gold) {
    return oracle::children_to_come(state, gold, state.top());
  }
  static void apply(ArcEagerState& state) { state.pop(); }
};

struct LeftArc {
  static bool valid(const ArcEagerState& state) {
    return state.top() != no_word && state.head(state.top()) == no_word;
  }
  static int cost(const ArcEagerState& state, GoldHeads gold) {
    return oracle::children_to_come(state, gold, state.top()) +
           oracle::awaits_other_head(state, gold, state.top(), state.next());
  }
  static void apply(ArcEagerState& state, std::int32_t label) {
    state.attach(state.next(), state.top(), label);
    state.pop();
  }
};

struct RightArc {
  static bool valid(const ArcEagerState& state) { return state.top() != no_word; }
  static int cost(const ArcEagerState& state, GoldHeads gold) {
    return oracle::arcs_to_stack(state, gold, state.top()) +
           oracle::awaits_other_head(state, gold, state.next(), state.top());
  }
  static void apply(ArcEagerState& state, std::int32_t label) {
    state.attach(state.top(), state.next(), label);
    state.push_next();
  }
};

enum class Move : std::uint8_t { shift, reduce, left_arc, right_arc };
constexpr std::size_t move_count = 4;
constexpr Move all_moves[move_count] = {Move::shift, Move::reduce, Move::left_arc, Move::right_arc};

constexpr bool makes_arc(Move move) { return move == Move::left_arc || move == Move::right_arc; }

// The words that a LEFT-ARC or RIGHT-ARC would join.
struct Arc {
  Word head;
  Word child;
};
inline Arc arc_of(const ArcEagerState& state, Move move) {
  assert(makes_arc(move));
  return move == Move::left_arc ? Arc{state.next(), state.top()} : Arc{state.top(), state.next()};
}

inline bool valid(const ArcEagerState& state, Move move) {
  switch (move) {
    case Move::shift: return Shift::valid(state);
    case Move::reduce: return Reduce::valid(state);
    case Move::left_arc: return LeftArc::valid(state);
    case Move::right_arc: return RightArc::valid(state);
  }
  return false;
}

inline int cost(const ArcEagerState& state, Move move, GoldHeads gold) {
  switch (move) {
    case Move::shift: return Shift::cost(state, gold);
    case Move::reduce: return Reduce::cost(state, gold);
    case Move::left_arc: return LeftArc::cost(state, gold);
    case Move::right_arc: return RightArc::cost(state, gold);
  }
  return 0;
}

// Applies a move. If the move makes an arc, the arc gets `label`.
inline void apply(ArcEagerState& state, Move move, std::int32_t label) {
  switch (move) {
    case Move::shift: return Shift::apply(state);
    case Move::reduce: return Reduce::apply(state);
    case Move::left_arc: return LeftArc::apply(state, label);
    case Move::right_arc: return RightArc::apply(state, label);
  }
}

// Returns the move of the canonical sequence. Among the moves with the lowest cost, prefers arcs, then SHIFT,
// then REDUCE.
inline Move canonical_move(const ArcEagerState& state, GoldHeads gold) {
  constexpr Move preference[] = {Move::left_arc, Move::right_arc, Move::shift, Move::reduce};
  Move best = Move::shift;
  int lowest_cost = -1;
  for (const Move move : preference) {
    if (!valid(state, move)) continue;
    const int arcs_lost = cost(state, move, gold);
    if (lowest_cost < 0 || arcs_lost < lowest_cost) {
      lowest_cost = arcs_lost;
      best = move;
    }
  }
  return best;
}

}  // namespace unkernel::parsing
