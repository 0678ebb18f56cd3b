#include "unkernel/kernels/trees/tree_index.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace unkernel::kernels {
namespace {

double constant_of(const TreeKernel& kernel) {
  return kernel.kind == TreeKernelKind::partial_tree ? kernel.width_decay * (kernel.decay * kernel.decay)
                                                     : kernel.decay;
}

}  // namespace

TreeIndex::TreeIndex(const TreeKernel& kernel, const Forest& forest, std::span<const NodeId> nodes)
    : kernel_(kernel), constant_(constant_of(kernel)), group_map_(kernels::group_count(kernel, forest), -1) {
  arrange(forest, nodes);
  first_place_.assign(group_count(), 0);
  if (kernel_.kind == TreeKernelKind::subtree) {
    const std::vector<double> all = subtree_constants(kernel_, forest);
    for (const NodeId node : node_) constants_.push_back(all[at(node)]);
    return;
  }
  std::vector<std::int32_t> number_of(forest.size(), -1);
  for (std::size_t i = 0; i < node_.size(); ++i) number_of[at(node_[i])] = static_cast<std::int32_t>(i);
  if (kernel_.kind == TreeKernelKind::partial_tree) {
    index_children(forest, number_of);
  } else {
    index_places(forest, number_of);
  }
}

// Assigns numbers to groups and nodes.
void TreeIndex::arrange(const Forest& forest, std::span<const NodeId> nodes) {
  node_.assign(nodes.begin(), nodes.end());
  group_.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::int32_t& group = group_map_[at(group_of(kernel_, forest, nodes[i]))];
    if (group < 0) {
      group = static_cast<std::int32_t>(block_begin_.size());
      block_begin_.push_back(static_cast<std::int32_t>(i));
    }
    group_.push_back(group);
  }
  block_begin_.push_back(static_cast<std::int32_t>(node_.size()));
  for (std::size_t i = 0; i + 1 < block_begin_.size(); ++i) {
    largest_block_ =
        std::max(largest_block_, static_cast<std::size_t>(block_begin_[i + 1] - block_begin_[i]));
  }
}

// Indexes children by position. Used for kernels that compare productions: there, all nodes of a group have
// the same number of children.
void TreeIndex::index_places(const Forest& forest, std::span<const std::int32_t> number_of) {
  std::vector<std::int32_t> child_groups;
  child_base_.reserve(group_count());
  std::int64_t places = 0;
  for (std::size_t i = 0; i < group_count(); ++i) {
    const auto group = static_cast<std::int32_t>(i);
    const std::size_t begin = block_begin(group);
    const std::size_t size = block_size(group);
    const std::size_t arity = forest.children(node_[begin]).size();
    first_place_[i] = places;
    arity_.push_back(static_cast<std::int32_t>(arity));
    first_run_.push_back(static_cast<std::int32_t>(runs_.size()));
    places += static_cast<std::int64_t>(arity);
    child_base_.push_back(static_cast<std::ptrdiff_t>(child_position_.size()));
    for (std::size_t place = 0; place < arity; ++place) {
      child_groups.assign(size, -1);
      for (std::size_t j = 0; j < size; ++j) {
        const NodeId child = forest.children(node_[begin + j])[place];
        const std::int32_t number = forest.is_leaf(child) ? -1 : number_of[at(child)];
        if (number >= 0) child_groups[j] = group_[at(number)];
        child_position_.push_back(number < 0 ? -1 : number - block_begin_[at(child_groups[j])]);
      }
      list_place(group, place, arity == 1, child_groups);
    }
  }
  first_run_.push_back(static_cast<std::int32_t>(runs_.size()));
}

void TreeIndex::list_place(std::int32_t group, std::size_t place, bool has_only_child,
                           std::span<const std::int32_t> child_groups) {
  std::vector<std::int32_t> order(child_groups.size());
  std::iota(order.begin(), order.end(), 0);
  if (place > 0) {
    std::ranges::stable_sort(order, {}, [&](std::int32_t i) { return child_groups[at(i)]; });
  }
  for (std::size_t begin = 0; begin < order.size();) {
    const std::int32_t child_group = child_groups[at(order[begin])];
    std::size_t end = begin + 1;
    while (end < order.size() && child_groups[at(order[end])] == child_group) ++end;
    if (child_group >= 0) {
      List list{static_cast<std::int32_t>(place == 0 ? begin : listed_.size()),
                static_cast<std::int32_t>(end - begin)};
      if (place > 0) {
        const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = order.begin() + static_cast<std::ptrdiff_t>(end);
        listed_.insert(listed_.end(), first, last);
        if (2 * (end - begin) > order.size()) {
          list.complement_begin = static_cast<std::int32_t>(listed_.size());
          list.complement_size = static_cast<std::int32_t>(order.size() - (end - begin));
          listed_.insert(listed_.end(), order.begin(), first);
          listed_.insert(listed_.end(), last, order.end());
        }
        list_children(group, place, at(list.begin));
      } else {
        list_runs(group, child_group, has_only_child, list);
      }
      lists_[key(first_place_[at(group)] + static_cast<std::int64_t>(place), child_group)] = list;
    }
    begin = end;
  }
}

// Lists the children of the nodes in listed_, from position `begin` on.
void TreeIndex::list_children(std::int32_t group, std::size_t place, std::size_t begin) {
  const std::int32_t* position = child_positions(group, place);
  listed_child_.resize(listed_.size());
  for (std::size_t k = begin; k < listed_.size(); ++k) listed_child_[k] = position[listed_[k]];
}

void TreeIndex::list_runs(std::int32_t group, std::int32_t child_group, bool has_only_child, List& range) {
  const std::int32_t* position = child_positions(group, 0);
  const std::int32_t first = block_begin_[at(group)], end = range.begin + range.size;
  const std::int32_t step = has_only_child ? 1 : 0;
  range.complement_begin = static_cast<std::int32_t>(runs_.size());
  for (std::int32_t i = range.begin; i < end; ++i) {
    if (i == range.begin || position[i] != position[i - 1] + step) runs_.push_back({first + i, position[i]});
  }
  range.complement_size = static_cast<std::int32_t>(runs_.size()) - range.complement_begin;
  runs_.push_back({first + end, -1 - child_group});
}

// Indexes children by label. For partial trees, where a child may match any child with the same label.
void TreeIndex::index_children(const Forest& forest, std::span<const std::int32_t> number_of) {
  child_begin_.push_back(0);
  std::vector<std::pair<std::uint64_t, std::int32_t>> entries;  // (group, child group), class
  for (std::size_t i = 0; i < node_.size(); ++i) {
    const bool is_first = i == 0 || group_[i] != group_[i - 1] ||
                          forest.production(node_[i]) != forest.production(node_[i - 1]);
    if (is_first) classes_.push_back({static_cast<std::int32_t>(i) - block_begin_[at(group_[i])], 0});
    ++classes_.back().size;
    for (const NodeId child : forest.children(node_[i])) {
      const std::int32_t number = number_of[at(child)];
      const std::int32_t group = group_[at(number)];
      children_.push_back({group, number - block_begin_[at(group)]});
      if (is_first)
        entries.emplace_back(key(group_[i], group), static_cast<std::int32_t>(classes_.size()) - 1);
    }
    child_begin_.push_back(static_cast<std::int64_t>(children_.size()));
  }
  for (std::size_t i = 0; i < group_count(); ++i) first_place_[i] = static_cast<std::int64_t>(i);
  std::ranges::sort(entries);
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  for (std::size_t begin = 0; begin < entries.size();) {
    std::size_t end = begin;
    const auto begin_of_list = static_cast<std::int32_t>(listed_.size());
    while (end < entries.size() && entries[end].first == entries[begin].first)
      listed_.push_back(entries[end++].second);
    lists_[entries[begin].first] = {begin_of_list, static_cast<std::int32_t>(end - begin), -1, 0};
    begin = end;
  }
}

std::size_t TreeIndex::memory() const {
  return (group_map_.capacity() + block_begin_.capacity() + group_.capacity() + node_.capacity() +
          child_position_.capacity() + arity_.capacity() + first_run_.capacity() + listed_.capacity() +
          listed_child_.capacity()) *
             4 +
         (constants_.capacity() + first_place_.capacity() + child_base_.capacity() + child_begin_.capacity() +
          children_.capacity() + classes_.capacity() + runs_.capacity()) *
             8 +
         lists_.size() * 40;
}

}  // namespace unkernel::kernels
