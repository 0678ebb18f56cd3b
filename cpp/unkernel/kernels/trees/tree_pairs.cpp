#include "unkernel/kernels/trees/tree_pairs.hpp"

#include <algorithm>

namespace unkernel::kernels {

TreePairs::TreePairs(const TreeKernel& kernel, const Forest& forest)
    : kernel_(kernel),
      forest_(forest),
      delta_(kernel, forest),
      left_index_(forest.size(), -1),
      right_index_(forest.size(), -1) {}

void TreePairs::sort_by_group(const TreeKernel& kernel, const Forest& forest, const TreeRow& row,
                              std::vector<GroupedNode>& grouped) {
  grouped.clear();
  for (std::size_t i = 0; i < row.nodes.size(); ++i) {
    grouped.push_back({group_of(kernel, forest, row.nodes[i]), static_cast<std::int32_t>(i)});
  }
  std::ranges::sort(grouped, [](const GroupedNode& a, const GroupedNode& b) {
    return a.group != b.group ? a.group < b.group : a.index < b.index;
  });
}

double TreePairs::operator()(const TreeRow& left, const TreeRow& right) {
  sort_by_group(kernel_, forest_, left, left_grouped_);
  sort_by_group(kernel_, forest_, right, right_grouped_);
  pairs_.clear();
  for (std::size_t i = 0, j = 0; i < left_grouped_.size(); ++i) {
    const std::int32_t group = left_grouped_[i].group;
    while (j < right_grouped_.size() && right_grouped_[j].group < group) ++j;
    for (std::size_t k = j; k < right_grouped_.size() && right_grouped_[k].group == group; ++k) {
      pairs_.push_back({left_grouped_[i].index, right_grouped_[k].index});
    }
  }
  // The nodes of a row are in ascending order, children before parents, so this order puts each pair after
  // the pairs of its children.
  std::ranges::sort(pairs_, [](const Pair& a, const Pair& b) {
    return a.left != b.left ? a.left < b.left : a.right < b.right;
  });
  for (std::size_t i = 0; i < left.nodes.size(); ++i)
    left_index_[static_cast<std::size_t>(left.nodes[i])] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < right.nodes.size(); ++i)
    right_index_[static_cast<std::size_t>(right.nodes[i])] = static_cast<std::int32_t>(i);
  width_ = right.nodes.size();
  deltas_.assign(left.nodes.size() * width_, 0.0);
  const auto below = [this](NodeId a, NodeId b) { return child_delta(a, b); };
  double sum = 0.0;
  for (const Pair& pair : pairs_) {
    const auto i = static_cast<std::size_t>(pair.left);
    const auto j = static_cast<std::size_t>(pair.right);
    const double value = delta_(left.nodes[i], right.nodes[j], below);
    deltas_[i * width_ + j] = value;
    sum += left.weights[i] * right.weights[j] * value;
  }
  for (const NodeId node : left.nodes) left_index_[static_cast<std::size_t>(node)] = -1;
  for (const NodeId node : right.nodes) right_index_[static_cast<std::size_t>(node)] = -1;
  return sum;
}

// Returns the Delta of two children; 0 unless they form a pair.
double TreePairs::child_delta(NodeId left, NodeId right) const {
  const std::int32_t i = left_index_[static_cast<std::size_t>(left)];
  const std::int32_t j = right_index_[static_cast<std::size_t>(right)];
  return i < 0 || j < 0 ? 0.0 : deltas_[static_cast<std::size_t>(i) * width_ + static_cast<std::size_t>(j)];
}

}  // namespace unkernel::kernels
