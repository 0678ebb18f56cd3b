// A forest that stores each distinct subtree of all trees only once.
//
// A node is a label and a list of children; nodes with the same label and children are the same node
// (hash-consing). A tree is the number of its root, so two trees are equal if they have the same root.
// Children have smaller numbers than their parents: ascending order visits every subtree before the trees
// that contain it.
//
// A *production* is the label of a node together with the labels of its children. The subset-tree kernel
// compares productions. Leaves have no production.
//
// Memory    16 bytes per node, 4 per child, and 24 to 64 bytes of hash tables per node
// Threads   any number of threads may read, or one thread may write. Callers that do not know of each other
//           lock gate().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <vector>

#include "unkernel/base/at.hpp"
#include "unkernel/base/large_array.hpp"
#include "unkernel/data/text/name_table.hpp"

namespace unkernel::data {

using NodeId = std::int32_t;

class Forest {
 public:
  Forest();

  std::int32_t add_label(std::string_view name) { return labels_.add(name); }
  std::int32_t find_label(std::string_view name) const { return labels_.find(name); }

  // Returns the node with this label and these children. Adds the node if it is missing.
  NodeId add_node(std::int32_t label, std::span<const NodeId> children);
  // Returns the node with this label and these children, or -1.
  NodeId find_node(std::int32_t label, std::span<const NodeId> children) const;
  // Returns the production with this label and these child labels, or -1.
  std::int32_t find_production(std::int32_t label, std::span<const std::int32_t> child_labels) const;

  std::size_t size() const { return nodes_.size() - 1; }
  std::size_t label_count() const { return labels_.size(); }
  std::size_t production_count() const { return production_ends_.size(); }

  std::int32_t label(NodeId node) const { return nodes_[at(node)].label; }
  std::string_view label_name(NodeId node) const { return labels_.name(label(node)); }
  std::span<const NodeId> children(NodeId node) const {
    const auto begin = static_cast<std::size_t>(nodes_[at(node)].child_begin);
    return {children_.data() + begin, static_cast<std::size_t>(nodes_[at(node) + 1].child_begin) - begin};
  }
  bool is_leaf(NodeId node) const { return nodes_[at(node)].production < 0; }
  // Returns the production of a node; -1 for a leaf.
  std::int32_t production(NodeId node) const { return nodes_[at(node)].production; }

  const NameTable& labels() const { return labels_; }
  std::span<const NodeId> all_children() const { return children_; }
  std::size_t memory() const;

  // Returns the number of nodes of each tree, given its root. Repeated subtrees count every time. A root of
  // -1 gives 0; a number that a double cannot represent becomes infinite.
  std::vector<double> tree_sizes(std::span<const NodeId> roots) const;

  std::shared_mutex& gate() const { return *gate_; }

 private:
  struct Node {
    std::int64_t child_begin;  // children end where those of the next node begin
    std::int32_t label;
    std::int32_t production;
  };
  struct Slot {
    std::uint64_t hash;   // for a node with one child: its label and child instead
    std::int32_t number;  // -1 if the slot is free
  };
  using Slots = LargeVector<Slot>;

  template <class Same>
  static std::size_t find_slot(const Slots& slots, std::uint64_t hash, const Same& same);
  static void insert(Slots& slots, std::size_t count, std::size_t at, Slot slot);
  static std::size_t find_unary_slot(const Slots& slots, std::uint64_t key);
  NodeId add_unary(std::int32_t label, NodeId child);
  NodeId append(std::int32_t label, std::span<const NodeId> children);
  bool is_node(NodeId node, std::int32_t label, std::span<const NodeId> children) const;
  bool is_production(std::int32_t production, std::span<const std::int32_t> labels) const;
  std::int32_t add_production(std::int32_t label, std::span<const NodeId> children);

  std::unique_ptr<std::shared_mutex> gate_ = std::make_unique<std::shared_mutex>();
  NameTable labels_;
  LargeVector<Node> nodes_;  // with a sentinel at the end
  LargeVector<NodeId> children_;
  std::vector<std::int32_t> production_labels_;  // by production: its label, then its children's labels
  std::vector<std::int64_t> production_ends_;
  std::vector<NodeId> leaf_;  // by label: its leaf or -1, so leaves need no hashing
  // Nodes with one child, the most frequent nodes, by label and child. A lookup compares no lists of
  // children.
  Slots unary_slots_;
  std::size_t unary_count_ = 0;
  Slots node_slots_;  // of nodes with several children
  std::size_t branching_count_ = 0;
  Slots production_slots_;
  std::vector<std::int32_t> new_labels_;  // of the production being added
};

}  // namespace unkernel::data
