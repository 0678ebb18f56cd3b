// Copies trees between forests, and restores forests from the arrays of a file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "unkernel/data/trees/forest.hpp"

namespace unkernel::data {

// Copies trees of another forest, given by their roots (-1: no tree), and returns the roots of the copies.
// Copies only the nodes of these trees.
std::vector<NodeId> absorb(Forest& forest, const Forest& other, std::span<const NodeId> roots);

// A forest as arrays in a file.
struct ForestArrays {
  std::string_view label_bytes;
  std::span<const std::int64_t> label_ends;
  std::span<const std::int32_t> node_labels;
  std::span<const std::int64_t> child_begins;  // nodes + 1 entries
  std::span<const NodeId> children;
};

// Restores a forest whose labels and nodes have the same numbers as in the arrays. Throws
// std::invalid_argument unless labels and nodes are distinct, and children precede their parents.
Forest restore_forest(const ForestArrays& arrays);

}  // namespace unkernel::data
