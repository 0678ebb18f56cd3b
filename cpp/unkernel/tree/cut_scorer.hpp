// Scores and inner products between examples and the cuts of a sampled cutting-plane method.
//
// The examples may be a part of the training set. Each part then adds all cuts, but scores and multiplies
// only the examples of the part. Up to rounding, the results of all parts add up to the result for all
// examples.
//
// Cost   of a call: proportional to its examples and to the subtrees of the cuts
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/growing_groups.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"
#include "unkernel/tree/cut_forest.hpp"

namespace unkernel::tree {

class CutScorer {
 public:
  // For kernels of trees alone.
  CutScorer(const kernels::ExampleKernel& kernel, std::shared_ptr<const kernels::ExampleSet> set);

  CutScorer(const CutScorer&) = delete;
  CutScorer& operator=(const CutScorer&) = delete;

  const kernels::ExampleSet& set() const { return *set_; }
  const CutForest& cuts() const { return cuts_; }

  // Returns the sum of coefficients[k] phi(x_k) over some examples of the set.
  WeightedTrees weighted_trees(std::span<const std::int32_t> examples, std::span<const double> coefficients);

  // Adds a cut that consists of these pieces.
  void add(std::span<const WeightedTrees> pieces) { cuts_.add(pieces); }

  // Computes w'phi(x) for w = sum_t alphas[t] g_t and some examples x of the set.
  void score(std::span<const double> alphas, std::span<const std::int32_t> examples, int threads,
             const Monitor& monitor, std::span<double> scores);

  // Returns the inner products of the sum of coefficients[k] phi(x_k) with all cuts. The cuts must contain
  // all subtrees of the examples x_k.
  std::vector<double> products(std::span<const std::int32_t> examples, std::span<const double> coefficients,
                               int threads, const Monitor& monitor);

 private:
  static constexpr std::int64_t summing_tasks = 4;  // fixed: sums must not depend on `threads`

  // Some rows with coefficients.
  struct WeightedRows {
    const kernels::TreeCounts& counts;
    std::span<const std::int32_t> examples;
    std::span<const double> coefficients;
  };
  struct TaskSums {
    std::vector<double> nodes;
    std::vector<double> groups;
  };

  std::span<const double> sum_by_node(const kernels::TreeIndex& index, const WeightedRows& rows, int threads,
                                      const Monitor& monitor);
  void set_groups(const kernels::TreeIndex& index, const kernels::TreeCounts& counts,
                  std::span<const std::int32_t> examples);
  void reset_groups(const kernels::TreeCounts& counts, std::span<const std::int32_t> examples);

  std::shared_ptr<const kernels::ExampleSet> set_;
  CutForest cuts_;
  kernels::GrowingGroups known_;
  // For each node of the set's forest; -1 between calls.
  std::vector<std::int32_t> groups_;  // its group in an index
  std::vector<NodeId> places_;        // its number in a copy of some trees
  // Buffers that are kept between calls, because allocating them for each call can take as long as using
  // them.
  std::array<TaskSums, summing_tasks> task_sums_;
  std::vector<double> sums_;
};

}  // namespace unkernel::tree
