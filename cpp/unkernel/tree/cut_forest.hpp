// The subtrees of cuts with their weights, apart from the examples that the cuts were made of.
//
// A cut g = sum of coefficient_i phi(x_i) needs no examples: it is the distinct subtrees of its trees, each
// with its weight (the DAG of Severyn & Moschitti, 2011). So cuts can be sent in pieces to processes that do
// not have their examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/data/trees/forest.hpp"
#include "unkernel/kernels/trees/tree_kernel.hpp"
#include "unkernel/kernels/trees/tree_weights.hpp"

namespace unkernel::tree {

using data::Forest;
using data::NodeId;

// A cut, or the contribution of some of its examples.
struct WeightedTrees {
  std::shared_ptr<const Forest> forest;
  std::vector<std::vector<double>> weights;  // for each channel of trees, by node of the forest
};

// Memory   12 bytes per subtree of each cut, and an index of all distinct subtrees (tree_index.hpp)
class CutForest {
 public:
  CutForest(const kernels::TreeKernel& kernel, std::size_t channels) : kernel_(kernel), channels_(channels) {}

  // Adds a cut that consists of these pieces.
  void add(std::span<const WeightedTrees> pieces);

  std::size_t size() const { return channels_.empty() ? 0 : channels_.front().cuts.size(); }
  std::size_t channels() const { return channels_.size(); }
  const Forest& forest() const { return forest_; }

  // Returns the nodes of all cuts, in two layers, each with an index: the first for most cuts, the second for
  // those added since. The first is rebuilt only when the second has grown to a quarter of it, so that the
  // cost of a new cut depends on what is new in it. Both contain all descendants of their nodes; a node in
  // both belongs to the first.
  std::span<const kernels::TreeWeights> layers(std::size_t channel) const {
    return channels_[channel].layers;
  }
  bool belongs_to(std::size_t layer, std::size_t channel, NodeId node) const {
    return channels_[channel].owner[static_cast<std::size_t>(node)] == static_cast<std::int32_t>(layer);
  }

  // Gives the nodes of the layers their weights in w = sum_t alphas[t] g_t.
  void set_weights(std::span<const double> alphas);

  // For each cut, the sum over its nodes in the channel of weight times value.
  std::vector<double> along_cuts(std::size_t channel, std::span<const double> values, int threads) const;

 private:
  struct CutNodes {
    std::vector<NodeId> nodes;
    std::vector<double> weights;
  };
  struct Channel {
    std::vector<CutNodes> cuts;
    std::vector<kernels::TreeWeights> layers;
    std::vector<NodeId> settled;      // nodes of the first layer
    std::vector<NodeId> recent;       // nodes of the second layer
    std::vector<std::int32_t> owner;  // for each node of the forest: the first layer that contains it, or -1
    std::vector<bool> is_recent;      // for each node of the forest
  };

  std::vector<NodeId> absorb(const Forest& other);
  CutNodes joined(std::size_t channel, std::span<const WeightedTrees> pieces,
                  std::span<const std::vector<NodeId>> places);
  void add_to_layers(Channel& channel, std::span<const NodeId> nodes);
  kernels::TreeWeights indexed(std::span<const NodeId> nodes) const;

  kernels::TreeKernel kernel_;
  Forest forest_;
  std::vector<Channel> channels_;
  std::vector<double> sums_;    // by node of the forest; 0 between calls
  std::vector<bool> is_found_;  // by node of the forest; false between calls
};

}  // namespace unkernel::tree
