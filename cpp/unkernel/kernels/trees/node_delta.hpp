// Computes Delta, the contribution of two nodes to a tree kernel (tree_kernel.hpp), from the Delta of their
// children. For callers that store the Delta of all pairs of nodes.
#pragma once

#include <cstddef>
#include <vector>

#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

class NodeDelta {
 public:
  NodeDelta(const TreeKernel& kernel, const Forest& forest)
      : kernel_(kernel),
        forest_(forest),
        constants_(kernel.kind == TreeKernelKind::subtree ? subtree_constants(kernel, forest)
                                                          : std::vector<double>()),
        partial_(kernel) {}

  // Returns Delta of two nodes of the same group. child_delta(a, b) must be 0 if a and b are in different
  // groups.
  template <class ChildDelta>
  double operator()(NodeId left, NodeId right, const ChildDelta& child_delta) {
    if (kernel_.kind == TreeKernelKind::subtree) return constants_[static_cast<std::size_t>(left)];
    const auto left_children = forest_.children(left);
    const auto right_children = forest_.children(right);
    if (kernel_.by_production()) {
      double value = kernel_.decay;
      for (std::size_t k = 0; k < left_children.size(); ++k) {
        // The Delta of words is not a factor.
        if (forest_.is_leaf(left_children[k]) || forest_.is_leaf(right_children[k])) continue;
        value *= 1.0 + child_delta(left_children[k], right_children[k]);
      }
      return value;
    }
    return partial_(left_children.size(), right_children.size(), [&](std::size_t i, double* deltas) {
      for (std::size_t j = 0; j < right_children.size(); ++j)
        deltas[j] = child_delta(left_children[i], right_children[j]);
    });
  }

 private:
  TreeKernel kernel_;
  const Forest& forest_;
  std::vector<double> constants_;  // for the subtree kernel only
  PartialTreeSum partial_;
};

}  // namespace unkernel::kernels
