// An index of the nodes of a model. It finds the nodes that match a given node without visiting all nodes.
//
// The nodes of a group are contiguous: the group's *block*. Within a block, nodes whose first children are in
// the same group are contiguous. For each (group, position, group of a child), a list contains the nodes with
// such a child at this position. For the first position, the list is a range. A range is divided into *runs*
// of nodes with the same first child or, if the nodes have only one child, with consecutive children.
//
// For partial trees, the nodes of a group with the same production are contiguous, and form a *class*. For
// each (group, group of a child), a list contains the classes that have such a child at any position.
// Delta(u, v) differs from the constant of the group only if v is in a list for a child of u.
//
// Memory   about 20 bytes per node, 12 per child and 40 per list
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/at.hpp"
#include "unkernel/base/flat_map.hpp"
#include "unkernel/kernels/trees/tree_kernel.hpp"

namespace unkernel::kernels {

class TreeIndex {
 public:
  struct List {
    std::int32_t begin = 0;  // of a range: position in the block; of a list: position in listed_
    std::int32_t size = 0;
    // For a range: its first run. For a list with more than half of the block: where, in listed_, the nodes
    // begin that are not in the list. For any other list: -1.
    std::int32_t complement_begin = -1;
    std::int32_t complement_size = 0;
  };

  // Neighbouring nodes of a block with the same first child. If nodes have a single child, neighbouring nodes
  // whose children are neighbours.
  struct Run {
    std::int32_t begin;  // the number of the first node
    std::int32_t child;  // position of the first child of the first node; see runs()
  };

  // Indexes these nodes of the forest. They must be in the order of nodes_in_order, and include the children
  // of each node, except leaves that the kernel ignores.
  TreeIndex(const TreeKernel& kernel, const Forest& forest, std::span<const NodeId> nodes);

  const TreeKernel& kernel() const { return kernel_; }
  std::size_t size() const { return node_.size(); }
  std::size_t group_count() const { return block_begin_.size() - 1; }
  std::size_t largest_block() const { return largest_block_; }

  // Returns the number of a forest group in this index, or -1 if the index has no node of this group.
  std::int32_t group(std::int32_t forest_group) const {
    return static_cast<std::size_t>(forest_group) < group_map_.size() ? group_map_[at(forest_group)] : -1;
  }
  std::size_t block_begin(std::int32_t group) const {
    return static_cast<std::size_t>(block_begin_[at(group)]);
  }
  std::size_t block_size(std::int32_t group) const { return block_begin(group + 1) - block_begin(group); }
  // Returns how many children each node of the group has. Only for kernels that compare productions.
  std::size_t arity(std::int32_t group) const { return at(arity_[at(group)]); }
  // Returns the Delta of nodes of the group that have no matching children.
  double constant(std::int32_t group) const { return constants_.empty() ? constant_ : constants_[at(group)]; }

  NodeId node(std::size_t number) const { return node_[number]; }
  std::span<const NodeId> nodes() const { return node_; }
  std::int32_t group_of_number(std::size_t number) const { return group_[number]; }

  // Returns the list of the nodes of `group` whose child at position `place` is in `child_group`. For partial
  // trees, the child may be at any position, and `place` must be 0.
  List matches(std::int32_t group, std::size_t place, std::int32_t child_group) const {
    const List* list =
        lists_.find(key(first_place_[at(group)] + static_cast<std::int64_t>(place), child_group));
    return list == nullptr ? List{} : *list;
  }
  std::span<const std::int32_t> listed(const List& list) const { return part(list.begin, list.size); }
  // Returns, for each node of the list, the position of its matching child in the child's block.
  const std::int32_t* listed_children(const List& list) const { return listed_child_.data() + list.begin; }
  std::span<const std::int32_t> not_listed(const List& list) const {
    return part(list.complement_begin, list.complement_size);
  }

  // Returns the runs of a range, which are numbered from list.complement_begin on. A run ends where the next
  // run begins. An entry after the last run has the end of the range, and -1 - g for the group g of the
  // children.
  std::span<const Run> runs(const List& range) const {
    return std::span(runs_).subspan(at(range.complement_begin), at(range.complement_size));
  }
  std::span<const Run> all_runs() const { return runs_; }
  // Returns the number of the first run of a group. Only for kernels that compare productions.
  std::size_t first_run(std::int32_t group) const { return static_cast<std::size_t>(first_run_[at(group)]); }

  // Returns, for each node of the group, the position of its child `place` in the child's block.
  const std::int32_t* child_positions(std::int32_t group, std::size_t place) const {
    return child_position_.data() + child_base_[at(group)] +
           static_cast<std::ptrdiff_t>(place * block_size(group));
  }

  // The contiguous nodes of one production, for partial trees.
  struct Class {
    std::int32_t begin;  // in the block
    std::int32_t size;
  };
  const Class& production_class(std::int32_t number) const { return classes_[at(number)]; }
  std::size_t class_count() const { return classes_.size(); }

  // A child of a node, given by its group and its position in the block of the group. For partial trees.
  struct Child {
    std::int32_t group;
    std::int32_t position;
  };
  std::span<const Child> children(std::size_t number) const {
    const auto begin = static_cast<std::size_t>(child_begin_[number]);
    return {children_.data() + begin, static_cast<std::size_t>(child_begin_[number + 1]) - begin};
  }

  std::size_t memory() const;

 private:
  std::span<const std::int32_t> part(std::int32_t begin, std::int32_t size) const {
    return std::span(listed_).subspan(at(begin), at(size));
  }
  static std::uint64_t key(std::int64_t place, std::int32_t child_group) {
    return (static_cast<std::uint64_t>(place) << 32) | static_cast<std::uint32_t>(child_group);
  }
  void arrange(const Forest& forest, std::span<const NodeId> nodes);
  void index_places(const Forest& forest, std::span<const std::int32_t> number_of);
  void index_children(const Forest& forest, std::span<const std::int32_t> number_of);
  void list_place(std::int32_t group, std::size_t place, bool has_only_child,
                  std::span<const std::int32_t> child_groups);
  void list_children(std::int32_t group, std::size_t place, std::size_t begin);
  void list_runs(std::int32_t group, std::int32_t child_group, bool has_only_child, List& range);

  TreeKernel kernel_;
  double constant_;
  std::vector<double> constants_;  // by group; for the subtree kernel only
  std::vector<std::int32_t> group_map_;
  std::vector<std::int32_t> block_begin_;
  std::vector<std::int32_t> group_;
  std::vector<NodeId> node_;
  std::size_t largest_block_ = 0;
  std::vector<std::int64_t> first_place_;  // by group: the number of its first child position
  std::vector<std::int32_t> arity_;
  std::vector<std::ptrdiff_t> child_base_;
  std::vector<std::int32_t> child_position_;
  std::vector<std::int32_t> listed_;
  std::vector<std::int32_t> listed_child_;  // parallel to `listed_`; for productions
  std::vector<Run> runs_;
  std::vector<std::int32_t> first_run_;
  FlatMap<std::uint64_t, List> lists_;
  std::vector<std::int64_t> child_begin_;
  std::vector<Child> children_;
  std::vector<Class> classes_;
};

}  // namespace unkernel::kernels
