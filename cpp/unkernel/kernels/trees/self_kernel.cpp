#include "unkernel/kernels/trees/self_kernel.hpp"

#include <algorithm>

#include "unkernel/base/at.hpp"
#include "unkernel/kernels/trees/tree_index.hpp"
#include "unkernel/kernels/trees/tree_rows.hpp"

namespace unkernel::kernels {
namespace {

// With more nodes than this, a table of all pairs is too large.
constexpr std::size_t most_nodes_in_table = 1024;

// Sums the kernel of a tree with itself over an index of the tree.
struct SelfKernelSum {
  struct Node {
    void excess(std::int32_t, std::int32_t position, double value) {
      matched += value * weight_of[nodes[position]];
    }
    const NodeId* nodes;  // of the block
    const double* weight_of;
    double weight;
    double matched;
  };

  Node begin(std::size_t i, std::int32_t group, double scale) {
    return {index.nodes().data() + index.block_begin(group), weight_of.data(), weights[i] * scale,
            group_weight[at(group)]};
  }
  void end(const Node& node) { total += node.weight * node.matched; }

  const TreeIndex& index;
  std::span<const double> weights;
  std::span<const double> weight_of;
  std::span<const double> group_weight;
  double total;
};

}  // namespace

SelfKernel::SelfKernel(const TreeKernel& kernel, const Forest& forest)
    : kernel_(kernel),
      forest_(forest),
      delta_(kernel, forest),
      place_(forest.size(), -1),
      last_in_group_(group_count(kernel, forest), -1) {}

double SelfKernel::operator()(const TreeRow& row, const Monitor& monitor) {
  return row.nodes.size() <= most_nodes_in_table ? compute_by_pairs(row) : compute_by_index(row, monitor);
}

double SelfKernel::compute_by_pairs(const TreeRow& row) {
  width_ = row.nodes.size();
  deltas_.assign(width_ * width_, 0.0);
  previous_in_group_.resize(width_);
  const auto below = [this](NodeId a, NodeId b) { return child_delta(a, b); };
  double sum = 0.0;
  for (std::size_t i = 0; i < width_; ++i) {
    const NodeId node = row.nodes[i];
    place_[at(node)] = static_cast<std::int32_t>(i);
    std::int32_t& last = last_in_group_[at(group_of(kernel_, forest_, node))];
    previous_in_group_[i] = last;
    last = static_cast<std::int32_t>(i);
    for (std::int32_t j = last; j >= 0; j = previous_in_group_[at(j)]) {
      const double value = delta_(node, row.nodes[at(j)], below);
      deltas_[i * width_ + at(j)] = value;
      sum += (at(j) == i ? 1.0 : 2.0) * row.weights[i] * row.weights[at(j)] * value;
    }
  }
  for (const NodeId node : row.nodes) {
    place_[at(node)] = -1;
    last_in_group_[at(group_of(kernel_, forest_, node))] = -1;
  }
  return sum;
}

double SelfKernel::child_delta(NodeId left, NodeId right) const {
  const auto [smaller, larger] = std::minmax(place_[at(left)], place_[at(right)]);
  return deltas_[at(larger) * width_ + at(smaller)];
}

double SelfKernel::compute_by_index(const TreeRow& row, const Monitor& monitor) const {
  std::vector<double> weight_of(forest_.size(), 0.0);
  std::vector<bool> is_in_row(forest_.size(), false);
  for (std::size_t i = 0; i < row.nodes.size(); ++i) {
    weight_of[at(row.nodes[i])] = row.weights[i];
    is_in_row[at(row.nodes[i])] = true;
  }
  std::vector<NodeId> ordered = nodes_in_order(kernel_, forest_);
  std::erase_if(ordered, [&](NodeId node) { return !is_in_row[at(node)]; });
  const TreeIndex index(kernel_, forest_, ordered);
  std::vector<std::int32_t> groups(forest_.size(), -1);
  std::vector<double> group_weight(index.group_count(), 0.0);
  for (const NodeId node : row.nodes) groups[at(node)] = index.group(group_of(kernel_, forest_, node));
  for (std::size_t i = 0; i < row.nodes.size(); ++i)
    group_weight[at(groups[at(row.nodes[i])])] += row.weights[i];
  TreeRows rows(index, forest_, groups);
  SelfKernelSum sum{index, row.weights, weight_of, group_weight, 0.0};
  rows.visit(row.nodes, sum, monitor);
  return sum.total;
}

}  // namespace unkernel::kernels
