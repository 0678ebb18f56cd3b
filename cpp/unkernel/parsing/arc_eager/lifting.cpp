#include "unkernel/parsing/arc_eager/lifting.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

namespace unkernel::parsing {
namespace {

// The numbers [first, last) of a word's descendants in a walk through the tree.
struct Interval {
  Word first = 0;
  Word last = 0;
  bool contains(const Interval& other) const { return first <= other.first && other.last <= last; }
};

std::vector<Interval> intervals_of(const std::vector<std::vector<Word>>& children) {
  std::vector<Interval> intervals(children.size());
  // Each entry is a word, and how many of its children have been visited.
  std::vector<std::pair<Word, std::size_t>> path{{no_word, 0}};
  Word count = 0;
  intervals[0].first = count++;
  while (!path.empty()) {
    auto& [word, visited_children] = path.back();
    if (visited_children == children[place(word)].size()) {
      intervals[place(word)].last = count;
      path.pop_back();
      continue;
    }
    const Word child = children[place(word)][visited_children++];
    intervals[place(child)].first = count++;
    path.emplace_back(child, 0);
  }
  return intervals;
}

// Returns, for every word, the end of the contiguous run of its descendants on one side (step 1: right; -1:
// left). If a neighbour is a descendant, the run continues where the neighbour's run ends, so every word is
// visited about once.
std::vector<Word> ends_of_runs(std::span<const Interval> intervals, Word step) {
  const auto words = static_cast<Word>(intervals.size()) - 1;
  std::vector<Word> ends(intervals.size());
  const Word first = step > 0 ? words : 1;
  for (Word word = first; word >= 1 && word <= words; word -= step) {
    Word last = word;
    while (last + step >= 1 && last + step <= words &&
           intervals[place(word)].contains(intervals[place(last + step)]))
      last = ends[place(last + step)];
    ends[place(word)] = last;
  }
  return ends;
}

class Lifting {
 public:
  explicit Lifting(std::vector<Word> heads)
      : heads_(std::move(heads)),
        children_(children_of(heads_)),
        crosses_(heads_.size()),
        marked_by_(heads_.size()) {
    const std::vector<Interval> intervals = intervals_of(children_);
    const std::vector<Word> right = ends_of_runs(intervals, 1), left = ends_of_runs(intervals, -1);
    for (Word word = 1; place(word) < heads_.size(); ++word) {
      const Word head = heads_[place(word)];
      if (head == no_word) continue;  // every word descends from the root
      const bool is_crossing = word > head ? right[place(head)] < word - 1 : left[place(head)] > word + 1;
      if (is_crossing) add(word);
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

  // Finds the arcs of `head` that become crossing because `word` and its descendants are no longer below
  // `head`.
  void find_arcs_above(Word word, Word head) {
    const auto& siblings = children_[place(head)];
    if (std::ranges::all_of(siblings, [&](Word child) { return crosses_[place(child)]; })) return;
    // The nearest moved words on both sides of the head.
    Word left = no_word, right = static_cast<Word>(heads_.size());
    moved_words_.assign(1, word);
    while (!moved_words_.empty()) {
      const Word moved = moved_words_.back();
      moved_words_.pop_back();
      if (moved < head) {
        left = std::max(left, moved);
      } else {
        right = std::min(right, moved);
      }
      moved_words_.insert(moved_words_.end(), children_[place(moved)].begin(), children_[place(moved)].end());
    }
    for (const Word child : siblings) {
      if (!crosses_[place(child)] && (child < head ? child < left : child > right)) add(child);
    }
  }

  // Returns whether a word between head and child does not descend from the head. Marks words that do, so
  // that no path is followed twice.
  bool spans_non_descendant(Word head, Word child) {
    ++search_;
    marked_by_[place(head)] = search_;
    for (Word word = std::min(child, head) + 1; word < std::max(child, head); ++word) {
      Word ancestor = word;
      while (ancestor != no_word && marked_by_[place(ancestor)] != search_)
        ancestor = heads_[place(ancestor)];
      if (ancestor == no_word) return true;
      for (Word on_path = word; marked_by_[place(on_path)] != search_; on_path = heads_[place(on_path)])
        marked_by_[place(on_path)] = search_;
    }
    return false;
  }

  std::vector<Word> heads_;
  std::vector<std::vector<Word>> children_;
  std::vector<bool> crosses_;
  std::set<std::pair<Word, Word>> crossing_;  // arc length and word: the shortest arc comes first
  std::vector<std::int64_t> marked_by_;       // by word: the last search that marked it
  std::int64_t search_ = 0;
  std::vector<Word> moved_words_;
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
