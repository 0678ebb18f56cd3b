// Matches the nodes of a tree with the nodes of an index. The plan does not depend on weights, so both kernel
// values and scores use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/kernels/trees/tree_index.hpp"

namespace unkernel::kernels {

// A child of a node, and the nodes of the index whose child at the same place is in the same group.
struct ChildMatch {
  TreeIndex::List list;
  std::int32_t child;  // index into the nodes of the tree
  std::int32_t place;  // index into the children of the parent; 0 for partial trees
};

struct PlannedNode {
  std::int32_t group = -1;
  std::int32_t uses = 0;  // number of parents not yet processed
  std::int32_t user = 0;  // the last parent: index into the nodes of the tree
  double scale = 0.0;     // Delta with all nodes of the group that are not listed
  std::size_t first_match = 0;
  std::size_t matches = 0;
};

class TreePlan {
 public:
  // `groups` maps each node of `forest` to its group in the index, or -1. If trees and index have different
  // forests, groups_in and then TreeIndex::group compute it.
  TreePlan(const TreeIndex& index, const Forest& forest, std::span<const std::int32_t> groups)
      : index_(index), forest_(&forest), groups_(groups) {
    make_places();
  }
  // Switches to trees of another forest; keeps the buffers.
  void use(const Forest& forest, std::span<const std::int32_t> groups);

  // Fills nodes[i] for each ids[i]; `Node` must be derived from PlannedNode. The ids must ascend and include
  // the children of each node, except leaves that the kernel ignores.
  template <class Node>
  void make(std::span<const NodeId> ids, std::vector<Node>& nodes);

  const Forest& forest() const { return *forest_; }
  std::int32_t group(NodeId node) const { return groups_[static_cast<std::size_t>(node)]; }
  // Returns the index of a node in the tree that was planned last. The node must be in this tree.
  std::size_t place(NodeId node) const {
    return static_cast<std::size_t>(place_[static_cast<std::size_t>(node)]);
  }
  const ChildMatch& match(std::size_t number) const { return matches_[number]; }
  std::span<const ChildMatch> matches(const PlannedNode& node) const {
    return std::span(matches_).subspan(node.first_match, node.matches);
  }

 private:
  void make_places();
  template <class Node>
  void find_matches(std::size_t i, NodeId id, std::vector<Node>& nodes);

  const TreeIndex& index_;
  const Forest* forest_;
  std::span<const std::int32_t> groups_;
  // By node of the forest: its index in the tree that was planned last. Entries are written for the nodes of
  // a tree before they are read. All others stay uninitialised, because a forest is large and its trees are
  // small.
  std::unique_ptr<std::int32_t[]> place_;
  std::size_t places_ = 0;
  std::vector<ChildMatch> matches_;
};

inline void TreePlan::use(const Forest& forest, std::span<const std::int32_t> groups) {
  forest_ = &forest;
  groups_ = groups;
  make_places();
}

inline void TreePlan::make_places() {
  if (places_ >= forest_->size()) return;
  places_ = forest_->size();
  place_ = std::make_unique_for_overwrite<std::int32_t[]>(places_);
}

template <class Node>
void TreePlan::make(std::span<const NodeId> ids, std::vector<Node>& nodes) {
  if (nodes.size() < ids.size()) nodes.resize(ids.size());
  matches_.clear();
  const bool has_matches = index_.kernel().kind != TreeKernelKind::subtree;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    place_[static_cast<std::size_t>(ids[i])] = static_cast<std::int32_t>(i);
    Node& node = nodes[i];
    node.group = group(ids[i]);
    node.uses = 0;
    node.scale = node.group < 0 ? 0.0 : index_.constant(node.group);
    node.first_match = matches_.size();
    if (node.group >= 0 && has_matches) find_matches(i, ids[i], nodes);
    node.matches = matches_.size() - node.first_match;
  }
}

template <class Node>
void TreePlan::find_matches(std::size_t i, NodeId id, std::vector<Node>& nodes) {
  const bool by_place = index_.kernel().by_production();
  const bool skip_leaves = by_place && index_.kernel().has_leaves();  // otherwise, leaves have no group
  std::size_t next = 0;
  for (const NodeId child : forest_->children(id)) {
    const std::size_t place = by_place ? next++ : 0;
    const std::int32_t child_group = group(child);
    if (child_group < 0 || (skip_leaves && forest_->is_leaf(child))) continue;
    const TreeIndex::List list = index_.matches(nodes[i].group, place, child_group);
    if (list.size == 0) continue;
    const std::int32_t child_place = place_[static_cast<std::size_t>(child)];
    nodes[static_cast<std::size_t>(child_place)].user = static_cast<std::int32_t>(i);
    ++nodes[static_cast<std::size_t>(child_place)].uses;
    matches_.push_back({list, child_place, static_cast<std::int32_t>(place)});
  }
}

}  // namespace unkernel::kernels
