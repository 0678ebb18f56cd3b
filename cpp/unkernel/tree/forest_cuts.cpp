#include "unkernel/tree/forest_cuts.hpp"

#include <algorithm>
#include <utility>

#include "unkernel/base/at.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel::tree {
namespace {

using kernels::ExampleKernel;
using kernels::ExampleSet;
using kernels::NodeId;
using kernels::TreeRow;

constexpr std::int64_t spreading_tasks = 4;  // fixed, so that sums do not depend on the number of threads

// The nodes of all cuts, for one channel of trees, in two layers, each with an index: the first for most
// cuts, the second for those added since. The first is rebuilt only when the second has grown to a quarter of
// it, so that the cost of a new cut depends on what is new in it. Both contain all descendants of their
// nodes; a node in both layers has its weight in the first.
class CutForest {
 public:
  CutForest(const ExampleKernel& kernel, const ExampleSet& set, const kernels::TreeCounts& counts,
            std::span<const std::int32_t> forest_groups)
      : kernel_(kernel.tree),
        set_(set),
        counts_(counts),
        forest_groups_(forest_groups),
        owner_(set.forest->size(), -1),
        sums_(set.forest->size(), 0.0) {}

  void add(std::span<const std::int32_t> examples) {
    recent_.insert(recent_.end(), examples.begin(), examples.end());
    if (layers_.empty() || 4 * recent_.size() > settled_.size()) {
      settled_.insert(settled_.end(), recent_.begin(), recent_.end());
      recent_.clear();
      layers_.clear();
      std::ranges::fill(owner_, -1);
      add_layer(settled_);
    } else {
      layers_.erase(layers_.begin() + 1, layers_.end());
      std::ranges::replace(owner_, 1, -1);
      add_layer(recent_);
    }
  }

  // Adds the scores of examples for these weights of the forest's nodes.
  void add_scores(std::span<const double> weight_of, std::span<const std::int32_t> examples, int threads,
                  const Monitor& monitor, std::span<double> scores) {
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      Layer& layer = layers_[k];
      layer.weights.assign([&](NodeId node) {
        return owner_[at(node)] == static_cast<std::int32_t>(k) ? weight_of[at(node)] : 0.0;
      });
      kernels::add_scores(layer.weights, *set_.forest, layer.groups, counts_, examples, threads, monitor,
                          scores);
    }
  }

  // s(v) = sum over the cut's nodes u of f(u) Delta(u, v), for all nodes v of all cuts; its product with the
  // node weights of another cut is their inner product.
  void spread(const Cut& cut, int threads, const Monitor& monitor) {
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      const std::vector<double> found = spread_over(layers_[k], cut, threads, monitor);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const std::size_t node = at(layers_[k].weights.index().node(i));
        if (owner_[node] == static_cast<std::int32_t>(k)) sums_[node] = found[i];
      }
    }
  }

  double along(const Cut& cut) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < cut.examples.size(); ++k) {
      const TreeRow row = counts_.row(at(cut.examples[k]));
      double score = 0.0;
      for (std::size_t i = 0; i < row.nodes.size(); ++i) score += row.weights[i] * sums_[at(row.nodes[i])];
      sum += cut.coefficients[k] * score;
    }
    return sum;
  }

  void add_node_weights(const WeightedExamples& weighted, std::vector<double>& weight_of) const {
    for (std::size_t k = 0; k < weighted.examples.size(); ++k) {
      const TreeRow row = counts_.row(at(weighted.examples[k]));
      for (std::size_t i = 0; i < row.nodes.size(); ++i)
        weight_of[at(row.nodes[i])] += weighted.coefficients[k] * row.weights[i];
    }
  }

 private:
  struct Layer {
    kernels::TreeWeights weights;
    std::vector<std::int32_t> groups;
  };

  void add_layer(std::span<const std::int32_t> examples) {
    const std::vector<NodeId> nodes = kernels::nodes_of(set_.order, set_.forest->size(), counts_, examples);
    Layer layer{kernels::TreeWeights(kernels::TreeIndex(kernel_, *set_.forest, nodes)), {}};
    layer.groups = kernels::index_groups(layer.weights.index(), forest_groups_);
    for (const NodeId node : nodes) {
      if (owner_[at(node)] < 0) owner_[at(node)] = static_cast<std::int32_t>(layers_.size());
    }
    layers_.push_back(std::move(layer));
  }

  // Adds the contribution of one tree to s(v) for each node v.
  struct Spread {
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

    const kernels::TreeIndex& index;
    double* nodes;
    double* groups;
    double coefficient;
    std::span<const double> tree_weights;
  };

  std::vector<double> spread_over(const Layer& layer, const Cut& cut, int threads,
                                  const Monitor& monitor) const {
    const kernels::TreeIndex& index = layer.weights.index();
    std::vector<std::vector<double>> by_node(spreading_tasks);
    std::vector<std::vector<double>> by_group(spreading_tasks);
    parallel_for(threads, spreading_tasks, [&](std::int64_t task) {
      auto& nodes = by_node[static_cast<std::size_t>(task)];
      auto& group_sums = by_group[static_cast<std::size_t>(task)];
      nodes.assign(index.size(), 0.0);
      group_sums.assign(index.group_count(), 0.0);
      kernels::TreeRows rows(index, *set_.forest, layer.groups);
      Spread spread{index, nodes.data(), group_sums.data(), 0.0, {}};
      for (auto k = static_cast<std::size_t>(task); k < cut.examples.size(); k += spreading_tasks) {
        monitor.throw_if_stopped();
        const TreeRow row = counts_.row(at(cut.examples[k]));
        spread.coefficient = cut.coefficients[k];
        spread.tree_weights = row.weights;
        rows.visit(row.nodes, spread);
      }
    });
    std::vector<double>& result = by_node.front();
    for (std::size_t task = 1; task < by_node.size(); ++task) {
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += by_node[task][i];
      for (std::size_t g = 0; g < by_group[task].size(); ++g) by_group[0][g] += by_group[task][g];
    }
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += by_group[0][at(index.group_of_number(i))];
    return std::move(result);
  }

  kernels::TreeKernel kernel_;
  const ExampleSet& set_;
  const kernels::TreeCounts& counts_;
  std::span<const std::int32_t> forest_groups_;
  std::vector<std::int32_t> settled_;  // examples of the first layer
  std::vector<std::int32_t> recent_;   // examples of the second layer
  std::vector<Layer> layers_;
  std::vector<std::int32_t> owner_;  // for each node of the forest: the first layer that contains it
  std::vector<double> sums_;         // by node of the forest; valid for nodes of the cuts
};

class ForestCuts final : public Cuts {
 public:
  ForestCuts(const ExampleKernel& kernel, std::shared_ptr<const ExampleSet> set, int threads,
             const Monitor& monitor)
      : Cuts(kernel, std::move(set), threads, monitor),
        forest_groups_(kernels::groups_in(kernel.tree, *set_->forest, *set_->forest)) {
    for (const kernels::TreeCounts& counts : set_->trees)
      channels_.emplace_back(kernel, *set_, counts, forest_groups_);
  }

  void score(std::span<const double> alphas, std::span<const std::int32_t> examples,
             std::span<double> scores) override {
    std::ranges::fill(scores, 0.0);
    const WeightedExamples all = weighted_examples(alphas);
    for (CutForest& channel : channels_) {
      weight_of_.assign(set_->forest->size(), 0.0);
      channel.add_node_weights(all, weight_of_);
      channel.add_scores(weight_of_, examples, threads_, monitor_, scores);
    }
  }

 private:
  std::vector<double> products_of_newest() override {
    std::vector<double> products(cuts_.size(), 0.0);
    for (CutForest& channel : channels_) {
      channel.add(cuts_.back().examples);
      channel.spread(cuts_.back(), threads_, monitor_);
      parallel_for(threads_, static_cast<std::int64_t>(cuts_.size()), [&](std::int64_t t) {
        const auto number = static_cast<std::size_t>(t);
        products[number] += channel.along(cuts_[number]);
      });
    }
    return products;
  }

  std::vector<std::int32_t> forest_groups_;
  std::vector<CutForest> channels_;
  std::vector<double> weight_of_;  // by node of the forest
};

}  // namespace

std::unique_ptr<Cuts> make_forest_cuts(const ExampleKernel& kernel, std::shared_ptr<const ExampleSet> set,
                                       int threads, const Monitor& monitor) {
  return std::make_unique<ForestCuts>(kernel, std::move(set), threads, monitor);
}

}  // namespace unkernel::tree
