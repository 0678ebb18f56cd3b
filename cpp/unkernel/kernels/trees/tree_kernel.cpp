#include "unkernel/kernels/trees/tree_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "unkernel/base/elementary.hpp"
#include "unkernel/base/error.hpp"

namespace unkernel::kernels {
namespace {

std::vector<std::int32_t> list_own_groups(const TreeKernel& kernel, const Forest& forest) {
  std::vector<std::int32_t> groups(forest.size());
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups[i] = group_of(kernel, forest, static_cast<NodeId>(i));
  return groups;
}

std::vector<std::int32_t> find_labels(const Forest& forest, const Forest& known) {
  std::vector<std::int32_t> labels(forest.label_count());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = known.find_label(forest.labels().name(static_cast<std::int32_t>(i)));
  }
  return labels;
}

// Looks up each production only once, because many nodes share it.
std::vector<std::int32_t> find_productions(const Forest& forest, const Forest& known,
                                           std::span<const std::int32_t> labels) {
  constexpr std::int32_t not_looked_up = -2;
  std::vector<std::int32_t> productions(forest.production_count(), not_looked_up);
  std::vector<std::int32_t> child_labels;
  for (std::size_t i = 0; i < forest.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (forest.is_leaf(node)) continue;
    std::int32_t& production = productions[static_cast<std::size_t>(forest.production(node))];
    if (production != not_looked_up) continue;
    child_labels.clear();
    for (const NodeId child : forest.children(node))
      child_labels.push_back(labels[static_cast<std::size_t>(forest.label(child))]);
    const std::int32_t label = labels[static_cast<std::size_t>(forest.label(node))];
    const bool is_new = label < 0 || std::ranges::find(child_labels, -1) != child_labels.end();
    production = is_new ? -1 : known.find_production(label, child_labels);
  }
  return productions;
}

std::vector<std::int32_t> find_nodes(const Forest& forest, const Forest& known,
                                     std::span<const std::int32_t> labels) {
  std::vector<std::int32_t> nodes(forest.size(), -1);
  std::vector<NodeId> children;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    const std::int32_t label = labels[static_cast<std::size_t>(forest.label(node))];
    if (label < 0) continue;
    children.clear();
    for (const NodeId child : forest.children(node))
      children.push_back(nodes[static_cast<std::size_t>(child)]);
    if (std::ranges::find(children, -1) == children.end()) nodes[i] = known.find_node(label, children);
  }
  return nodes;
}

// Sorts each run of parents with one child, where the parents are in one group and their children in one
// group, by the positions of the children, so that the Delta values of the children are read sequentially.
// Sorts runs with smaller node numbers first: in chains of parents with one child, these are mostly the runs
// of the children, whose positions are then final.
void sort_parents_by_only_child(const TreeKernel& kernel, const Forest& forest, std::span<NodeId> nodes) {
  std::vector<std::size_t> position(forest.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) position[static_cast<std::size_t>(nodes[i])] = i;
  const auto only_child = [&](NodeId node) { return forest.children(node).front(); };
  const auto child_group = [&](NodeId node) { return group_of(kernel, forest, only_child(node)); };
  struct NodeRun {
    NodeId first;  // the node with the smallest number
    std::size_t begin, end;
  };
  std::vector<NodeRun> runs;
  for (std::size_t begin = 0, end = 0; begin < nodes.size(); begin = end) {
    const NodeId first = nodes[begin];
    end = begin + 1;
    if (forest.children(first).size() != 1 || forest.is_leaf(only_child(first))) continue;
    const std::int32_t group = group_of(kernel, forest, first);
    while (end < nodes.size() && group_of(kernel, forest, nodes[end]) == group &&
           child_group(nodes[end]) == child_group(first))
      ++end;
    if (end > begin + 1) runs.push_back({first, begin, end});
  }
  std::ranges::sort(runs, {}, &NodeRun::first);
  for (const NodeRun& run : runs) {
    const auto run_nodes = nodes.subspan(run.begin, run.end - run.begin);
    std::ranges::sort(run_nodes, {},
                      [&](NodeId node) { return position[static_cast<std::size_t>(only_child(node))]; });
    for (std::size_t i = run.begin; i < run.end; ++i) position[static_cast<std::size_t>(nodes[i])] = i;
  }
}

}  // namespace

std::vector<std::int32_t> groups_in(const TreeKernel& kernel, const Forest& forest, const Forest& known) {
  if (&forest == &known) return list_own_groups(kernel, forest);
  const std::vector<std::int32_t> labels = find_labels(forest, known);
  if (kernel.kind == TreeKernelKind::subtree) {
    std::vector<std::int32_t> nodes = find_nodes(forest, known, labels);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (forest.is_leaf(static_cast<NodeId>(i))) nodes[i] = -1;
    }
    return nodes;
  }
  std::vector<std::int32_t> groups(forest.size(), -1);
  const auto label_of = [&](std::size_t i) {
    return labels[static_cast<std::size_t>(forest.label(static_cast<NodeId>(i)))];
  };
  if (kernel.kind == TreeKernelKind::partial_tree) {
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = label_of(i);
    return groups;
  }
  const std::vector<std::int32_t> productions = find_productions(forest, known, labels);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (forest.is_leaf(node)) {
      if (kernel.has_leaves()) groups[i] = word_group(label_of(i));
    } else {
      const std::int32_t production = productions[static_cast<std::size_t>(forest.production(node))];
      groups[i] = kernel.has_leaves() ? production_group(production) : production;
    }
  }
  return groups;
}

std::vector<NodeId> nodes_in_order(const TreeKernel& kernel, const Forest& forest) {
  std::vector<NodeId> all(forest.size());
  std::iota(all.begin(), all.end(), 0);
  return nodes_in_order(kernel, forest, all);
}

std::vector<NodeId> nodes_in_order(const TreeKernel& kernel, const Forest& forest,
                                   std::span<const NodeId> chosen) {
  struct Sorted {
    std::int32_t group;
    std::int32_t part;  // the group of the first child, or the production
    NodeId first_child;
    NodeId node;
    auto operator<=>(const Sorted&) const = default;
  };
  std::vector<Sorted> sorted;
  sorted.reserve(chosen.size());
  for (const NodeId node : chosen) {
    const std::int32_t group = group_of(kernel, forest, node);
    if (group < 0) continue;
    const NodeId first = forest.is_leaf(node) ? -1 : forest.children(node).front();
    if (kernel.kind == TreeKernelKind::partial_tree) {
      sorted.push_back({group, forest.production(node), first, node});
    } else {
      sorted.push_back({group, first < 0 ? -1 : group_of(kernel, forest, first), first, node});
    }
  }
  std::ranges::sort(sorted);
  std::vector<NodeId> nodes;
  nodes.reserve(sorted.size());
  for (const Sorted& entry : sorted) nodes.push_back(entry.node);
  if (kernel.by_production()) sort_parents_by_only_child(kernel, forest, nodes);
  return nodes;
}

std::vector<double> subtree_constants(const TreeKernel& kernel, const Forest& forest) {
  std::vector<double> constants(forest.size(), 1.0);
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (forest.is_leaf(node)) continue;
    constants[i] = kernel.decay;
    for (const NodeId child : forest.children(node))
      constants[i] *= constants[static_cast<std::size_t>(child)];
  }
  return constants;
}

void ChildPattern::match(std::span<const std::int32_t> left, std::span<const std::int32_t> right,
                         double gap) {
  pairs_.clear();
  for (std::size_t i = 0; i < left.size(); ++i) {
    for (std::size_t j = 0; j < right.size(); ++j) {
      if (left[i] >= 0 && left[i] == right[j])
        pairs_.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)});
    }
    if (pairs_.size() > most_pairs_at_all) {
      throw NotEnoughMemory("nodes with " + std::to_string(left.size()) + " and " +
                            std::to_string(right.size()) + " children have more than " +
                            std::to_string(most_pairs_at_all) +
                            " pairs of children of the same label, too many for the kernel of partial "
                            "trees; divide such nodes, or use another kernel");
    }
  }
  if (!is_small()) return;
  for (std::size_t k = 0; k < pairs_.size(); ++k) {
    for (std::size_t l = 0; l < k; ++l) {
      const std::int32_t skipped_left = pairs_[k].left - pairs_[l].left - 1;
      const std::int32_t skipped_right = pairs_[k].right - pairs_[l].right - 1;
      const bool can_follow = skipped_left >= 0 && skipped_right >= 0;
      follows_[k * most_pairs + l] = can_follow ? whole_power(gap, skipped_left + skipped_right) : 0.0;
    }
  }
}

double ChildPattern::sum(const double* deltas) const {
  const std::size_t count = pairs_.size();
  if (count == 1) return deltas[0];
  if (count == 2) return deltas[0] + deltas[1] + follows_[most_pairs] * deltas[0] * deltas[1];
  double total = 0.0;
  std::array<double, most_pairs> ending;  // sums over subsequences of the current length that end here
  for (std::size_t k = 0; k < count; ++k) {
    ending[k] = deltas[k];
    total += deltas[k];
  }
  for (std::size_t length = 2; length <= longest_subsequence; ++length) {
    double sum_of_length = 0.0;
    for (std::size_t k = count; k-- > 0;) {  // backwards: earlier entries have the previous length
      double before = 0.0;
      for (std::size_t l = 0; l < k; ++l) before += follows_[k * most_pairs + l] * ending[l];
      ending[k] = deltas[k] * before;
      sum_of_length += ending[k];
    }
    if (sum_of_length == 0.0) break;
    total += sum_of_length;
  }
  return total;
}

double PartialTreeSum::operator()(std::size_t height, std::size_t width, FillRow fill_row) {
  // If either side has one child, no child can be skipped.
  const std::size_t longest = std::min({height, width, longest_subsequence});
  deltas_.resize(width);
  ending_.resize(width);
  spanning_.assign(longest > 1 ? (longest - 1) * width : 0, 0.0);
  sums_.assign(std::max<std::size_t>(longest, 1), 0.0);
  for (std::size_t i = 0; i < height; ++i) {
    fill_row(i, deltas_.data());
    for (std::size_t j = 0; j < width; ++j) sums_[0] += deltas_[j];
    add_row(width, longest);
  }
  double sum = 0.0;
  for (const double sum_of_length : sums_) sum += sum_of_length;
  return mu_ * (lambda_ * lambda_ + sum);
}

// Computes the next row. A subsequence that ends in a pair consists of this pair and a shorter subsequence
// that ends before it on both sides.
void PartialTreeSum::add_row(std::size_t width, std::size_t longest) {
  const double squared = lambda_ * lambda_;
  std::copy(deltas_.begin(), deltas_.end(), ending_.begin());
  for (std::size_t length = 1; length < longest; ++length) {
    double* spanning = spanning_.data() + (length - 1) * width;
    double before = 0.0, left = 0.0;  // spanning value one row up and one place left; one place left
    for (std::size_t j = 0; j < width; ++j) {
      const double up = spanning[j];
      // The sums above and to the left overlap in the sum of the row above, one place left.
      left = spanning[j] = ending_[j] + lambda_ * (up + left) - squared * before;
      ending_[j] = deltas_[j] * before;
      sums_[length] += ending_[j];
      before = up;
    }
  }
}

}  // namespace unkernel::kernels
