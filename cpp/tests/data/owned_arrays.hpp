// Owns the arrays of a forest, as stored in a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unkernel/data/trees/forest.hpp"
#include "unkernel/data/trees/forest_copy.hpp"

struct OwnedArrays {
  OwnedArrays() = default;
  explicit OwnedArrays(const unkernel::data::Forest& forest)
      : bytes(forest.labels().bytes()), ends(forest.labels().ends()) {
    for (std::size_t i = 0; i < forest.size(); ++i) {
      const auto node = static_cast<unkernel::data::NodeId>(i);
      labels.push_back(forest.label(node));
      for (const unkernel::data::NodeId child : forest.children(node)) children.push_back(child);
      begins.push_back(static_cast<std::int64_t>(children.size()));
    }
  }
  unkernel::data::Forest restore() const {
    return unkernel::data::restore_forest({bytes, ends, labels, begins, children});
  }
  bool operator==(const OwnedArrays&) const = default;

  std::string bytes;
  std::vector<std::int64_t> ends;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> begins{0};
  std::vector<unkernel::data::NodeId> children;
};
