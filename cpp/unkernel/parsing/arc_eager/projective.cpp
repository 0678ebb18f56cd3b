#include "unkernel/parsing/arc_eager/projective.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace unkernel::parsing {
namespace {

constexpr std::string_view lifted_mark = "\u2191";

std::size_t place(Word word) { return static_cast<std::size_t>(word); }

bool leads_to(const std::vector<Word>& heads, Word word, Word ancestor) {
  while (word != no_word && word != ancestor) word = heads[place(word)];
  return word == ancestor;
}

// Whether some word below the arc does not descend from its head.
bool crosses(const std::vector<Word>& heads, Word child) {
  const Word head = heads[place(child)];
  const Word first = std::min(child, head) + 1;
  for (Word word = first; word < std::max(child, head); ++word) {
    if (!leads_to(heads, word, head)) return true;
  }
  return false;
}

// Arcs to the root enclose everything: no word can be lifted above them.
Word shortest_crossing(const std::vector<Word>& heads, const Monitor& monitor) {
  Word shortest = no_word;
  Word length = 0;
  for (Word word = 1; place(word) < heads.size(); ++word) {
    monitor.throw_if_stopped();
    const Word head = heads[place(word)];
    const Word reach = std::abs(word - head);
    if (head != no_word && (shortest == no_word || reach < length) && crosses(heads, word)) {
      shortest = word;
      length = reach;
    }
  }
  return shortest;
}

// The nearest word with this label below `head`, but not below `lifted`: level by level, from left to right.
Word nearest_below(const LabelledTree& tree, const LabelSet& labels, Word head, Word lifted,
                   std::int32_t label) {
  std::vector<Word> level{head};
  while (!level.empty()) {
    std::vector<Word> below;
    for (Word word = 1; place(word) < tree.heads.size(); ++word) {
      if (word == lifted || !std::binary_search(level.begin(), level.end(), tree.heads[place(word)]))
        continue;
      if (labels.plain(tree.labels[place(word)]) == label) return word;
      below.push_back(word);
    }
    level = std::move(below);
  }
  return no_word;
}

}  // namespace

std::int32_t LabelSet::add(std::string_view name) {
  const std::int32_t number = names_.add(name);
  if (place(number) == parts_.size()) parts_.push_back({number, no_label});
  return number;
}

std::int32_t LabelSet::add_lifted(std::int32_t label, std::int32_t head_label) {
  const std::string joined = std::string(name(label)).append(lifted_mark).append(name(head_label));
  const std::int32_t number = names_.add(joined);
  if (place(number) == parts_.size()) parts_.push_back({label, head_label});
  return number;
}

std::size_t projectivise(LabelledTree& tree, LabelSet& labels, const Monitor& monitor) {
  const LabelledTree original = tree;
  std::size_t lifted = 0;
  for (Word word = shortest_crossing(tree.heads, monitor); word != no_word;
       word = shortest_crossing(tree.heads, monitor)) {
    tree.heads[place(word)] = tree.heads[place(tree.heads[place(word)])];
  }
  for (std::size_t word = 1; word < tree.heads.size(); ++word) {
    if (tree.heads[word] == original.heads[word]) continue;
    tree.labels[word] =
        labels.add_lifted(original.labels[word], original.labels[place(original.heads[word])]);
    ++lifted;
  }
  return lifted;
}

void deprojectivise(LabelledTree& tree, const LabelSet& labels) {
  for (Word word = 1; place(word) < tree.heads.size(); ++word) {
    const std::int32_t wanted = labels.head_label(tree.labels[place(word)]);
    if (wanted == no_label) continue;
    const Word head = nearest_below(tree, labels, tree.heads[place(word)], word, wanted);
    tree.labels[place(word)] = labels.plain(tree.labels[place(word)]);
    if (head != no_word) tree.heads[place(word)] = head;
  }
}

}  // namespace unkernel::parsing
