#include "unkernel/tree/cuts.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "unkernel/base/at.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/kernels/trees/tree_pairs.hpp"

namespace unkernel::tree {
namespace {

using kernels::ExampleKernel;
using kernels::ExampleMachine;
using kernels::ExampleSet;
using kernels::NodeId;
using kernels::TreeRow;

constexpr std::int64_t spreading_parts = 4;  // fixed, so that sums do not depend on the number of threads
constexpr std::int64_t examples_at_once = 16;

// Examples with the coefficients they have in all cuts together, ascending.
struct Combined {
  std::vector<std::int32_t> examples;
  std::vector<double> coefficients;
};

Combined combine(const std::vector<Cut>& cuts, std::span<const double> alphas, std::size_t set_size) {
  std::vector<double> sums(set_size, 0.0);
  std::vector<bool> has(set_size, false);
  for (std::size_t t = 0; t < cuts.size(); ++t) {
    if (alphas[t] == 0.0) continue;
    for (std::size_t k = 0; k < cuts[t].examples.size(); ++k) {
      sums[at(cuts[t].examples[k])] += alphas[t] * cuts[t].coefficients[k];
      has[at(cuts[t].examples[k])] = true;
    }
  }
  Combined combined;
  for (std::size_t i = 0; i < set_size; ++i) {
    if (!has[i]) continue;
    combined.examples.push_back(static_cast<std::int32_t>(i));
    combined.coefficients.push_back(sums[i]);
  }
  return combined;
}

// The nodes of all cuts, of one channel of trees, in two indices: one of most cuts, and one of those that
// came since. The first is made anew only when the second has grown to a part of it, so that a new cut costs
// what is new in it. Both are closed; a node that is in both has its weight in the first.
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

  // Adds the scores of examples for these weights of nodes of the forest.
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

  void add_node_weights(const Combined& examples, std::vector<double>& weight_of) const {
    for (std::size_t k = 0; k < examples.examples.size(); ++k) {
      const TreeRow row = counts_.row(at(examples.examples[k]));
      for (std::size_t i = 0; i < row.nodes.size(); ++i)
        weight_of[at(row.nodes[i])] += examples.coefficients[k] * row.weights[i];
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

  // Adds a tree's part of s(v) to each node v.
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
    std::vector<std::vector<double>> by_node(spreading_parts);
    std::vector<std::vector<double>> by_group(spreading_parts);
    parallel_for(threads, spreading_parts, [&](std::int64_t part) {
      auto& nodes = by_node[static_cast<std::size_t>(part)];
      auto& group_sums = by_group[static_cast<std::size_t>(part)];
      nodes.assign(index.size(), 0.0);
      group_sums.assign(index.group_count(), 0.0);
      kernels::TreeRows rows(index, *set_.forest, layer.groups);
      Spread spread{index, nodes.data(), group_sums.data(), 0.0, {}};
      for (auto k = static_cast<std::size_t>(part); k < cut.examples.size(); k += spreading_parts) {
        monitor.throw_if_stopped();
        const TreeRow row = counts_.row(at(cut.examples[k]));
        spread.coefficient = cut.coefficients[k];
        spread.tree_weights = row.weights;
        rows.visit(row.nodes, spread);
      }
    });
    std::vector<double>& result = by_node.front();
    for (std::size_t part = 1; part < by_node.size(); ++part) {
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += by_node[part][i];
      for (std::size_t g = 0; g < by_group[part].size(); ++g) by_group[0][g] += by_group[part][g];
    }
    for (std::size_t i = 0; i < result.size(); ++i) result[i] += by_group[0][at(index.group_of_number(i))];
    return std::move(result);
  }

  kernels::TreeKernel kernel_;
  const ExampleSet& set_;
  const kernels::TreeCounts& counts_;
  std::span<const std::int32_t> forest_groups_;
  std::vector<std::int32_t> settled_;  // examples of the first layer
  std::vector<std::int32_t> recent_;   // and of the second
  std::vector<Layer> layers_;
  std::vector<std::int32_t> owner_;  // of a node of the forest: the first layer that has it
  std::vector<double> sums_;         // by node of the forest; right for those of the cuts
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
    const Combined all = combine(cuts_, alphas, set_->size);
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

// An index for each cut; for scores, one of all cuts if `together`.
class DagCuts final : public Cuts {
 public:
  DagCuts(const ExampleKernel& kernel, std::shared_ptr<const ExampleSet> set, int threads,
          const Monitor& monitor, bool together)
      : Cuts(kernel, std::move(set), threads, monitor), together_(together) {}

  void score(std::span<const double> alphas, std::span<const std::int32_t> examples,
             std::span<double> scores) override {
    std::ranges::fill(scores, 0.0);
    if (together_) {
      machine_of(alphas).add_scores(*set_, examples, threads_, monitor_, scores);
      return;
    }
    std::vector<double> of_cut(scores.size());
    for (std::size_t t = 0; t < dags_.size(); ++t) {
      if (alphas[t] == 0.0) continue;
      std::ranges::fill(of_cut, 0.0);
      dags_[t].add_scores(*set_, examples, threads_, monitor_, of_cut);
      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += alphas[t] * of_cut[i];
    }
  }

 private:
  std::vector<double> products_of_newest() override {
    const Cut& cut = cuts_.back();
    dags_.emplace_back(kernel_, set_, cut.examples, cut.coefficients, 1);
    std::vector<double> products;
    std::vector<double> scores(cut.examples.size());
    for (const ExampleMachine& dag : dags_) {
      std::ranges::fill(scores, 0.0);
      if (!scores.empty()) dag.add_scores(*set_, cut.examples, threads_, monitor_, scores);
      products.push_back(along_newest(scores));
    }
    return products;
  }

  bool together_;
  std::vector<ExampleMachine> dags_;
};

// Kernel values: one after another (uSVM), or by the row.
class KernelCuts final : public Cuts {
 public:
  KernelCuts(const ExampleKernel& kernel, std::shared_ptr<const ExampleSet> set, int threads,
             const Monitor& monitor, bool by_row)
      : Cuts(kernel, std::move(set), threads, monitor), by_row_(by_row) {}

  void score(std::span<const double> alphas, std::span<const std::int32_t> examples,
             std::span<double> scores) override {
    const Combined all = combine(cuts_, alphas, set_->size);
    score_with(all.examples, all.coefficients, examples, scores);
  }

 private:
  void score_with(std::span<const std::int32_t> support, std::span<const double> coefficients,
                  std::span<const std::int32_t> examples, std::span<double> scores) const {
    std::ranges::fill(scores, 0.0);
    if (by_row_) {
      Sum sink(coefficients, scores);
      kernels::compute_kernels(kernel_, {*set_, examples, *set_, support, false}, threads_, monitor_, sink);
      return;
    }
    const std::int64_t tasks =
        (static_cast<std::int64_t>(examples.size()) + examples_at_once - 1) / examples_at_once;
    std::vector<std::unique_ptr<kernels::TreePairs>> pairs(static_cast<std::size_t>(std::max(threads_, 1)));
    parallel_slots(threads_, tasks, [&](std::size_t slot, std::int64_t task) {
      monitor_.throw_if_stopped();
      if (pairs[slot] == nullptr)
        pairs[slot] = std::make_unique<kernels::TreePairs>(kernel_.tree, *set_->forest);
      const auto begin = static_cast<std::size_t>(task * examples_at_once);
      for (std::size_t i = begin; i < std::min(examples.size(), begin + examples_at_once); ++i) {
        for (std::size_t k = 0; k < support.size(); ++k) {
          for (const kernels::TreeCounts& counts : set_->trees) {
            scores[i] +=
                coefficients[k] * (*pairs[slot])(counts.row(at(examples[i])), counts.row(at(support[k])));
          }
        }
      }
    });
  }

  class Sum final : public kernels::GramSink {
   public:
    Sum(std::span<const double> coefficients, std::span<double> scores)
        : coefficients_(coefficients), scores_(scores) {}
    void take(std::size_t i, std::size_t first, std::span<const double> values) override {
      for (std::size_t j = 0; j < values.size(); ++j) scores_[i] += coefficients_[first + j] * values[j];
    }

   private:
    std::span<const double> coefficients_;
    std::span<double> scores_;
  };

  std::vector<double> products_of_newest() override {
    const std::vector<std::int32_t> newest = cuts_.back().examples;
    std::vector<double> products;
    std::vector<double> scores(newest.size());
    for (const Cut& cut : cuts_) {
      score_with(cut.examples, cut.coefficients, newest, scores);
      products.push_back(along_newest(scores));
    }
    return products;
  }

  bool by_row_;
};

}  // namespace

std::vector<double> Cuts::add(Cut cut) {
  cuts_.push_back(std::move(cut));
  return products_of_newest();
}

double Cuts::along_newest(std::span<const double> scores) const {
  double sum = 0.0;
  for (std::size_t k = 0; k < scores.size(); ++k) sum += cuts_.back().coefficients[k] * scores[k];
  return sum;
}

ExampleMachine Cuts::machine_of(std::span<const double> alphas) const {
  Combined all = combine(cuts_, alphas, set_->size);
  return ExampleMachine(kernel_, set_, std::move(all.examples), std::move(all.coefficients), 1);
}

std::unique_ptr<Cuts> make_cuts(CutMethod method, const ExampleKernel& kernel,
                                std::shared_ptr<const ExampleSet> set, int threads, const Monitor& monitor) {
  const bool trees_only = kernel.combination == kernels::Combination::trees;
  if (!trees_only && method != CutMethod::kernels) {
    throw std::invalid_argument("this way of computing cuts is for kernels of trees alone");
  }
  switch (method) {
    case CutMethod::forest: return std::make_unique<ForestCuts>(kernel, std::move(set), threads, monitor);
    case CutMethod::pairs:
      return std::make_unique<KernelCuts>(kernel, std::move(set), threads, monitor, false);
    case CutMethod::dag_each:
      return std::make_unique<DagCuts>(kernel, std::move(set), threads, monitor, false);
    case CutMethod::dag_together:
      return std::make_unique<DagCuts>(kernel, std::move(set), threads, monitor, true);
    default: return std::make_unique<KernelCuts>(kernel, std::move(set), threads, monitor, true);
  }
}

}  // namespace unkernel::tree
