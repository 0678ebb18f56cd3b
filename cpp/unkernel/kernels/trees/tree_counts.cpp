#include "unkernel/kernels/trees/tree_counts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "unkernel/base/at.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/kernels/trees/self_kernel.hpp"

namespace unkernel::kernels {
namespace {

constexpr std::int64_t examples_at_once = 256;

// Counts the nodes of one tree at a time. Each thread needs its own object.
class Counter {
 public:
  Counter(const TreeKernel& kernel, const Forest& forest)
      : kernel_(kernel), forest_(forest), multiplicity_(forest.size(), 0.0), self_kernel_(kernel, forest) {}

  // Lists the nodes that the kernel uses in the tree below `root`: in `nodes`, in ascending order, and how
  // often each occurs, in `weights`. Equal subtrees share their nodes, so a node may occur several times.
  void count(NodeId root) {
    nodes.clear();
    weights.clear();
    stack_.assign(1, root);
    multiplicity_[at(root)] = 1.0;
    while (!stack_.empty()) {
      const NodeId node = stack_.back();
      stack_.pop_back();
      nodes.push_back(node);
      for (const NodeId child : forest_.children(node)) {
        if (multiplicity_[at(child)] != 0.0 || !is_considered(child)) continue;
        multiplicity_[at(child)] = 1.0;
        stack_.push_back(child);
      }
    }
    std::ranges::sort(nodes);
    for (const NodeId node : nodes) multiplicity_[at(node)] = 0.0;
    multiplicity_[at(root)] = 1.0;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      for (const NodeId child : forest_.children(nodes[i])) {
        if (is_considered(child)) multiplicity_[at(child)] += multiplicity_[at(nodes[i])];
      }
    }
    weights.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      weights[i] = std::exchange(multiplicity_[at(nodes[i])], 0.0);
    if (!is_considered(root)) {
      nodes.clear();
      weights.clear();
    }
  }

  // Divides the weights by the square root of the kernel of the tree with itself, unless the kernel is 0.
  void normalize(const Monitor& monitor) {
    const double kernel = self_kernel_({nodes, weights}, monitor);
    if (!std::isfinite(kernel)) {
      throw std::invalid_argument(
          "the kernel of a tree with itself is not finite: the tree is too large for this decay; lower it");
    }
    if (kernel <= 0.0) return;
    const double scale = 1.0 / std::sqrt(kernel);
    for (double& weight : weights) weight *= scale;
  }

  std::vector<NodeId> nodes;
  std::vector<double> weights;

 private:
  bool is_considered(NodeId node) const { return kernel_.has_leaves() || !forest_.is_leaf(node); }

  const TreeKernel& kernel_;
  const Forest& forest_;
  std::vector<double> multiplicity_;
  std::vector<NodeId> stack_;
  SelfKernel self_kernel_;
};

// The rows of the examples in one task.
struct Piece {
  std::vector<std::int64_t> ends;
  std::vector<NodeId> nodes;
  std::vector<double> weights;
};

void count_example(Counter& counter, std::span<const NodeId> roots, bool normalize, const Monitor& monitor,
                   Piece& piece) {
  std::map<NodeId, double> sum;  // for examples with several trees
  const auto trees = std::ranges::count_if(roots, [](NodeId root) { return root >= 0; });
  for (const NodeId root : roots) {
    if (root < 0) continue;
    counter.count(root);
    if (normalize) counter.normalize(monitor);
    if (trees == 1) {
      piece.nodes.insert(piece.nodes.end(), counter.nodes.begin(), counter.nodes.end());
      piece.weights.insert(piece.weights.end(), counter.weights.begin(), counter.weights.end());
    } else {
      for (std::size_t i = 0; i < counter.nodes.size(); ++i) sum[counter.nodes[i]] += counter.weights[i];
    }
  }
  for (const auto& [node, weight] : sum) {
    piece.nodes.push_back(node);
    piece.weights.push_back(weight);
  }
  piece.ends.push_back(static_cast<std::int64_t>(piece.nodes.size()));
}

}  // namespace

TreeCounts TreeCounts::count(const TreeKernel& kernel, const Forest& forest,
                             std::span<const std::int64_t> offsets, std::span<const NodeId> roots,
                             bool normalize, Threads threads) {
  const auto examples = static_cast<std::int64_t>(offsets.size()) - 1;
  const std::int64_t tasks = (examples + examples_at_once - 1) / examples_at_once;
  std::vector<Piece> pieces(static_cast<std::size_t>(tasks));
  const auto make = [&] { return std::make_unique<Counter>(kernel, forest); };
  parallel_workers(threads.count, tasks, make, [&](Counter& counter, std::int64_t task) {
    const std::int64_t end = std::min(examples, (task + 1) * examples_at_once);
    for (std::int64_t i = task * examples_at_once; i < end; ++i) {
      threads.monitor->throw_if_stopped();
      const auto begin = static_cast<std::size_t>(offsets[static_cast<std::size_t>(i)]);
      const auto size = static_cast<std::size_t>(offsets[static_cast<std::size_t>(i) + 1]) - begin;
      count_example(counter, roots.subspan(begin, size), normalize, *threads.monitor,
                    pieces[static_cast<std::size_t>(task)]);
    }
  });
  TreeCounts result;
  std::size_t entries = 0;
  for (const Piece& piece : pieces) entries += piece.nodes.size();
  result.nodes_.reserve(entries);
  result.weights_.reserve(entries);
  result.offsets_.reserve(offsets.size());
  for (Piece& piece : pieces) {
    const auto base = static_cast<std::int64_t>(result.nodes_.size());
    for (const std::int64_t end : piece.ends) result.offsets_.push_back(base + end);
    result.nodes_.insert(result.nodes_.end(), piece.nodes.begin(), piece.nodes.end());
    result.weights_.insert(result.weights_.end(), piece.weights.begin(), piece.weights.end());
    piece = {};
  }
  return result;
}

}  // namespace unkernel::kernels
