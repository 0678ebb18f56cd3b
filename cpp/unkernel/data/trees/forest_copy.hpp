// Forests out of other forests, and out of arrays from a file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "unkernel/data/trees/forest.hpp"

namespace unkernel::data {

// Adds the trees with these roots of another forest (-1: no tree), and gives their roots here. Nodes of the
// other forest that are in none of them stay behind.
std::vector<NodeId> absorb(Forest& forest, const Forest& other, std::span<const NodeId> roots);

// A forest as a file holds it.
struct ForestArrays {
  std::string_view label_bytes;
  std::span<const std::int64_t> label_ends;
  std::span<const std::int32_t> node_labels;
  std::span<const std::int64_t> child_begins;  // one more than nodes
  std::span<const NodeId> children;
};

// Makes the forest, with the same numbers; refuses arrays that are not one: labels and nodes each once,
// children before their parents.
Forest restore_forest(const ForestArrays& arrays);

}  // namespace unkernel::data
