#include "unkernel/parsing/arc_eager/lifting.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

namespace unkernel::parsing {
namespace {

// The descendants of a word, numbered [first, last) in a walk through the tree.
struct Interval {
  Word first = 0;
  Word last = 0;
  bool contains(const Interval& other) const { return first <= other.first && other.last <= last; }
};

std::vector<Interval> intervals_of(const std::vector<std::vector<Word>>& children) {
  std::vector<Interval> intervals(children.size());
  std::vector<std::pair<Word, std::size_t>> path{
      {no_word, 0}};  // words, and how many of their children have been visited
  Word count = 0;
  intervals[0].first = count++;
  while (!path.empty()) {
    auto& [word, done] = path.back();
    if (done == children[place(word)].size()) {
      intervals[place(word)].last = count;
      path.pop_back();
      continue;
    }
    const Word child = children[place(word)][done++];
    intervals[place(child)].first = count++;
    path.emplace_back(child, 0);
  }
  return intervals;
}

// Returns for every word how far its descendants extend without a gap to one side (step 1: right; -1: left):
// the last of these descendants. A neighbour that is a descendant adds all words that it reaches itself, so
// every word is visited about once.
std::vector<Word> reaches(std::span<const Interval> intervals, Word step) {
  const auto words = static_cast<Word>(intervals.size()) - 1;
  std::vector<Word> reach(intervals.size());
  const Word first = step > 0 ? words : 1;
  for (Word word = first; word >= 1 && word <= words; word -= step) {
    Word last = word;
    while (last + step >= 1 && last + step <= words &&
           intervals[place(word)].contains(intervals[place(last + step)]))
      last = reach[place(last + step)];
    reach[place(word)] = last;
  }
  return reach;
}

class Lifting {
 public:
  explicit Lifting(std::vector<Word> heads)
      : heads_(std::move(heads)),
        children_(children_of(heads_)),
        crosses_(heads_.size()),
        seen_(heads_.size()) {
    const std::vector<Interval> intervals = intervals_of(children_);
    const std::vector<Word> right = reaches(intervals, 1), left = reaches(intervals, -1);
    for (Word word = 1; place(word) < heads_.size(); ++word) {
      const Word head = heads_[place(word)];
      if (head == no_word) continue;  // encloses everything: no word can be lifted above it
      if (word > head ? right[place(head)] < word - 1 : left[place(head)] > word + 1) add(word);
    }
  }

  std::vector<Word> run(const Monitor& monitor) && {
    while (!crossing_.empty()) {
      monitor.throw_if_stopped();
      lift(crossing_.begin()->second);
    }
    return std::move(heads_);
  }

 private:
  Word length(Word word) const { return std::abs(word - heads_[place(word)]); }
  void add(Word word) {
    crosses_[place(word)] = true;
    crossing_.emplace(length(word), word);
  }

  void lift(Word word) {
    crossing_.erase({length(word), word});
    crosses_[place(word)] = false;
    const Word from = heads_[place(word)];
    const Word to = heads_[place(from)];
    std::erase(children_[place(from)], word);
    children_[place(to)].push_back(word);
    heads_[place(word)] = to;
    find_arcs_above(word, from);
    if (to != no_word && spans_non_descendant(to, word)) add(word);
  }

  // Finds the arcs of `head` that cross others now that `word` and its descendants are no longer below
  // `head`.
  void find_arcs_above(Word word, Word head) {
    const auto& siblings = children_[place(head)];
    if (std::ranges::all_of(siblings, [&](Word child) { return crosses_[place(child)]; })) return;
    Word left = no_word,
         right = static_cast<Word>(heads_.size());  // the nearest moved words on both sides of the head
    below_.assign(1, word);
    while (!below_.empty()) {
      const Word moved = below_.back();
      below_.pop_back();
      (moved < head ? left : right) = moved < head ? std::max(left, moved) : std::min(right, moved);
      below_.insert(below_.end(), children_[place(moved)].begin(), children_[place(moved)].end());
    }
    for (const Word child : siblings) {
      if (!crosses_[place(child)] && (child < head ? child < left : child > right)) add(child);
    }
  }

  // Returns whether some word below the arc does not descend from its head. Marks the words that do, so that
  // no path is followed twice.
  bool spans_non_descendant(Word head, Word child) {
    ++search_;
    seen_[place(head)] = search_;
    for (Word word = std::min(child, head) + 1; word < std::max(child, head); ++word) {
      Word ancestor = word;
      while (ancestor != no_word && seen_[place(ancestor)] != search_) ancestor = heads_[place(ancestor)];
      if (ancestor == no_word) return true;
      for (Word on_path = word; seen_[place(on_path)] != search_; on_path = heads_[place(on_path)])
        seen_[place(on_path)] = search_;
    }
    return false;
  }

  std::vector<Word> heads_;
  std::vector<std::vector<Word>> children_;
  std::vector<bool> crosses_;
  std::set<std::pair<Word, Word>> crossing_;  // lengths and words: the shortest arc first
  std::vector<std::int64_t> seen_;            // the last search that has marked a word
  std::int64_t search_ = 0;
  std::vector<Word> below_;
};

}  // namespace

std::vector<std::vector<Word>> children_of(std::span<const Word> heads) {
  std::vector<std::vector<Word>> children(heads.size());
  for (Word word = 1; place(word) < heads.size(); ++word) children[place(heads[place(word)])].push_back(word);
  return children;
}

std::vector<Word> lifted_heads(std::vector<Word> heads, const Monitor& monitor) {
  return Lifting(std::move(heads)).run(monitor);
}

}  // namespace unkernel::parsing
