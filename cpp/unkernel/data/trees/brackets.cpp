#include "unkernel/data/trees/brackets.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace unkernel::data {
namespace {

// Returns a lookup table of the bytes that end a word.
constexpr std::array<bool, 256> list_enders() {
  std::array<bool, 256> enders{};
  for (const char c : {' ', '\t', '\n', '\r', '(', ')'}) enders[static_cast<unsigned char>(c)] = true;
  return enders;
}
constexpr std::array<bool, 256> enders = list_enders();

bool ends_word(char c) { return enders[static_cast<unsigned char>(c)]; }

std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && !ends_word(text[end])) ++end;
  return text.substr(at, end - at);
}

}  // namespace

NodeId BracketReader::read(std::string_view text, std::size_t& at) {
  open_.clear();
  children_.clear();
  words_end_ = 0;
  if (at >= text.size() || text[at] != '(') throw BracketError(at, "a tree begins with '('");
  do {
    if (at >= text.size()) throw BracketError(open_.back().offset, "this bracket is never closed");
    switch (text[at]) {
      case '(': open(text, at); break;
      case ')':
        close(at);
        ++at;
        break;
      case ' ':
      case '\t':
      case '\n':
      case '\r': ++at; break;
      default: take_words(text, at);
    }
  } while (!open_.empty());
  return children_.front();
}

void BracketReader::open(std::string_view text, std::size_t& at) {
  const std::size_t offset = at++;
  const std::string_view label = word_at(text, at);
  at += label.size();
  open_.push_back({forest_.add_label(label), children_.size(), offset});
}

void BracketReader::close(std::size_t at) {
  const Open node = open_.back();
  const auto children = std::span(children_).subspan(node.first_child);
  if (children.empty() && forest_.labels().name(node.label).empty()) {
    throw BracketError(at, "there is nothing in this pair of brackets");
  }
  const NodeId new_node = forest_.add_node(node.label, children);
  children_.resize(node.first_child);
  children_.push_back(new_node);
  open_.pop_back();
}

// Reads one word. In joined style, all words up to the next bracket become one leaf, if this bracket closes
// the node and the node has no other children.
void BracketReader::take_words(std::string_view text, std::size_t& at) {
  const std::string_view word = word_at(text, at);
  if (style_ == WordStyle::joined && at >= words_end_) {
    joined_.assign(word);
    std::size_t next = skip_blanks(text, at + word.size());
    while (next < text.size() && text[next] != '(' && text[next] != ')') {
      const std::string_view more = word_at(text, next);
      joined_.append(1, ' ').append(more);
      next = skip_blanks(text, next + more.size());
    }
    if (next < text.size() && text[next] == ')' && children_.size() == open_.back().first_child) {
      at = next;
      children_.push_back(forest_.add_node(forest_.add_label(joined_), {}));
      return;
    }
    words_end_ = next;
  }
  at += word.size();
  children_.push_back(forest_.add_node(forest_.add_label(word), {}));
}

std::size_t longest_text(const Forest& forest) {
  constexpr std::size_t always = std::size_t{1} << 24, fold = 128;
  return always + fold * forest.memory();
}

std::string to_brackets(const Forest& forest, NodeId root, bool bracket_leaves) {
  std::string text;
  const std::size_t longest = longest_text(forest);
  std::vector<std::pair<NodeId, std::size_t>> path;  // a node, and the index of its next child
  const auto begin = [&](NodeId node) {
    if (!path.empty() && !(bracket_leaves && path.back().second > 1)) text.append(1, ' ');
    const bool bare = !bracket_leaves && !path.empty() && forest.is_leaf(node);
    if (!bare) text.append(1, '(');
    text.append(forest.label_name(node));
    if (forest.is_leaf(node)) {
      if (!bare) text.append(1, ')');
    } else {
      path.emplace_back(node, 0);
    }
  };
  begin(root);
  while (!path.empty()) {
    const auto children = forest.children(path.back().first);
    if (path.back().second < children.size()) {
      const NodeId child = children[path.back().second++];
      if (text.size() + forest.label_name(child).size() > longest)
        throw std::length_error("a tree of this model or forest cannot be written: its text is longer than " +
                                std::to_string(longest) + " bytes, because subtrees repeat very often");
      begin(child);
    } else {
      text.append(1, ')');
      path.pop_back();
    }
  }
  return text;
}

NodeId add_preorder(Forest& forest, std::span<const std::string_view> labels,
                    std::span<const std::int64_t> arities) {
  if (labels.empty() || labels.size() != arities.size()) {
    throw std::invalid_argument("a tree in preorder needs a label and a number of children for each node");
  }
  // Nodes are created from the last to the first, so the children of a node are on the stack, with the first
  // child on top.
  std::vector<NodeId> stack;
  std::vector<NodeId> children;
  for (std::size_t i = labels.size(); i-- > 0;) {
    if (arities[i] < 0 || static_cast<std::size_t>(arities[i]) > stack.size()) {
      throw std::invalid_argument("the numbers of children of the nodes in preorder do not form a tree");
    }
    const auto count = static_cast<std::size_t>(arities[i]);
    children.assign(stack.rbegin(), stack.rbegin() + static_cast<std::ptrdiff_t>(count));
    stack.resize(stack.size() - count);
    stack.push_back(forest.add_node(forest.add_label(labels[i]), children));
  }
  if (stack.size() != 1)
    throw std::invalid_argument("the numbers of children of the nodes in preorder form several trees");
  return stack.front();
}

}  // namespace unkernel::data
