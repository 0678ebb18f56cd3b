#include "unkernel/tree/cut_forest.hpp"

#include <utility>

#include "unkernel/base/at.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel::tree {
namespace {

// Marks the nodes of a piece that are in a channel: nodes with a weight and their descendants. Children come
// before their parents.
std::vector<bool> nodes_in_channel(const Forest& forest, std::span<const double> weights) {
  std::vector<bool> in_channel(forest.size(), false);
  for (std::size_t i = forest.size(); i-- > 0;) {
    if (weights[i] != 0.0) in_channel[i] = true;
    if (!in_channel[i]) continue;
    for (const NodeId child : forest.children(static_cast<NodeId>(i))) in_channel[at(child)] = true;
  }
  return in_channel;
}

}  // namespace

void CutForest::add(std::span<const WeightedTrees> pieces) {
  std::vector<std::vector<NodeId>> places;
  for (const WeightedTrees& piece : pieces) places.push_back(add_forest(*piece.forest));
  sums_.resize(forest_.size(), 0.0);
  is_listed_.resize(forest_.size(), false);
  for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
    channels_[channel].cuts.push_back(join_pieces(channel, pieces, places));
    add_to_layers(channels_[channel], channels_[channel].cuts.back().nodes);
  }
}

// Adds all nodes of another forest; returns their numbers in this forest.
std::vector<NodeId> CutForest::add_forest(const Forest& other) {
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < other.label_count(); ++i)
    labels.push_back(forest_.add_label(other.labels().name(static_cast<std::int32_t>(i))));
  std::vector<NodeId> places;
  places.reserve(other.size());
  std::vector<NodeId> children;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    children.clear();
    for (const NodeId child : other.children(node)) children.push_back(places[at(child)]);
    places.push_back(forest_.add_node(labels[at(other.label(node))], children));
  }
  return places;
}

// Collects the nodes of all pieces that are in the channel and that the kernel considers, each once.
CutForest::CutNodes CutForest::join_pieces(std::size_t channel, std::span<const WeightedTrees> pieces,
                                           std::span<const std::vector<NodeId>> places) {
  CutNodes cut;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const std::span<const double> weights = pieces[k].weights[channel];
    const std::vector<bool> in_channel = nodes_in_channel(*pieces[k].forest, weights);
    for (std::size_t i = 0; i < in_channel.size(); ++i) {
      const NodeId node = places[k][i];
      if (!in_channel[i] || group_of(kernel_, forest_, node) < 0) continue;
      if (!is_listed_[at(node)]) cut.nodes.push_back(node);
      is_listed_[at(node)] = true;
      sums_[at(node)] += weights[i];
    }
  }
  for (const NodeId node : cut.nodes) {
    cut.weights.push_back(std::exchange(sums_[at(node)], 0.0));
    is_listed_[at(node)] = false;
  }
  return cut;
}

void CutForest::add_to_layers(Channel& channel, std::span<const NodeId> nodes) {
  channel.owner.resize(forest_.size(), -1);
  channel.is_recent.resize(forest_.size(), false);
  for (const NodeId node : nodes) {
    if (!channel.is_recent[at(node)]) channel.recent.push_back(node);
    channel.is_recent[at(node)] = true;
  }
  if (channel.layers.empty() || 4 * channel.recent.size() > channel.settled.size()) {
    for (const NodeId node : channel.recent) {
      channel.is_recent[at(node)] = false;
      if (std::exchange(channel.owner[at(node)], 0) != 0) channel.settled.push_back(node);
    }
    channel.recent.clear();
    channel.layers.clear();
    channel.layers.push_back(make_index(channel.settled));
  } else {
    for (const NodeId node : channel.recent) {
      if (channel.owner[at(node)] < 0) channel.owner[at(node)] = 1;
    }
    channel.layers.erase(channel.layers.begin() + 1, channel.layers.end());
    channel.layers.push_back(make_index(channel.recent));
  }
}

kernels::TreeWeights CutForest::make_index(std::span<const NodeId> nodes) const {
  return kernels::TreeWeights(
      kernels::TreeIndex(kernel_, forest_, kernels::nodes_in_order(kernel_, forest_, nodes)));
}

void CutForest::set_weights(std::span<const double> alphas) {
  for (Channel& channel : channels_) {
    for (std::size_t t = 0; t < channel.cuts.size(); ++t) {
      if (alphas[t] == 0.0) continue;
      const auto& [nodes, weights] = channel.cuts[t];
      for (std::size_t i = 0; i < nodes.size(); ++i) sums_[at(nodes[i])] += alphas[t] * weights[i];
    }
    for (std::size_t k = 0; k < channel.layers.size(); ++k) {
      channel.layers[k].assign([&](NodeId node) {
        return channel.owner[at(node)] == static_cast<std::int32_t>(k) ? sums_[at(node)] : 0.0;
      });
    }
    sums_.assign(sums_.size(), 0.0);
  }
}

std::vector<double> CutForest::along_cuts(std::size_t channel, std::span<const double> values,
                                          int threads) const {
  std::vector<double> products(size(), 0.0);
  parallel_for(threads, static_cast<std::int64_t>(products.size()), [&](std::int64_t t) {
    const auto number = static_cast<std::size_t>(t);
    const auto& [nodes, weights] = channels_[channel].cuts[number];
    for (std::size_t i = 0; i < nodes.size(); ++i) products[number] += weights[i] * values[at(nodes[i])];
  });
  return products;
}

}  // namespace unkernel::tree
