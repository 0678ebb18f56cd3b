// The weights of a model's subtrees: one per node of an index and score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_index.hpp"

namespace unkernel::kernels {

// An index with weights for its nodes, for one or more scores.
class TreeWeights {
 public:
  // Sums the rows `chosen` of `counts`, times coefficients; those of the i-th row begin at coefficients[i *
  // scores]. `order` is nodes_in_order.
  TreeWeights(const TreeKernel& kernel, const Forest& forest, std::span<const NodeId> order,
              const TreeCounts& counts, std::span<const std::int32_t> chosen,
              std::span<const double> coefficients, std::size_t scores);

  // Takes an index without weights; see assign().
  explicit TreeWeights(TreeIndex index) : index_(std::move(index)), scores_(1) {}

  // Sets the weight of each node to weight_of(node), for one score.
  template <class WeightOf>
  void assign(const WeightOf& weight_of);

  const TreeIndex& index() const { return index_; }
  std::size_t scores() const { return scores_; }
  const double* node_weights(std::size_t number) const { return node_weights_.data() + number * scores_; }
  const double* group_weights(std::int32_t group) const {
    return group_weights_.data() + static_cast<std::size_t>(group) * scores_;
  }
  // Returns the sums of weights over a run of the index, one per score; see TreeIndex::runs.
  const double* run_weights(std::size_t run) const { return run_weights_.data() + run * scores_; }
  // Computes the tables that parent_weights() returns. This pays only if many trees are scored.
  void add_up_parents();
  // Weights of a range of nodes with one child each: by the position of the child, and their sums over each
  // run of the children's group, the first run first. Null if the range is small, or has less than half of
  // the possible children. Only valid if has_parents().
  struct ParentWeights {
    const double* by_child = nullptr;
    const double* by_child_run = nullptr;
  };
  bool has_parents() const { return !parent_weights_.empty(); }
  ParentWeights parent_weights(std::int32_t child_group, const TreeIndex::List& range) const {
    const std::int64_t begin = parents_begin_[static_cast<std::size_t>(range.complement_begin)];
    if (begin < 0) return {};
    const double* by_child = parent_weights_.data() + begin;
    return {by_child, by_child + index_.block_size(child_group) * scores_};
  }
  std::size_t memory() const {
    return index_.memory() + (node_weights_.capacity() + group_weights_.capacity() + run_weights_.capacity() +
                              parents_begin_.capacity() + parent_weights_.capacity()) *
                                 sizeof(double);
  }

 private:
  void add_up();
  void add_up_runs();
  void add_up_parents(std::int32_t child_group, std::size_t first_run, std::size_t last_run);

  TreeIndex index_;
  std::size_t scores_;
  std::vector<double> node_weights_;
  std::vector<double> group_weights_;
  std::vector<double> run_weights_;
  std::vector<std::int64_t> parents_begin_;  // by first run of a range; -1 if it has no sums
  std::vector<double> parent_weights_;
};

template <class WeightOf>
void TreeWeights::assign(const WeightOf& weight_of) {
  node_weights_.resize(index_.size());
  for (std::size_t i = 0; i < node_weights_.size(); ++i) node_weights_[i] = weight_of(index_.node(i));
  add_up();
}

// Returns the distinct nodes of the chosen rows, in the order of `order`, which is nodes_in_order.
std::vector<NodeId> nodes_of(std::span<const NodeId> order, std::size_t forest_size, const TreeCounts& counts,
                             std::span<const std::int32_t> chosen);

// Returns, for each node of the forest, its number in the index, or -1.
std::vector<std::int32_t> find_index_numbers(const TreeIndex& index, const Forest& forest);

}  // namespace unkernel::kernels
