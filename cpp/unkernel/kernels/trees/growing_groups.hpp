// The groups that the nodes of one forest have in another, growing forest.
//
// Equal to groups_in, but incremental: after the other forest has grown, only new nodes are looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

class GrowingGroups {
 public:
  // Refers to both forests; `forest` does not grow.
  GrowingGroups(const TreeKernel& kernel, const Forest& forest, const Forest& known);

  // Looks up the nodes added to `known` since the last call.
  void update();

  // Returns the group of a node of `forest` among those of `known`, or -1.
  std::int32_t group(NodeId node) const;

 private:
  void look_up_labels();
  void look_up_production(NodeId node);
  void look_up_subtree(NodeId node);

  TreeKernel kernel_;
  const Forest& forest_;
  const Forest& known_;
  std::size_t seen_ = 0;  // nodes of `known`
  // For each label, production and node of `forest`: its number in `known`, or -1. Only what the kernel
  // needs.
  std::vector<std::int32_t> labels_;
  std::vector<std::int32_t> productions_;
  std::vector<NodeId> nodes_;
  // The same in the other direction.
  std::vector<std::int32_t> labels_here_;
  std::vector<NodeId> nodes_here_;
  std::int32_t productions_seen_ = 0;
  std::vector<std::int32_t> looked_for_;  // children of the node that is looked up
};

}  // namespace unkernel::kernels
