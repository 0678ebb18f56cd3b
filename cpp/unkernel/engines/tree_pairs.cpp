#include "unkernel/engines/tree_pairs.hpp"

#include <algorithm>

namespace unkernel::engines {

TreePairs::TreePairs(const TreeKernel& kernel, const Forest& forest)
    : kernel_(kernel),
      forest_(forest),
      constants_(kernel.kind == TreeKernelKind::subtree ? subtree_constants(kernel, forest) : std::vector<double>()),
      left_index_(forest.size(), -1),
      right_index_(forest.size(), -1),
      partial_(kernel) {}

void TreePairs::sort_by_group(const TreeKernel& kernel, const Forest& forest, const TreeRow& row,
                              std::vector<Place>& places) {
  places.clear();
  for (std::size_t i = 0; i < row.nodes.size(); ++i) {
    places.push_back({group_of(kernel, forest, row.nodes[i]), static_cast<std::int32_t>(i)});
  }
  std::ranges::sort(places, [](const Place& a, const Place& b) {
    return a.group != b.group ? a.group < b.group : a.index < b.index;
  });
}

double TreePairs::operator()(const TreeRow& left, const TreeRow& right) {
  sort_by_group(kernel_, forest_, left, left_places_);
  sort_by_group(kernel_, forest_, right, right_places_);
  pairs_.clear();
  for (std::size_t i = 0, j = 0; i < left_places_.size(); ++i) {
    const std::int32_t group = left_places_[i].group;
    while (j < right_places_.size() && right_places_[j].group < group) ++j;
    for (std::size_t k = j; k < right_places_.size() && right_places_[k].group == group; ++k) {
      pairs_.push_back({left_places_[i].index, right_places_[k].index});
    }
  }
  // Rows are ascending, so pairs in this order come after the pairs of their children.
  std::ranges::sort(pairs_, [](const Pair& a, const Pair& b) { return a.left != b.left ? a.left < b.left : a.right < b.right; });
  for (std::size_t i = 0; i < left.nodes.size(); ++i) left_index_[static_cast<std::size_t>(left.nodes[i])] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < right.nodes.size(); ++i) right_index_[static_cast<std::size_t>(right.nodes[i])] = static_cast<std::int32_t>(i);
  width_ = right.nodes.size();
  deltas_.assign(left.nodes.size() * width_, 0.0);
  double sum = 0.0;
  for (const Pair& pair : pairs_) {
    const auto i = static_cast<std::size_t>(pair.left);
    const auto j = static_cast<std::size_t>(pair.right);
    const double value = delta(left.nodes[i], right.nodes[j]);
    deltas_[i * width_ + j] = value;
    sum += left.weights[i] * right.weights[j] * value;
  }
  for (const NodeId node : left.nodes) left_index_[static_cast<std::size_t>(node)] = -1;
  for (const NodeId node : right.nodes) right_index_[static_cast<std::size_t>(node)] = -1;
  return sum;
}

double TreePairs::delta(NodeId left, NodeId right) {
  switch (kernel_.kind) {
    case TreeKernelKind::subtree:
      return constants_[static_cast<std::size_t>(left)];
    case TreeKernelKind::subset_tree:
    case TreeKernelKind::subset_tree_words:
      return kernel_.decay * product_over_children(left, right);
    case TreeKernelKind::partial_tree:
      return sum_over_children(left, right);
  }
  return 0.0;
}

// Delta of two children: 0 unless both were a pair.
double TreePairs::child_delta(NodeId left, NodeId right) const {
  const std::int32_t i = left_index_[static_cast<std::size_t>(left)];
  const std::int32_t j = right_index_[static_cast<std::size_t>(right)];
  return i < 0 || j < 0 ? 0.0 : deltas_[static_cast<std::size_t>(i) * width_ + static_cast<std::size_t>(j)];
}

double TreePairs::product_over_children(NodeId left, NodeId right) const {
  const auto left_children = forest_.children(left);
  const auto right_children = forest_.children(right);
  double product = 1.0;
  for (std::size_t k = 0; k < left_children.size(); ++k) {
    // A word is a pair of its own (or none), never a factor.
    if (forest_.is_leaf(left_children[k]) || forest_.is_leaf(right_children[k])) continue;
    product *= 1.0 + child_delta(left_children[k], right_children[k]);
  }
  return product;
}

double TreePairs::sum_over_children(NodeId left, NodeId right) {
  const auto left_children = forest_.children(left);
  const auto right_children = forest_.children(right);
  child_deltas_.clear();
  for (const NodeId a : left_children) {
    for (const NodeId b : right_children) child_deltas_.push_back(child_delta(a, b));
  }
  return partial_(child_deltas_.data(), left_children.size(), right_children.size());
}

}  // namespace unkernel::engines
