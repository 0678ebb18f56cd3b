#include "unkernel/data/trees/forest_copy.hpp"

#include <algorithm>
#include <stdexcept>

#include "unkernel/base/at.hpp"

namespace unkernel::data {
namespace {

[[noreturn]] void fail() { throw std::invalid_argument("the arrays of the forest are damaged"); }

// Returns a flag for each node: whether it belongs to one of the trees. Children have smaller numbers than
// their parents, so one pass from the last node to the first is enough.
std::vector<bool> mark_reachable(const Forest& forest, std::span<const NodeId> roots) {
  std::vector<bool> marked(forest.size(), false);
  for (const NodeId root : roots) {
    if (root >= 0) marked[at(root)] = true;
  }
  for (std::size_t i = forest.size(); i-- > 0;) {
    if (!marked[i]) continue;
    for (const NodeId child : forest.children(static_cast<NodeId>(i))) marked[at(child)] = true;
  }
  return marked;
}

bool are_offsets(std::span<const std::int64_t> offsets, std::size_t size) {
  return std::ranges::is_sorted(offsets) &&
         (offsets.empty() || (offsets.front() >= 0 && static_cast<std::size_t>(offsets.back()) == size));
}

}  // namespace

std::vector<NodeId> absorb(Forest& forest, const Forest& other, std::span<const NodeId> roots) {
  const std::vector<bool> marked = mark_reachable(other, roots);
  std::vector<NodeId> copies(other.size(), -1);
  std::vector<NodeId> children;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (!marked[i]) continue;
    const auto node = static_cast<NodeId>(i);
    children.clear();
    for (const NodeId child : other.children(node)) children.push_back(copies[at(child)]);
    copies[i] = forest.add_node(forest.add_label(other.label_name(node)), children);
  }
  std::vector<NodeId> result;
  for (const NodeId root : roots) result.push_back(root < 0 ? -1 : copies[at(root)]);
  return result;
}

Forest restore_forest(const ForestArrays& arrays) {
  const auto nodes = static_cast<std::int64_t>(arrays.node_labels.size());
  if (!are_offsets(arrays.label_ends, arrays.label_bytes.size()) ||
      arrays.child_begins.size() != arrays.node_labels.size() + 1 || arrays.child_begins.front() != 0 ||
      !are_offsets(arrays.child_begins, arrays.children.size())) {
    fail();
  }
  if (arrays.label_ends.empty() && !arrays.label_bytes.empty()) fail();
  Forest forest;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < arrays.label_ends.size(); ++i) {
    const std::string_view name = arrays.label_bytes.substr(
        static_cast<std::size_t>(begin), static_cast<std::size_t>(arrays.label_ends[i] - begin));
    if (forest.add_label(name) != static_cast<std::int32_t>(i)) fail();
    begin = arrays.label_ends[i];
  }
  for (std::int64_t i = 0; i < nodes; ++i) {
    const auto node = static_cast<std::size_t>(i);
    const std::int32_t label = arrays.node_labels[node];
    if (label < 0 || at(label) >= forest.label_count()) fail();
    const auto first = static_cast<std::size_t>(arrays.child_begins[node]);
    const auto children =
        arrays.children.subspan(first, static_cast<std::size_t>(arrays.child_begins[node + 1]) - first);
    for (const NodeId child : children) {
      if (child < 0 || child >= i) fail();
    }
    if (forest.add_node(label, children) != static_cast<NodeId>(i)) fail();
  }
  return forest;
}

}  // namespace unkernel::data
