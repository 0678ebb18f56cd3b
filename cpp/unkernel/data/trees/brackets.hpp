// Reads and writes trees in bracket notation: `(S (NP (DT the) (NN dog)) (VP barks))`.
//
// A node is `(label child ...)`; a child is a node or a word, and a word is a leaf. `(NN (dog))` and `(NN
// dog)` are the same tree. Labels and words extend to the next white space or bracket; there are no escapes.
// The label may be missing (`( (S ...))`, as in treebanks), and is then empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/data/trees/forest.hpp"

namespace unkernel::data {

// Invalid text: what is wrong, and at which byte.
class BracketError : public std::runtime_error {
 public:
  BracketError(std::size_t where, const std::string& why) : std::runtime_error(why), offset(where) {}
  std::size_t offset;
};

// Selects how to read `(NN New York)`: as two words, or, like SVM-light-TK, as one word with a space.
enum class WordStyle { apart, joined };

// Reads trees into a forest. Reuses its buffers. Uses no recursion, so deep trees cannot exhaust the stack.
class BracketReader {
 public:
  BracketReader(Forest& forest, WordStyle style) : forest_(forest), style_(style) {}

  // Reads the tree that begins at text[at], and moves `at` past it.
  NodeId read(std::string_view text, std::size_t& at);

 private:
  struct Open {
    std::int32_t label;
    std::size_t first_child;  // index into the stack of children
    std::size_t offset;
  };

  void open(std::string_view text, std::size_t& at);
  void close(std::size_t at);
  void take_words(std::string_view text, std::size_t& at);

  Forest& forest_;
  WordStyle style_;
  std::vector<Open> open_;
  std::vector<NodeId> children_;
  std::string joined_;
  std::size_t words_end_ = 0;  // words before this position have siblings in brackets, so they are not joined
};

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Returns the position of the first byte, from `at` on, that is not a blank.
inline std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// Writes a tree in bracket notation. Leaves are bare words unless `bracket_leaves`. Repeated subtrees are
// stored once, so a forest of 60 nodes can contain a tree of 2^60 nodes. So write() throws std::length_error
// if the text would be longer than `longest_text`.
std::size_t longest_text(const Forest& forest);
std::string to_brackets(const Forest& forest, NodeId root, bool bracket_leaves);

// Adds a tree, given the labels and the numbers of children of its nodes in preorder. Throws
// std::invalid_argument if they do not form a tree.
NodeId add_preorder(Forest& forest, std::span<const std::string_view> labels,
                    std::span<const std::int64_t> arities);

}  // namespace unkernel::data
