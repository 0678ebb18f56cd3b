// The kernel of a tree with itself, for norms. Each thread has its own; buffers are reused from tree to tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unkernel/kernels/trees/node_delta.hpp"
#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

class SelfKernel {
 public:
  SelfKernel(const TreeKernel& kernel, const Forest& forest);

  // Of a row that is ascending and closed: with a node it has its children, apart from leaves that the kernel
  // does not look at. Small trees by a table of all pairs of their nodes, large ones by an index of the tree.
  double operator()(const TreeRow& row);

 private:
  double by_pairs(const TreeRow& row);
  double by_index(const TreeRow& row) const;
  double child_delta(NodeId left, NodeId right) const;

  TreeKernel kernel_;
  const Forest& forest_;
  NodeDelta delta_;
  std::vector<std::int32_t> place_;   // of a node of the forest, in the row; -1 elsewhere
  std::vector<std::int32_t> last_;    // of a group: the last node of the row that has it; -1 elsewhere
  std::vector<std::int32_t> before_;  // of a node of the row: the one before in its group
  std::vector<double> deltas_;        // by places, the larger one first
  std::size_t width_ = 0;
};

}  // namespace unkernel::kernels
