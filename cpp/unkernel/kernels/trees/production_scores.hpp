// Scores trees with the kernels that compare productions (SST, SST + bow).
//
//   s(u) = scale(u) sum_v f(v) r(v),    r(v) = prod_k (1 + Delta(child k of u, child k of v))
//
// where v are the nodes of the model in the block of u's group (tree_index.hpp), f(v) is the weight of v, and
// a factor is 1 unless the children match. The factors of one child after another are multiplied into r, and
// the sum is updated: a factor 1 + d for the nodes in a list L adds the sum of f(v) r(v) d over v in L. So no
// separate pass sums the row r, and r is stored only if a later child or a parent needs it. The factors of
// the first child are multiplied run by run, using the sum of f over each run.
//
// Cost     about a nanosecond per node with a matching child that is not the first; less for the first child
// Memory   8 bytes times the largest block for each stored row, per thread
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_plan.hpp"
#include "unkernel/kernels/trees/tree_weights.hpp"

namespace unkernel::kernels {

// Scores trees. Each thread needs its own object.
class ProductionScorer {
 public:
  // See TreePlan for `groups`.
  ProductionScorer(const TreeWeights& weights, const Forest& forest, std::span<const std::int32_t> groups)
      : weights_(weights),
        index_(weights.index()),
        plan_(index_, forest, groups),
        node_sums_(weights.scores()),
        parent_sums_(weights.scores()) {}
  void use(const Forest& forest, std::span<const std::int32_t> groups) { plan_.use(forest, groups); }

  // Adds the scores of the tree to `sums`.
  void add(const TreeRow& tree, double* sums);

 private:
  struct Node : PlannedNode {
    std::unique_ptr<double[]> row;  // r - 1 for all nodes of the block; null if it is 0 everywhere
  };

  // The factors of the first child, for rows that do not yet include them.
  struct FirstChild {
    double excess(std::int32_t i) const {
      const bool matches = i >= begin && i < end;
      const double below = row[matches ? position[i] : 0];
      return matches ? scale + scale * below : 0.0;
    }
    const double* row = nullptr;
    const std::int32_t* position = nullptr;
    double scale = 0.0;
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };

  void sum_up(Node& node);
  bool sum_up_with_parent(Node& node, const TreeRow& tree, std::size_t place, double* sums);
  FirstChild multiply_first_child(Node& node, const ChildMatch& match, const double* weights_by_child_run);
  void multiply_lists(Node& node, const FirstChild& first, const double* weights_by_child);
  template <bool reads, bool writes, class ExcessOf>
  void multiply_both(Node& node, const FirstChild& first, std::span<const std::int32_t> positions,
                     const ExcessOf& excess_of, const double* weights_by_child);
  void take_row(Node& node);
  void multiply_range(Node& node, const ChildMatch& match, bool keeps_row);
  void multiply_runs(Node& node, const ChildMatch& match, bool keeps_row);
  void multiply_stretches(Node& node, const ChildMatch& match, bool keeps_row);
  template <class Below>
  void multiply_stretch(double* row, std::size_t size, double scale, const Below& below,
                        const double* node_weights);
  void multiply_first(Node& node, const ChildMatch& match, bool keeps_row);
  template <class Multiply>
  void visit_factors(Node& node, const ChildMatch& match, const Multiply& multiply);
  void multiply_list(Node& node, const ChildMatch& match);
  void add_at(std::span<const std::int32_t> positions, const double* weights, std::vector<double>& sums);
  void release_children(const Node& node);
  template <class ExcessOf>
  void multiply_listed(Node& node, std::span<const std::int32_t> positions, const ExcessOf& excess_of);
  double* reserve_values(std::size_t values);
  void release(Node& node);

  const TreeWeights& weights_;
  const TreeIndex& index_;
  TreePlan plan_;
  std::vector<Node> nodes_;
  std::vector<double> node_sums_;                  // by score: the sum of f r
  std::vector<double> parent_sums_;                // by score: the sum of f r for the parent
  std::vector<double> values_;                     // factors of the weights to add next
  std::vector<std::unique_ptr<double[]>> spare_;   // rows of zeros
  std::vector<double> zeros_;                      // the row of a child that has none
  std::vector<const ChildMatch*> later_children_;  // children after the first
};

}  // namespace unkernel::kernels
