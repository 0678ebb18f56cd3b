// Finds the groups (tree_kernel.hpp) of a forest's nodes in another forest, which may grow.
//
// Returns the same groups as groups_in, but incrementally: after the other forest has grown, update() looks
// up only its new nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

class GrowingGroups {
 public:
  // Refers to both forests. `forest` must not grow.
  GrowingGroups(const TreeKernel& kernel, const Forest& forest, const Forest& growing);

  // Looks up the nodes added to `growing` since the last call.
  void update();

  // Returns the group of a node of `forest` in `growing`, or -1.
  std::int32_t group(NodeId node) const;

 private:
  void match_labels();
  void match_production(NodeId node);
  void match_subtree(NodeId node);

  TreeKernel kernel_;
  const Forest& forest_;
  const Forest& growing_;
  std::size_t matched_nodes_ = 0;  // nodes of `growing` that have been looked up
  // By label, production and node of `forest`: its number in `growing`, or -1. Vectors that the kernel does
  // not need are empty.
  std::vector<std::int32_t> labels_;
  std::vector<std::int32_t> productions_;
  std::vector<NodeId> nodes_;
  // By label and node of `growing`: its number in `forest`, or -1.
  std::vector<std::int32_t> label_in_forest_;
  std::vector<NodeId> node_in_forest_;
  std::int32_t matched_productions_ = 0;
  std::vector<std::int32_t> children_;  // children of the node being looked up
};

}  // namespace unkernel::kernels
