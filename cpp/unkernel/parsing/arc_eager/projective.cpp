#include "unkernel/parsing/arc_eager/projective.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "unkernel/parsing/arc_eager/lifting.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::string_view lifted_mark = "\u2191";

// Returns the nearest word with this label below the head of `lifted`, but not below `lifted` itself.
// Searches level by level, from left to right.
Word nearest_below(const LabelledTree& tree, const LabelSet& labels,
                   const std::vector<std::vector<Word>>& children, Word lifted, std::int32_t label) {
  std::vector<Word> level{tree.heads[place(lifted)]};
  while (!level.empty()) {
    std::vector<Word> below;
    for (const Word word : level) {
      for (const Word child : children[place(word)]) {
        if (child != lifted) below.push_back(child);
      }
    }
    std::ranges::sort(below);
    const auto match = std::ranges::find_if(
        below, [&](Word word) { return labels.plain(tree.labels[place(word)]) == label; });
    if (match != below.end()) return *match;
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
  tree.heads = lifted_heads(std::move(tree.heads), monitor);
  std::size_t lifted = 0;
  for (std::size_t word = 1; word < tree.heads.size(); ++word) {
    if (tree.heads[word] == original.heads[word]) continue;
    tree.labels[word] =
        labels.add_lifted(original.labels[word], original.labels[place(original.heads[word])]);
    ++lifted;
  }
  return lifted;
}

void deprojectivise(LabelledTree& tree, const LabelSet& labels, const Monitor& monitor) {
  // Computed when the first lifted word is found, because most trees have none.
  std::vector<std::vector<Word>> children;
  for (Word word = 1; place(word) < tree.heads.size(); ++word) {
    const std::int32_t head_label = labels.head_label(tree.labels[place(word)]);
    if (head_label == no_label) continue;
    monitor.throw_if_stopped();  // each search may visit the whole tree
    if (children.empty()) children = children_of(tree.heads);
    const Word head = nearest_below(tree, labels, children, word, head_label);
    tree.labels[place(word)] = labels.plain(tree.labels[place(word)]);
    if (head == no_word) continue;
    std::erase(children[place(tree.heads[place(word)])], word);
    children[place(head)].push_back(word);
    tree.heads[place(word)] = head;
  }
}

}  // namespace unkernel::parsing
