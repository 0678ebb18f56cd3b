#include "unkernel/kernels/trees/tree_weights.hpp"

#include <algorithm>

#include "unkernel/base/at.hpp"

namespace unkernel::kernels {

std::vector<std::int32_t> find_index_numbers(const TreeIndex& index, const Forest& forest) {
  std::vector<std::int32_t> numbers(forest.size(), -1);
  for (std::size_t i = 0; i < index.size(); ++i) numbers[at(index.node(i))] = static_cast<std::int32_t>(i);
  return numbers;
}

std::vector<NodeId> nodes_of(std::span<const NodeId> order, std::size_t forest_size, const TreeCounts& counts,
                             std::span<const std::int32_t> chosen) {
  std::vector<bool> is_chosen(forest_size, false);
  std::size_t count = 0;
  for (const std::int32_t i : chosen) {
    for (const NodeId node : counts.row(at(i)).nodes) {
      count += !is_chosen[at(node)];
      is_chosen[at(node)] = true;
    }
  }
  std::vector<NodeId> nodes;
  nodes.reserve(count);
  for (const NodeId node : order) {
    if (is_chosen[at(node)]) nodes.push_back(node);
  }
  return nodes;
}

TreeWeights::TreeWeights(const TreeKernel& kernel, const Forest& forest, std::span<const NodeId> order,
                         const TreeCounts& counts, std::span<const std::int32_t> chosen,
                         std::span<const double> coefficients, std::size_t scores)
    : index_(kernel, forest, nodes_of(order, forest.size(), counts, chosen)),
      scores_(scores),
      node_weights_(index_.size() * scores, 0.0) {
  const std::vector<std::int32_t> numbers = find_index_numbers(index_, forest);
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
    double* group_weights = group_weights_.data() + at(index_.group_of_number(i)) * scores_;
    for (std::size_t s = 0; s < scores_; ++s) group_weights[s] += node_weights_[i * scores_ + s];
  }
  add_up_runs();
}

void TreeWeights::add_up_runs() {
  const std::span<const TreeIndex::Run> runs = index_.all_runs();
  run_weights_.assign(runs.size() * scores_, 0.0);
  for (std::size_t k = 0; k < runs.size(); ++k) {
    if (runs[k].child < 0) continue;
    double* run_weights = run_weights_.data() + k * scores_;
    for (std::size_t i = at(runs[k].begin); i < at(runs[k + 1].begin); ++i) {
      for (std::size_t s = 0; s < scores_; ++s) run_weights[s] += node_weights_[i * scores_ + s];
    }
  }
}

void TreeWeights::add_up_parents() {
  if (!index_.kernel().by_production()) return;
  constexpr std::int32_t min_nodes = 16;
  const std::span<const TreeIndex::Run> runs = index_.all_runs();
  parents_begin_.assign(runs.size(), -1);
  parent_weights_.clear();
  for (std::int32_t group = 0; group < static_cast<std::int32_t>(index_.group_count()); ++group) {
    if (index_.arity(group) != 1) continue;
    std::size_t first = index_.first_run(group);
    for (std::size_t k = first; k < index_.first_run(group + 1); ++k) {
      if (runs[k].child >= 0) continue;
      const std::int32_t child_group = -1 - runs[k].child;
      const std::int32_t size = runs[k].begin - runs[first].begin;
      if (size >= min_nodes && 2 * at(size) >= index_.block_size(child_group) &&
          index_.arity(child_group) > 1)
        add_up_parents(child_group, first, k);
      first = k + 1;
    }
  }
}

void TreeWeights::add_up_parents(std::int32_t child_group, std::size_t first_run, std::size_t last_run) {
  const std::span<const TreeIndex::Run> runs = index_.all_runs();
  const std::size_t nodes = index_.block_size(child_group), block = index_.block_begin(child_group);
  const std::size_t below = index_.first_run(child_group), end = index_.first_run(child_group + 1);
  parents_begin_[first_run] = static_cast<std::int64_t>(parent_weights_.size());
  parent_weights_.resize(parent_weights_.size() + (nodes + end - below) * scores_, 0.0);
  double* parent_weights = parent_weights_.data() + parents_begin_[first_run];
  for (std::size_t k = first_run; k < last_run; ++k) {
    const std::size_t size = at(runs[k + 1].begin - runs[k].begin) * scores_;
    std::copy_n(node_weights_.data() + at(runs[k].begin) * scores_, size,
                parent_weights + at(runs[k].child) * scores_);
  }
  double* run_weights = parent_weights + nodes * scores_;
  for (std::size_t k = below; k < end; ++k, run_weights += scores_) {
    if (runs[k].child < 0) continue;
    for (std::size_t i = at(runs[k].begin) - block; i < at(runs[k + 1].begin) - block; ++i) {
      for (std::size_t s = 0; s < scores_; ++s) run_weights[s] += parent_weights[i * scores_ + s];
    }
  }
}

}  // namespace unkernel::kernels
