// Represents examples by counts of the distinct subtrees in their trees.
//
// A row lists the distinct nodes of an example's trees that a kernel uses, in ascending order (children
// before parents), with their numbers of occurrences. In normalised rows, these numbers are divided by the
// square root of the kernel of the tree with itself. A node takes 12 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

struct TreeRow {
  std::span<const NodeId> nodes;
  std::span<const double> weights;
};

class TreeCounts {
 public:
  std::size_t size() const { return offsets_.size() - 1; }
  TreeRow row(std::size_t i) const {
    const auto begin = static_cast<std::size_t>(offsets_[i]);
    const auto count = static_cast<std::size_t>(offsets_[i + 1]) - begin;
    return {std::span(nodes_).subspan(begin, count), std::span(weights_).subspan(begin, count)};
  }
  std::size_t entries() const { return nodes_.size(); }

  // Counts the nodes of examples. Example i has the trees roots[offsets[i]] .. roots[offsets[i + 1] - 1]; a
  // root of -1 is an empty tree. If an example has several trees, their counts are normalised separately,
  // then added.
  static TreeCounts count(const TreeKernel& kernel, const Forest& forest,
                          std::span<const std::int64_t> offsets, std::span<const NodeId> roots,
                          bool normalize, Threads threads);

 private:
  std::vector<std::int64_t> offsets_{0};
  std::vector<NodeId> nodes_;
  std::vector<double> weights_;
};

}  // namespace unkernel::kernels
