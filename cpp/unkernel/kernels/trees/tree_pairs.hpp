// The kernel of two trees, by all pairs of their nodes: the cost of computing one value at a time, to compare
// with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/kernels/trees/node_delta.hpp"
#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

// Reuses its buffers from pair to pair; each thread has its own.
class TreePairs {
 public:
  TreePairs(const TreeKernel& kernel, const Forest& forest);

  // sum over nodes of both of weight * weight' * Delta. Rows are ascending and closed: with a node they have
  // its children, apart from leaves that the kernel does not look at.
  double operator()(const TreeRow& left, const TreeRow& right);

 private:
  struct Place {
    std::int32_t group;
    std::int32_t index;  // in the row
  };

  static void sort_by_group(const TreeKernel& kernel, const Forest& forest, const TreeRow& row,
                            std::vector<Place>& places);
  double child_delta(NodeId left, NodeId right) const;

  TreeKernel kernel_;
  const Forest& forest_;
  NodeDelta delta_;
  std::vector<Place> left_places_;
  std::vector<Place> right_places_;
  std::vector<std::int32_t> left_index_;  // of a node of the forest, in its row
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
