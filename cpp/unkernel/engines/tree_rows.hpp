// Delta between the nodes of one tree and all nodes of an index.
//
// The tree's nodes are taken children first. The Delta of a node u make a *row* over the block of u's group: a scale
// of its own almost everywhere, something else at the nodes that one of u's lists names. Only those are computed, as
// ratios to the scale. A child that matches in most of the block, and nothing more than its constant, goes into the
// scale, and those without it are computed instead. A row is kept until the last parent that needs it is done.
//
// Cost     about a nanosecond for each pair of nodes with a child that matches; nothing for the others
// Memory   8 bytes times the largest block for each row that is kept; a worker owns it, one a thread
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/engines/tree_index.hpp"

namespace unkernel::engines {

// The Delta of one node against its block: `scale`, but for a range of positions and others besides, where it is
// scale times the ratio.
struct DeltaRow {
  std::int32_t group = -1;
  double scale = 0.0;
  const double* ratios = nullptr;  // by position in the block; of any use only at those
  std::int32_t range_begin = 0;
  std::int32_t range_end = 0;
  std::span<const std::int32_t> others;
};

class TreeRows {
 public:
  // `groups` has the index's group of each node of `forest`, or -1: where trees are from another forest than the
  // index, these are the groups it knows (groups_in, then TreeIndex::group).
  TreeRows(const TreeIndex& index, const Forest& forest, std::span<const std::int32_t> groups);
  // From now on, trees of another forest; buffers stay.
  void use(const Forest& forest, std::span<const std::int32_t> groups);

  // Calls visit(i, row) for each nodes[i] that has a group, children first. Nodes ascend, and with a node come its
  // children, apart from leaves that the kernel does not look at.
  template <class Visit>
  void visit(std::span<const NodeId> nodes, const Visit& visit);

 private:
  struct Match {
    TreeIndex::List list;
    std::int32_t child;  // which of the tree's nodes
    std::int32_t place;  // which of the parent's children
  };
  struct Node {
    std::int32_t group = -1;
    std::int32_t uses = 0;  // by parents that have not been done
    double scale = 0.0;
    std::size_t first_match = 0;
    std::size_t matches = 0;
    std::unique_ptr<double[]> row;  // ratios, untouched ones negative; null where there are none
    std::vector<std::int32_t> others;
    std::int32_t range_begin = 0;
    std::int32_t range_end = 0;
  };

  void plan(std::span<const NodeId> nodes);
  void plan_places(std::size_t i, NodeId id);
  void plan_children(std::size_t i, NodeId id);
  void compute(std::size_t i, NodeId id);
  void multiply_matches(Node& node);
  void multiply_range(Node& node, const Match& match);
  void multiply_list(Node& node, const Match& match);
  void multiply_constant(Node& node, std::span<const std::int32_t> positions, double factor);
  void sum_matches(Node& node, NodeId id);
  double partial_sum(std::span<const NodeId> children, std::size_t number);
  void release(Node& node);
  void release_children(const Node& node);
  void forget(std::span<const NodeId> nodes);

  const TreeIndex& index_;
  const Forest* forest_;
  std::span<const std::int32_t> groups_;
  std::vector<std::int32_t> place_;  // of a node of the forest, in this tree
  std::vector<Node> nodes_;
  std::vector<Match> matches_;
  std::vector<std::unique_ptr<double[]>> spare_;           // rows that nothing has touched
  std::vector<double> child_deltas_;
  PartialTreeSum partial_;
};

template <class Visit>
void TreeRows::visit(std::span<const NodeId> nodes, const Visit& visit) {
  plan(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = nodes_[i];
    if (node.group < 0) continue;
    if (node.matches > 0) compute(i, nodes[i]);
    visit(i, DeltaRow{node.group, node.scale, node.row.get(), node.range_begin, node.range_end, node.others});
    release_children(node);
    if (node.uses == 0) release(node);
  }
  forget(nodes);
}

}  // namespace unkernel::engines
