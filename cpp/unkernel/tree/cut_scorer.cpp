#include "unkernel/tree/cut_scorer.hpp"

#include <algorithm>
#include <utility>

#include "unkernel/base/at.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel::tree {
namespace {

using kernels::TreeCounts;
using kernels::TreeIndex;
using kernels::TreeRow;

// Adds the contribution of one tree to s(v) for each node v.
struct NodeSums {
  struct Node {
    void excess(std::int32_t, std::int32_t position, double value) { block[position] += weight * value; }
    double* block;
    double weight;
  };

  Node begin(std::size_t i, std::int32_t group, double scale) {
    const double weight = coefficient * tree_weights[i] * scale;
    groups[at(group)] += weight;
    return {nodes + index.block_begin(group), weight};
  }
  void end(const Node&) {}

  const TreeIndex& index;
  double* nodes;
  double* groups;
  double coefficient;
  std::span<const double> tree_weights;
};

}  // namespace

CutScorer::CutScorer(const kernels::ExampleKernel& kernel, std::shared_ptr<const kernels::ExampleSet> set)
    : set_(std::move(set)),
      cuts_(kernel.tree, set_->trees.size()),
      known_(kernel.tree, *set_->forest, cuts_.forest()),
      groups_(set_->forest->size(), -1),
      places_(set_->forest->size(), -1) {}

WeightedTrees CutScorer::weighted_trees(std::span<const std::int32_t> examples,
                                        std::span<const double> coefficients) {
  const Forest& forest = *set_->forest;
  std::vector<NodeId> nodes;
  const auto list_node = [&](NodeId node) {
    if (std::exchange(places_[at(node)], 0) < 0) nodes.push_back(node);
  };
  for (const TreeCounts& counts : set_->trees) {
    for (const std::int32_t example : examples) {
      for (const NodeId node : counts.row(at(example)).nodes) {
        list_node(node);
        // Leaves that the kernel ignores are children, but not in rows.
        std::ranges::for_each(forest.children(node), list_node);
      }
    }
  }
  std::ranges::sort(nodes);
  const auto copy = std::make_shared<Forest>();
  std::vector<NodeId> children;
  for (const NodeId node : nodes) {
    children.clear();
    for (const NodeId child : forest.children(node)) children.push_back(places_[at(child)]);
    places_[at(node)] = copy->add_node(copy->add_label(forest.label_name(node)), children);
  }
  WeightedTrees result{copy, {}};
  for (const TreeCounts& counts : set_->trees) {
    std::vector<double>& weights = result.weights.emplace_back(nodes.size(), 0.0);
    for (std::size_t k = 0; k < examples.size(); ++k) {
      const TreeRow row = counts.row(at(examples[k]));
      for (std::size_t i = 0; i < row.nodes.size(); ++i)
        weights[at(places_[at(row.nodes[i])])] += coefficients[k] * row.weights[i];
    }
  }
  for (const NodeId node : nodes) places_[at(node)] = -1;
  return result;
}

void CutScorer::score(std::span<const double> alphas, std::span<const std::int32_t> examples, int threads,
                      const Monitor& monitor, std::span<double> scores) {
  std::ranges::fill(scores, 0.0);
  if (examples.empty()) return;
  known_.update();
  cuts_.set_weights(alphas);
  for (std::size_t channel = 0; channel < cuts_.channels(); ++channel) {
    const TreeCounts& counts = set_->trees[channel];
    for (const kernels::TreeWeights& layer : cuts_.layers(channel)) {
      set_groups(layer.index(), counts, examples);
      kernels::add_scores(layer, *set_->forest, groups_, counts, examples, threads, monitor, scores);
    }
    reset_groups(counts, examples);
  }
}

std::vector<double> CutScorer::products(std::span<const std::int32_t> examples,
                                        std::span<const double> coefficients, int threads,
                                        const Monitor& monitor) {
  known_.update();
  std::vector<double> products(cuts_.size(), 0.0);
  sums_.resize(cuts_.forest().size());  // the entries of all nodes of a channel are set before they are read
  for (std::size_t channel = 0; channel < cuts_.channels(); ++channel) {
    const WeightedRows rows{set_->trees[channel], examples, coefficients};
    const std::span<const kernels::TreeWeights> layers = cuts_.layers(channel);
    for (std::size_t k = 0; k < layers.size(); ++k) {
      const TreeIndex& index = layers[k].index();
      set_groups(index, rows.counts, examples);
      const std::span<const double> values = sum_by_node(index, rows, threads, monitor);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (cuts_.belongs_to(k, channel, index.node(i))) sums_[at(index.node(i))] = values[i];
      }
    }
    reset_groups(rows.counts, examples);
    const std::vector<double> products_of_cuts = cuts_.along_cuts(channel, sums_, threads);
    for (std::size_t t = 0; t < products_of_cuts.size(); ++t) products[t] += products_of_cuts[t];
  }
  return products;
}

// Computes s(v) = sum over the rows' nodes u of f(u) Delta(u, v), for all nodes v of the index; its product
// with the node weights of a cut is the inner product of the rows and the cut.
std::span<const double> CutScorer::sum_by_node(const TreeIndex& index, const WeightedRows& rows, int threads,
                                               const Monitor& monitor) {
  const auto make = [&] { return std::make_unique<kernels::TreeRows>(index, *set_->forest, groups_); };
  parallel_workers(threads, summing_tasks, make, [&](kernels::TreeRows& visitor, std::int64_t task) {
    auto& [nodes, group_sums] = task_sums_[static_cast<std::size_t>(task)];
    nodes.assign(index.size(), 0.0);
    group_sums.assign(index.group_count(), 0.0);
    NodeSums node_sums{index, nodes.data(), group_sums.data(), 0.0, {}};
    for (auto k = static_cast<std::size_t>(task); k < rows.examples.size(); k += summing_tasks) {
      monitor.throw_if_stopped();
      const TreeRow row = rows.counts.row(at(rows.examples[k]));
      node_sums.coefficient = rows.coefficients[k];
      node_sums.tree_weights = row.weights;
      visitor.visit(row.nodes, node_sums, monitor);
    }
  });
  auto& [result, total_group_sums] = task_sums_.front();
  for (std::size_t task = 1; task < task_sums_.size(); ++task) {
    const auto& [nodes, group_sums] = task_sums_[task];
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += nodes[i];
    for (std::size_t g = 0; g < total_group_sums.size(); ++g) total_group_sums[g] += group_sums[g];
  }
  for (std::size_t i = 0; i < result.size(); ++i) result[i] += total_group_sums[at(index.group_of_number(i))];
  return result;
}

void CutScorer::set_groups(const TreeIndex& index, const TreeCounts& counts,
                           std::span<const std::int32_t> examples) {
  for (const std::int32_t example : examples) {
    for (const NodeId node : counts.row(at(example)).nodes)
      groups_[at(node)] = index.group(known_.group(node));
  }
}

void CutScorer::reset_groups(const TreeCounts& counts, std::span<const std::int32_t> examples) {
  for (const std::int32_t example : examples) {
    for (const NodeId node : counts.row(at(example)).nodes) groups_[at(node)] = -1;
  }
}

}  // namespace unkernel::tree
