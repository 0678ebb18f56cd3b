#include "unkernel/kernels/trees/tree_weights.hpp"

#include "unkernel/base/at.hpp"

namespace unkernel::kernels {

std::vector<std::int32_t> numbers_of(const TreeIndex& index, const Forest& forest) {
  std::vector<std::int32_t> numbers(forest.size(), -1);
  for (std::size_t i = 0; i < index.size(); ++i) numbers[at(index.node(i))] = static_cast<std::int32_t>(i);
  return numbers;
}

std::vector<NodeId> nodes_of(std::span<const NodeId> order, std::size_t forest_size, const TreeCounts& counts,
                             std::span<const std::int32_t> chosen) {
  std::vector<bool> has(forest_size, false);
  std::size_t count = 0;
  for (const std::int32_t i : chosen) {
    for (const NodeId node : counts.row(at(i)).nodes) {
      count += !has[at(node)];
      has[at(node)] = true;
    }
  }
  std::vector<NodeId> nodes;
  nodes.reserve(count);
  for (const NodeId node : order) {
    if (has[at(node)]) nodes.push_back(node);
  }
  return nodes;
}

TreeWeights::TreeWeights(const TreeKernel& kernel, const Forest& forest, std::span<const NodeId> order,
                         const TreeCounts& counts, std::span<const std::int32_t> chosen,
                         std::span<const double> coefficients, std::size_t scores)
    : index_(kernel, forest, nodes_of(order, forest.size(), counts, chosen)),
      scores_(scores),
      node_weights_(index_.size() * scores, 0.0) {
  const std::vector<std::int32_t> numbers = numbers_of(index_, forest);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const TreeRow row = counts.row(at(chosen[i]));
    for (std::size_t k = 0; k < row.nodes.size(); ++k) {
      double* weights = node_weights_.data() + at(numbers[at(row.nodes[k])]) * scores;
      for (std::size_t s = 0; s < scores; ++s) weights[s] += row.weights[k] * coefficients[i * scores + s];
    }
  }
  add_up();
}

void TreeWeights::add_up() {
  group_weights_.assign(index_.group_count() * scores_, 0.0);
  for (std::size_t i = 0; i < index_.size(); ++i) {
    double* of_group = group_weights_.data() + at(index_.group_of_number(i)) * scores_;
    for (std::size_t s = 0; s < scores_; ++s) of_group[s] += node_weights_[i * scores_ + s];
  }
  add_up_runs();
}

void TreeWeights::add_up_runs() {
  const std::span<const TreeIndex::Run> runs = index_.all_runs();
  run_weights_.assign(runs.size() * scores_, 0.0);
  for (std::size_t k = 0; k < runs.size(); ++k) {
    if (runs[k].child < 0) continue;
    double* of_run = run_weights_.data() + k * scores_;
    for (std::size_t i = at(runs[k].begin); i < at(runs[k + 1].begin); ++i) {
      for (std::size_t s = 0; s < scores_; ++s) of_run[s] += node_weights_[i * scores_ + s];
    }
  }
}

}  // namespace unkernel::kernels
