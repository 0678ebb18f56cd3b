// Tree kernels: which pairs of nodes contribute, and how much.
//
//   K(T1, T2) = sum over nodes n1 of T1, n2 of T2 of Delta(n1, n2)
//
// Delta is 0 unless the two nodes are in the same *group*. If no children match, Delta is the constant of the
// group.
//
//   kernel     group              constant              where children match
//   ST         the whole subtree  lambda^(inner nodes)  –
//   SST        the production     lambda                lambda prod_k (1 + Delta(child_k, child_k'))
//   SST + bow  SST, and words     lambda                as SST; a word is a pair of its own
//   PTK        the label          mu lambda^2           mu (lambda^2 + S)
//
// S is the sum of lambda^gaps prod Delta(child, child') over pairs of equally long subsequences (of at most
// five) of the two lists of children; `gaps` counts the skipped children.
//
// Collins & Duffy (2002), Vishwanathan & Smola (2003), Moschitti (2006); values as in SVM-light-TK 1.5.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/function_ref.hpp"
#include "unkernel/data/trees/forest.hpp"

namespace unkernel::kernels {

using data::Forest;
using data::NodeId;

enum class TreeKernelKind { subtree, subset_tree, subset_tree_words, partial_tree };

struct TreeKernel {
  TreeKernelKind kind;
  double decay;        // lambda
  double width_decay;  // mu, for partial trees

  bool by_production() const {
    return kind == TreeKernelKind::subset_tree || kind == TreeKernelKind::subset_tree_words;
  }
  bool has_leaves() const {
    return kind == TreeKernelKind::subset_tree_words || kind == TreeKernelKind::partial_tree;
  }
};

// The largest length of subsequences of children in partial trees.
inline constexpr std::size_t longest_subsequence = 5;

// If words count, productions have even group numbers and words have odd ones, so that numbers do not change
// when a forest grows.
inline std::int32_t production_group(std::int32_t production) { return production < 0 ? -1 : 2 * production; }
inline std::int32_t word_group(std::int32_t label) { return label < 0 ? -1 : 2 * label + 1; }

// Returns the group of a node within its forest, or -1 if the kernel ignores the node.
inline std::int32_t group_of(const TreeKernel& kernel, const Forest& forest, NodeId node) {
  switch (kernel.kind) {
    case TreeKernelKind::subtree: return forest.is_leaf(node) ? -1 : node;
    case TreeKernelKind::subset_tree: return forest.production(node);
    case TreeKernelKind::subset_tree_words:
      return forest.is_leaf(node) ? word_group(forest.label(node))
                                  : production_group(forest.production(node));
    case TreeKernelKind::partial_tree: return forest.label(node);
  }
  return -1;
}

inline std::size_t group_count(const TreeKernel& kernel, const Forest& forest) {
  switch (kernel.kind) {
    case TreeKernelKind::subtree: return forest.size();
    case TreeKernelKind::subset_tree: return forest.production_count();
    case TreeKernelKind::subset_tree_words:
      return 2 * std::max(forest.production_count(), forest.label_count());
    case TreeKernelKind::partial_tree: return forest.label_count();
  }
  return 0;
}

// Returns, for each node of `forest`, its group in `known`. Returns -1 if `known` does not have this group,
// so that no node can match. If both are the same forest, the result equals group_of.
std::vector<std::int32_t> groups_in(const TreeKernel& kernel, const Forest& forest, const Forest& known);

// Returns the nodes of a forest in the order of an index: by group, then by the group of the first child,
// then by the first child. Nodes with one child are in the order of these children; for partial trees, nodes
// are ordered by group, then by production. Leaves out nodes without a group. One sort serves the indices of
// all subsets of the forest.
std::vector<NodeId> nodes_in_order(const TreeKernel& kernel, const Forest& forest);
// Does the same for chosen nodes, which must include the children of each node, except leaves without a
// group.
std::vector<NodeId> nodes_in_order(const TreeKernel& kernel, const Forest& forest,
                                   std::span<const NodeId> chosen);

// Returns the constants of the subtree kernel: lambda^(number of inner nodes of the subtree), for each node.
std::vector<double> subtree_constants(const TreeKernel& kernel, const Forest& forest);

// The pairs of children of two nodes with equal labels, and the order in which these pairs can follow each
// other. All nodes of two productions have the same pattern, so it is computed once for many nodes.
class ChildPattern {
 public:
  // Computes the pattern of two lists of children with these groups; `gap` is lambda.
  void match(std::span<const std::int32_t> left, std::span<const std::int32_t> right, double gap);

  struct Pair {
    std::int32_t left;
    std::int32_t right;
  };
  std::span<const Pair> pairs() const { return pairs_; }
  // Returns whether there are few pairs. Then sums over pairs are faster; otherwise use PartialTreeSum.
  bool is_small() const { return pairs_.size() <= most_pairs; }

  // Returns S, given the Delta of the pairs in their order. There must be at most most_pairs pairs.
  double sum(const double* deltas) const;

  static constexpr std::size_t most_pairs = 12;
  // The largest number of matching pairs; it could reach the product of the numbers of children. More throw
  // an error.
  static constexpr std::size_t most_pairs_at_all = std::size_t{1} << 23;

 private:
  std::vector<Pair> pairs_;
  // lambda^gaps if pair k can follow pair l, otherwise 0; row-major.
  std::array<double, most_pairs * most_pairs> follows_{};
};

// Computes mu (lambda^2 + S) for nodes with `height` and `width` children, from the table of all pairs of
// children. Keeps only a few rows of the table in memory.
class PartialTreeSum {
 public:
  // Writes the Delta of child i of the left node with each child of the right node; 0 where labels differ.
  using FillRow = FunctionRef<void(std::size_t i, double* deltas)>;

  explicit PartialTreeSum(const TreeKernel& kernel) : lambda_(kernel.decay), mu_(kernel.width_decay) {}
  double operator()(std::size_t height, std::size_t width, FillRow fill_row);

 private:
  void add_row(std::size_t width, std::size_t longest);

  double lambda_;
  double mu_;
  std::vector<double> deltas_;  // of the current row
  std::vector<double> ending_;  // of the current row: sums over subsequences that end in this pair
  // From the previous row, for each length except the longest: sums over the subsequences that end at or
  // before the pair, weighted by gaps.
  std::vector<double> spanning_;
  std::vector<double> sums_;  // by length
};

}  // namespace unkernel::kernels
