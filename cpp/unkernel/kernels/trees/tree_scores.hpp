// Scores trees against weighted trees, and computes kernel matrices, using an index.
//
//   score(x) = sum over nodes u of x of weight(u) s(u),    s(u) = sum_v f(v) Delta(v, u)
//            = sum_u weight(u) scale(u) [ F(group of u) + sum over v in u's lists of f(v) (ratio(v, u) - 1) ]
//
// with f(v) the model's weight of node v and F the sum of weights of a group (Severyn & Moschitti 2011,
// Theorem 1; each pair of distinct subtrees is evaluated once per tree, and only if some children match).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_index.hpp"
#include "unkernel/kernels/trees/tree_rows.hpp"

namespace unkernel::kernels {

// An index with weights for its nodes, for one or more scores.
class TreeWeights {
 public:
  // Uses the rows `chosen` of `counts`; row i has coefficients coefficients[i * scores ..]. `order` is
  // nodes_in_order.
  TreeWeights(const TreeKernel& kernel, const Forest& forest, std::span<const NodeId> order,
              const TreeCounts& counts, std::span<const std::int32_t> chosen,
              std::span<const double> coefficients, std::size_t scores);

  // An index without weights; see assign().
  explicit TreeWeights(TreeIndex index) : index_(std::move(index)), scores_(1) {}

  // Sets the weight of each node to weight_of(node), for one score.
  template <class WeightOf>
  void assign(const WeightOf& weight_of);

  const TreeIndex& index() const { return index_; }
  std::size_t scores() const { return scores_; }
  const double* of_node(std::size_t number) const { return node_weights_.data() + number * scores_; }
  const double* of_group(std::int32_t group) const {
    return group_weights_.data() + static_cast<std::size_t>(group) * scores_;
  }
  std::size_t memory() const {
    return index_.memory() + (node_weights_.capacity() + group_weights_.capacity()) * sizeof(double);
  }

 private:
  void add_up_groups();

  TreeIndex index_;
  std::size_t scores_;
  std::vector<double> node_weights_;
  std::vector<double> group_weights_;
};

template <class WeightOf>
void TreeWeights::assign(const WeightOf& weight_of) {
  node_weights_.resize(index_.size());
  for (std::size_t i = 0; i < node_weights_.size(); ++i) node_weights_[i] = weight_of(index_.node(i));
  add_up_groups();
}

// The distinct nodes of the chosen rows; `order` is nodes_in_order, and the result is in that order.
std::vector<NodeId> nodes_of(std::span<const NodeId> order, std::size_t forest_size, const TreeCounts& counts,
                             std::span<const std::int32_t> chosen);

// Scores trees of one forest. Use one object per thread.
class TreeScorer {
 public:
  TreeScorer(const TreeWeights& weights, const Forest& forest, std::span<const std::int32_t> groups)
      : weights_(weights), rows_(weights.index(), forest, groups) {}

  void use(const Forest& forest, std::span<const std::int32_t> groups) { rows_.use(forest, groups); }
  // Adds the scores of the row to `sums`.
  void add(const TreeRow& row, double* sums);

 private:
  const TreeWeights& weights_;
  TreeRows rows_;
};

// The index groups of all nodes of a forest.
std::vector<std::int32_t> index_groups(const TreeIndex& index, std::span<const std::int32_t> forest_groups);

// Adds the scores of the rows `chosen` of `counts` (all if empty) to `scores`, row-major.
void add_scores(const TreeWeights& weights, const Forest& forest, std::span<const std::int32_t> groups,
                const TreeCounts& counts, std::span<const std::int32_t> chosen, int threads,
                const Monitor& monitor, std::span<double> scores);

// Receives kernel values, one row at a time, from any thread.
class GramSink {
 public:
  virtual ~GramSink() = default;
  // The kernel of left row i with the right rows first .. first + values.size() - 1.
  virtual void take(std::size_t i, std::size_t first, std::span<const double> values) = 0;
};

// Computes the kernels of chosen left rows with chosen right rows. If `lower_only`, both lists must be the
// same, and values above the diagonal are unspecified.
struct GramTask {
  const Forest& left_forest;
  std::span<const std::int32_t>
      left_groups;  // for each node of the left forest: its group in the right forest
  const TreeCounts& left;
  std::span<const std::int32_t> left_chosen;
  const Forest& right_forest;
  std::span<const NodeId> right_order;  // nodes_in_order
  const TreeCounts& right;
  std::span<const std::int32_t> right_chosen;
  bool lower_only;
};
void compute_gram(const TreeKernel& kernel, const GramTask& task, int threads, const Monitor& monitor,
                  GramSink& sink);

}  // namespace unkernel::kernels
