// Computes the kernel of a tree with itself, for norms. Reuses its buffers, so each thread needs its own
// object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/node_delta.hpp"
#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

class SelfKernel {
 public:
  SelfKernel(const TreeKernel& kernel, const Forest& forest);

  // Returns the kernel. The nodes of the row must ascend and include the children of each node, except leaves
  // that the kernel ignores. Small trees use a table of all pairs of nodes, large trees an index of the tree.
  double operator()(const TreeRow& row, const Monitor& monitor);

 private:
  double compute_by_pairs(const TreeRow& row);
  double compute_by_index(const TreeRow& row, const Monitor& monitor) const;
  double child_delta(NodeId left, NodeId right) const;

  TreeKernel kernel_;
  const Forest& forest_;
  NodeDelta delta_;
  std::vector<std::int32_t> place_;              // by node of the forest: its position in the row, or -1
  std::vector<std::int32_t> last_in_group_;      // by group: the last node of the row in it, or -1
  std::vector<std::int32_t> previous_in_group_;  // by node of the row: the previous node in its group
  std::vector<double> deltas_;                   // by two positions in the row, the larger one first
  std::size_t width_ = 0;
};

}  // namespace unkernel::kernels
