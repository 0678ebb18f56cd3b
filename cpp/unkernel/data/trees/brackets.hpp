// Trees as text: `(S (NP (DT the) (NN dog)) (VP barks))`.
//
// A node is `(label child ...)`; a child is a node or a word, and a word is a leaf. `(NN (dog))` and `(NN
// dog)` are the same tree. Labels and words are bytes up to the next white space or bracket; there is no
// escaping. A label may be missing (`( (S ...))`, as treebanks have it), which is the empty label.
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

// Text that is no tree: what is wrong, and at which byte.
class BracketError : public std::runtime_error {
 public:
  BracketError(std::size_t where, const std::string& why) : std::runtime_error(why), offset(where) {}
  std::size_t offset;
};

// What is to become of `(NN New York)`: two words, or one with a space in it, as SVM-light-TK reads it.
enum class WordStyle { apart, joined };

// Reads trees into a forest. Its buffers are used again from tree to tree; nothing here is recursive.
class BracketReader {
 public:
  BracketReader(Forest& forest, WordStyle style) : forest_(forest), style_(style) {}

  // Reads the tree that begins at text[at], and moves `at` behind it.
  NodeId read(std::string_view text, std::size_t& at);

 private:
  struct Open {
    std::int32_t label;
    std::size_t first_child;  // on the stack of children
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
  std::size_t words_end_ = 0;  // up to here it is known that words stand beside brackets, and stay apart
};

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The first place from `at` on that is not blank.
inline std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// The tree as text, in brackets; a leaf below a node is a bare word unless `bracket_leaves`.
std::string to_brackets(const Forest& forest, NodeId root, bool bracket_leaves);

// Adds the tree whose nodes, parents first, have these labels and numbers of children. Refuses lists that
// make no tree.
NodeId add_preorder(Forest& forest, std::span<const std::string_view> labels,
                    std::span<const std::int64_t> arities);

}  // namespace unkernel::data
