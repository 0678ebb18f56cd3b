// The subtrees of cuts with their weights, without the examples of the cuts.
//
// A cut of the sampled cutting-plane method (sampled.hpp), g = sum of coefficient_i phi(x_i), is given by the
// distinct subtrees of its trees, each with a weight (the DAG of Severyn & Moschitti, 2011). So cuts can be
// sent in pieces to processes that do not have the examples.
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

  // Returns the nodes of all cuts in two layers, each with an index. The second layer contains the cuts that
  // were added after the first layer was built. The first layer is rebuilt only when the second layer has
  // grown to a quarter of the first layer, so the cost of a new cut depends on its new subtrees. Each layer
  // contains all descendants of its nodes; a node in both layers belongs to the first.
  std::span<const kernels::TreeWeights> layers(std::size_t channel) const {
    return channels_[channel].layers;
  }
  bool belongs_to(std::size_t layer, std::size_t channel, NodeId node) const {
    return channels_[channel].owner[static_cast<std::size_t>(node)] == static_cast<std::int32_t>(layer);
  }

  // Sets the weights of the layers' nodes to their weights in w = sum_t alphas[t] g_t.
  void set_weights(std::span<const double> alphas);

  // Returns for each cut the sum of weight times value over its nodes in the channel.
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

  std::vector<NodeId> add_forest(const Forest& other);
  CutNodes join_pieces(std::size_t channel, std::span<const WeightedTrees> pieces,
                       std::span<const std::vector<NodeId>> places);
  void add_to_layers(Channel& channel, std::span<const NodeId> nodes);
  kernels::TreeWeights make_index(std::span<const NodeId> nodes) const;

  kernels::TreeKernel kernel_;
  Forest forest_;
  std::vector<Channel> channels_;
  std::vector<double> sums_;     // by node of the forest; 0 between calls
  std::vector<bool> is_listed_;  // by node of the forest; false between calls
};

}  // namespace unkernel::tree
