// Computes the kernel of two trees from all pairs of their nodes, one value at a time. A baseline for
// comparisons.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/kernels/trees/node_delta.hpp"
#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

// Reuses its buffers, so each thread needs its own object.
class TreePairs {
 public:
  TreePairs(const TreeKernel& kernel, const Forest& forest);

  // Returns the sum over nodes of both rows of weight * weight' * Delta. The nodes of a row must ascend and
  // include the children of each node, except leaves that the kernel ignores.
  double operator()(const TreeRow& left, const TreeRow& right);

 private:
  struct GroupedNode {
    std::int32_t group;
    std::int32_t index;  // within the row
  };

  static void sort_by_group(const TreeKernel& kernel, const Forest& forest, const TreeRow& row,
                            std::vector<GroupedNode>& grouped);
  double child_delta(NodeId left, NodeId right) const;

  TreeKernel kernel_;
  const Forest& forest_;
  NodeDelta delta_;
  std::vector<GroupedNode> left_grouped_;
  std::vector<GroupedNode> right_grouped_;
  std::vector<std::int32_t> left_index_;  // by node of the forest: its index in the row
  std::vector<std::int32_t> right_index_;
  std::vector<double> deltas_;  // left x right
  std::size_t width_ = 0;
  struct Pair {
    std::int32_t left;
    std::int32_t right;
  };
  std::vector<Pair> pairs_;
};

}  // namespace unkernel::kernels
