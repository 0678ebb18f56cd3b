// Scores trees against weighted trees, and computes kernel matrices, using an index.
//
//   score(x) = sum over nodes u of x of weight(u) s(u),    s(u) = sum_v f(v) Delta(v, u)
//            = sum_u weight(u) scale(u) [ F(group of u) + sum over v in u's lists of f(v) (ratio(v, u) - 1) ]
//
// where f(v) is the model's weight of node v, and F the sum of the weights in a group (Severyn & Moschitti
// 2011, Theorem 1). Delta = scale ratio: the scale is the Delta of u with all nodes that are not in u's lists
// (tree_rows.hpp). Each pair of distinct subtrees is evaluated once per tree, and only if some children
// match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/production_scores.hpp"
#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_rows.hpp"
#include "unkernel/kernels/trees/tree_weights.hpp"

namespace unkernel::kernels {

// Scores trees of one forest. Each thread needs its own object.
class TreeScorer {
 public:
  TreeScorer(const TreeWeights& weights, const Forest& forest, std::span<const std::int32_t> groups);

  void use(const Forest& forest, std::span<const std::int32_t> groups);
  // Adds the scores of the row to `sums`.
  void add(const TreeRow& row, double* sums, const Monitor& monitor);

 private:
  const TreeWeights& weights_;
  std::variant<TreeRows, ProductionScorer> scorer_;
};

// Returns the index groups of all nodes of a forest.
std::vector<std::int32_t> index_groups(const TreeIndex& index, std::span<const std::int32_t> forest_groups);

// Adds the scores of the rows `chosen` of `counts` to `scores`, row-major. An empty `chosen` stands for all
// rows.
void add_scores(const TreeWeights& weights, const Forest& forest, std::span<const std::int32_t> groups,
                const TreeCounts& counts, std::span<const std::int32_t> chosen, int threads,
                const Monitor& monitor, std::span<double> scores);

// Receives kernel values, one row at a time, from any thread.
class GramSink {
 public:
  virtual ~GramSink() = default;
  // Receives the kernels of left row i with the right rows first .. first + values.size() - 1.
  virtual void take(std::size_t i, std::size_t first, std::span<const double> values) = 0;
};

// Selects the kernels of chosen left rows with chosen right rows. If `lower_only`, both lists must be the
// same, and values above the diagonal are unspecified.
struct GramTask {
  const Forest& left_forest;
  std::span<const std::int32_t> left_groups;  // by node of the left forest: its group in the right forest
  const TreeCounts& left;
  std::span<const std::int32_t> left_chosen;
  const Forest& right_forest;
  std::span<const NodeId> right_order;  // nodes_in_order
  const TreeCounts& right;
  std::span<const std::int32_t> right_chosen;
  bool lower_only;
};
// Computes the selected kernels, in blocks of columns, and passes them to the sink.
void compute_gram(const TreeKernel& kernel, const GramTask& task, int threads, const Monitor& monitor,
                  GramSink& sink);

}  // namespace unkernel::kernels
