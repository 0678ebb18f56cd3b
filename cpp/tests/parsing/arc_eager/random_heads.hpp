// Dependency trees for tests: all trees of a few words, and random trees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "unkernel/base/random.hpp"
#include "unkernel/parsing/arc_eager/transitions.hpp"

namespace unkernel::parsing {

// The head of each word; index 0 is unused, as in GoldHeads.
using Heads = std::vector<Word>;

inline Word head_of(const Heads& heads, Word word) { return heads[static_cast<std::size_t>(word)]; }

inline bool is_below(const Heads& heads, Word word, Word ancestor) {
  for (std::size_t steps = 0; word != no_word && word != ancestor && steps < heads.size(); ++steps)
    word = head_of(heads, word);
  return word == ancestor;
}

// Returns whether every word leads to a single root.
inline bool is_one_tree(const Heads& heads) {
  if (std::count(heads.begin() + 1, heads.end(), no_word) != 1) return false;
  for (Word word = 1; word < static_cast<Word>(heads.size()); ++word) {
    if (!is_below(heads, word, no_word)) return false;
  }
  return true;
}

// Returns whether all words between a word and its head descend from that head.
inline bool is_projective(const Heads& heads) {
  for (Word word = 1; word < static_cast<Word>(heads.size()); ++word) {
    const Word head = head_of(heads, word);
    if (head == no_word) continue;
    for (Word inner = std::min(word, head) + 1; inner < std::max(word, head); ++inner) {
      if (!is_below(heads, inner, head)) return false;
    }
  }
  return true;
}

// Returns all trees with this number of words.
inline std::vector<Heads> all_trees(std::size_t words) {
  std::vector<Heads> trees;
  Heads heads(words + 1, 0);
  for (;;) {
    if (is_one_tree(heads)) trees.push_back(heads);
    std::size_t word = 1;
    while (word <= words && heads[word] == static_cast<Word>(words)) heads[word++] = 0;
    if (word > words) return trees;
    ++heads[word];
  }
}

inline std::vector<Heads> projective_trees(std::size_t words) {
  std::vector<Heads> trees = all_trees(words);
  std::erase_if(trees, [](const Heads& heads) { return !is_projective(heads); });
  return trees;
}

// Makes a random tree: takes words in random order and attaches each to an earlier one.
inline Heads random_tree(std::size_t words, Random& random) {
  std::vector<Word> order(words);
  for (std::size_t k = 0; k < words; ++k) order[k] = static_cast<Word>(k) + 1;
  random.shuffle(std::span(order));
  Heads heads(words + 1, no_word);
  for (std::size_t k = 1; k < words; ++k)
    heads[static_cast<std::size_t>(order[k])] = order[random.below(static_cast<std::uint32_t>(k))];
  return heads;
}

// Attaches the words [first, last) to `head` as random projective trees: chooses a root for some of the
// words, and attaches the words on both sides of the root to it.
inline void hang_projectively(Word first, Word last, Word head, Heads& heads, Random& random) {
  while (first < last) {
    const Word end = first + 1 + static_cast<Word>(random.below(static_cast<std::uint32_t>(last - first)));
    const Word root = first + static_cast<Word>(random.below(static_cast<std::uint32_t>(end - first)));
    heads[static_cast<std::size_t>(root)] = head;
    hang_projectively(first, root, root, heads, random);
    hang_projectively(root + 1, end, root, heads, random);
    if (head == no_word) {  // a sentence has only one root, so the remaining words attach to it
      hang_projectively(end, last, root, heads, random);
      return;
    }
    first = end;
  }
}

inline Heads random_projective_tree(std::size_t words, Random& random) {
  Heads heads(words + 1, no_word);
  hang_projectively(1, static_cast<Word>(words) + 1, no_word, heads, random);
  return heads;
}

}  // namespace unkernel::parsing
