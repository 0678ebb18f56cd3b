// Trees as text, built by hand or at random, and forests of such trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/base/random.hpp"
#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/data/trees/forest.hpp"

namespace random_trees {

struct TreeKind {
  int depth;
  std::uint32_t max_width;
  std::uint32_t labels;
  bool words_like_labels;  // some words are spelled like labels
};

inline std::string random_tree(unkernel::Random& random, const TreeKind& kind) {
  std::string text = "(";
  text += static_cast<char>('A' + random.below(kind.labels));
  const std::uint32_t width = 1 + random.below(kind.max_width);
  for (std::uint32_t i = 0; i < width; ++i) {
    text += ' ';
    if (kind.depth > 1 && random.below(3) > 0) {
      text += random_tree(random, {kind.depth - 1, kind.max_width, kind.labels, kind.words_like_labels});
    } else {
      text += static_cast<char>((kind.words_like_labels && random.below(2) == 0 ? 'A' : 'a') +
                                static_cast<int>(random.below(kind.labels)));
    }
  }
  return text + ")";
}

inline unkernel::data::NodeId add(unkernel::data::Forest& forest, std::string_view text) {
  std::size_t at = 0;
  return unkernel::data::BracketReader(forest, unkernel::data::WordStyle::apart).read(text, at);
}

// Returns `(X (X (X x)))`.
inline std::string chain(std::size_t nodes) {
  std::string text;
  for (std::size_t i = 0; i < nodes; ++i) text += "(X ";
  return text + "x" + std::string(nodes, ')');
}

// Returns 0, 1, 2, ..: the offsets of examples with one tree each, or the numbers of all rows.
template <class T>
std::vector<T> numbers(std::size_t count) {
  std::vector<T> all(count);
  std::iota(all.begin(), all.end(), T{0});
  return all;
}

}  // namespace random_trees
