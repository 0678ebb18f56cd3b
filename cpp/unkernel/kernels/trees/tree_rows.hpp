// Computes Delta (tree_kernel.hpp) between the nodes of one tree and all nodes of an index (tree_index.hpp).
//
// Processes the nodes of the tree, children first. The Delta of a node u with the nodes in the block of its
// group form a *row*. They equal one number, the scale, except at the nodes in u's lists. Only these
// exceptions are computed, as ratios to the scale. If a child without exceptions matches most of the block,
// its factor is multiplied into the scale, and the nodes without this child become the exceptions. A row is
// kept until the last parent of its node is done.
//
// Cost     about a nanosecond per pair of nodes with a matching child; nothing for all other pairs
// Memory   8 bytes times the largest block for each row that is kept, per thread. If nodes are visited by
//          number, a deep tree may keep a row for every second node. If that is too much, nodes are visited
//          in an order that keeps few rows (Sethi & Ullman 1970): for a tree of n nodes at most log2 n, plus
//          those of repeated subtrees. A tree that still needs more than a gigabyte is refused.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/tree_plan.hpp"

namespace unkernel::kernels {

// A visitor receives the values of Delta. It is a class with these functions:
//   begin(i, group, scale)       node i of the tree has Delta = scale with all nodes of its group, except for
//                                calls of excess(). Returns a small object, which, unlike the visitor, can
//                                stay in registers, with
//     excess(lane, position, e)  Delta = scale (1 + e) with the node at this position of the block. Lanes
//                                0 .. 3 take turns, so that additions need not wait for each other.
//   end(object)                  this node has no more values

class TreeRows {
 public:
  // See TreePlan for `groups`.
  TreeRows(const TreeIndex& index, const Forest& forest, std::span<const std::int32_t> groups)
      : index_(index), plan_(index, forest, groups), partial_(index.kernel()) {}
  void use(const Forest& forest, std::span<const std::int32_t> groups) { plan_.use(forest, groups); }

  // Calls `visitor` for each nodes[i] that has a group, children first. Nodes must ascend and include the
  // children of each node, except leaves that the kernel ignores. Throws NotEnoughMemory before the first
  // call if too many rows would have to be kept.
  template <class Visitor>
  void visit(std::span<const NodeId> nodes, Visitor& visitor, const Monitor& monitor);

  // Returns the number of rows in memory after a visit: the largest number of rows kept at the same time.
  std::size_t rows() const { return spare_.size(); }

 private:
  struct Node : PlannedNode {
    std::unique_ptr<double[]> row;     // ratios, negative if untouched; null if all are 1
    std::vector<std::int32_t> listed;  // positions of exceptions outside the range
    std::int32_t range_begin = 0;
    std::int32_t range_end = 0;
  };

  // The place that stores the Delta of a pair of children.
  struct Source {
    double delta(const TreeIndex::Child* right_children) const {
      return row == nullptr ? scale : scale * std::abs(row[right_children[right].position]);
    }
    const double* row;
    double scale;
    std::int32_t right;
  };

  template <class Visitor>
  void visit_node(std::size_t i, NodeId id, Visitor& visitor);
  std::size_t row_bytes() const { return index_.largest_block() * sizeof(double); }
  bool has_row(std::size_t i) const { return nodes_[i].group >= 0 && nodes_[i].matches > 0; }
  void choose_order(std::size_t count);
  std::size_t most_rows_kept(std::size_t count) const;
  void order_for_few_rows(std::size_t count);
  std::vector<std::int32_t> rows_needed(std::size_t count) const;
  void drop_rows();

  void take_row(Node& node);
  void compute(Node& node, NodeId id);
  bool is_single_range(const Node& node) const;
  template <bool keep, class Taker>
  Taker visit_single_range(Node& node, Taker taker);
  template <class Taker>
  static Taker visit_row(const Node& node, Taker taker);
  void multiply_matches(Node& node);
  void multiply_range(Node& node, const ChildMatch& match);
  void multiply_list(Node& node, const ChildMatch& match);
  void multiply_constant(Node& node, std::span<const std::int32_t> positions, double factor);
  void sum_matches(Node& node, NodeId id);
  void sum_class(Node& node, std::span<const NodeId> children, std::int32_t number);
  void sum_few(const TreeIndex::Child* right_children, std::size_t width, std::int32_t count, double factor,
               double* row) const;
  void sum_many(const TreeIndex::Child* right_children, std::size_t height, std::size_t width,
                std::int32_t count, double factor, double* row);
  void release(Node& node);
  void return_row(Node& node);
  void release_children(const Node& node);

  const TreeIndex& index_;
  TreePlan plan_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> order_;               // the order of visits; empty for the order of numbers
  std::vector<std::unique_ptr<double[]>> spare_;  // rows of untouched ratios
  std::vector<std::vector<std::int32_t>> spare_lists_;
  // These members serve partial trees only.
  std::vector<std::int64_t> seen_;  // by class: the last visit that considered it
  std::int64_t visits_ = 0;
  ChildPattern pattern_;
  std::vector<Source> sources_;
  std::vector<std::int32_t> left_groups_;
  std::vector<std::int32_t> right_groups_;
  PartialTreeSum partial_;
};

// Returns whether only the first child matches, and the child's row is not constant. Then each
// ratio is used once, and is stored only if a parent needs it, too.
inline bool TreeRows::is_single_range(const Node& node) const {
  return node.matches == 1 && plan_.match(node.first_match).place == 0 && index_.kernel().by_production() &&
         nodes_[static_cast<std::size_t>(plan_.match(node.first_match).child)].row != nullptr;
}

template <bool keep, class Taker>
Taker TreeRows::visit_single_range(Node& node, Taker taker) {
  const ChildMatch& match = plan_.match(node.first_match);
  const Node& child = nodes_[static_cast<std::size_t>(match.child)];
  const double* below = child.row.get();
  const double scale = child.scale;
  const std::int32_t* position = index_.child_positions(node.group, 0);
  double* row = node.row.get();
  const auto one = [&](std::int32_t lane, std::int32_t k) {
    const double excess = scale * std::abs(below[position[k]]);
    if constexpr (keep) row[k] = 1.0 + excess;
    taker.excess(lane, k, excess);
  };
  std::int32_t k = match.list.begin;
  const std::int32_t end = match.list.begin + match.list.size;
  for (; k + 4 <= end; k += 4) {
    one(0, k);
    one(1, k + 1);
    one(2, k + 2);
    one(3, k + 3);
  }
  for (; k < end; ++k) one(0, k);
  if constexpr (keep) {
    node.range_begin = match.list.begin;
    node.range_end = end;
  }
  return taker;
}

template <class Taker>
Taker TreeRows::visit_row(const Node& node, Taker taker) {
  const double* row = node.row.get();
  std::int32_t k = node.range_begin;
  for (; k + 4 <= node.range_end; k += 4) {
    for (std::int32_t lane = 0; lane < 4; ++lane) taker.excess(lane, k + lane, row[k + lane] - 1.0);
  }
  for (; k < node.range_end; ++k) taker.excess(0, k, row[k] - 1.0);
  std::size_t j = 0;
  for (; j + 4 <= node.listed.size(); j += 4) {
    for (std::int32_t lane = 0; lane < 4; ++lane) {
      const std::int32_t other = node.listed[j + static_cast<std::size_t>(lane)];
      taker.excess(lane, other, row[other] - 1.0);
    }
  }
  for (; j < node.listed.size(); ++j) taker.excess(0, node.listed[j], row[node.listed[j]] - 1.0);
  return taker;
}

template <class Visitor>
void TreeRows::visit_node(std::size_t i, NodeId id, Visitor& visitor) {
  Node& node = nodes_[i];
  if (node.group < 0) return;
  const bool single = is_single_range(node);
  if (node.matches > 0 && !single) compute(node, id);
  auto taker = visitor.begin(i, node.group, node.scale);
  if (single && node.uses > 0) {
    take_row(node);
    taker = visit_single_range<true>(node, taker);
  } else if (single) {
    taker = visit_single_range<false>(node, taker);
  } else if (node.row != nullptr) {
    taker = visit_row(node, taker);
  }
  visitor.end(taker);
  release_children(node);
  if (node.uses == 0) release(node);
}

template <class Visitor>
void TreeRows::visit(std::span<const NodeId> nodes, Visitor& visitor, const Monitor& monitor) {
  plan_.make(nodes, nodes_);
  choose_order(nodes.size());
  try {
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      monitor.throw_if_stopped();
      const std::size_t i = order_.empty() ? k : static_cast<std::size_t>(order_[k]);
      visit_node(i, nodes[i], visitor);
    }
  } catch (...) {
    drop_rows();
    throw;
  }
}

}  // namespace unkernel::kernels
