#include "unkernel/engines/conjunctions/prefix_trie.hpp"

#include <limits>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <string>

#include "unkernel/base/flat_map.hpp"

namespace unkernel::engines {
namespace {

constexpr std::uint32_t max_count = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t spare_nodes = std::size_t{1} << 20;  // capacity of a small trie while it grows

[[noreturn]] void fail_trie(const std::string& what) {
  throw std::invalid_argument("not a valid prefix trie: " + what);
}

// A trie under construction. Parents come before their children.
class GrowingTrie {
 public:
  GrowingTrie() : nodes_(1, {0, 0, 0, 0}) {}

  explicit GrowingTrie(const PrefixTrie& old) {
    nodes_.push_back({0, 0, old.counts[0], 0});
    for (std::uint32_t parent = 0; parent < old.nodes(); ++parent) {
      for (std::uint32_t node = old.first_child[parent]; node < old.first_child[parent + 1]; ++node) {
        append(parent, old.ranks[node], old.counts[node]);
      }
    }
  }

  std::size_t size() const { return nodes_.size() - 1; }

  void add(std::span<const Rank> row) {
    std::uint32_t node = 0;
    count(node);
    for (const Rank rank : row) {
      const std::uint32_t* child = child_of_.find(key(node, rank));
      node = child != nullptr ? *child : append(node, rank, 0);
      count(node);
    }
  }

  // Removes leaves until `most_nodes` are left.
  void prune(std::size_t most_nodes, const PrefixCost& cost) {
    if (size() <= most_nodes) return;
    std::vector<std::uint32_t> children(nodes_.size(), 0);
    for (std::size_t i = 1; i < nodes_.size(); ++i) ++children[nodes_[i].parent];
    const auto saving_of = [&](std::uint32_t i) {
      return nodes_[i].count * cost(nodes_[i].rank, nodes_[i].depth);
    };
    const auto is_removed_later = [&](const Leaf& a, const Leaf& b) {
      if (a.saving != b.saving) return a.saving > b.saving;
      if (nodes_[a.node].depth != nodes_[b.node].depth) return nodes_[a.node].depth < nodes_[b.node].depth;
      if (nodes_[a.node].rank != nodes_[b.node].rank) return nodes_[a.node].rank < nodes_[b.node].rank;
      return a.node < b.node;
    };
    std::priority_queue<Leaf, std::vector<Leaf>, decltype(is_removed_later)> leaves(is_removed_later);
    for (std::uint32_t i = 1; i < nodes_.size(); ++i) {
      if (children[i] == 0) leaves.push({saving_of(i), i});
    }
    std::vector<bool> removed(nodes_.size(), false);
    for (std::size_t remaining = size(); remaining > most_nodes; --remaining) {
      const std::uint32_t node = leaves.top().node;
      leaves.pop();
      removed[node] = true;
      const std::uint32_t parent = nodes_[node].parent;
      if (parent != 0 && --children[parent] == 0) leaves.push({saving_of(parent), parent});
    }
    keep_nodes([&](std::size_t i) { return !removed[i]; });
  }

  // Returns the trie with its nodes numbered level by level, and with the children of each node sorted by
  // rank.
  PrefixTrie number_by_level() const {
    std::vector<std::uint32_t> place(nodes_.size(), 0);
    std::vector<std::uint32_t> order(nodes_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return nodes_[a].depth < nodes_[b].depth; });
    PrefixTrie trie;
    for (std::size_t begin = 0; begin < order.size();) {
      std::size_t end = begin;
      while (end < order.size() && nodes_[order[end]].depth == nodes_[order[begin]].depth) ++end;
      std::sort(
          order.begin() + static_cast<std::ptrdiff_t>(begin),
          order.begin() + static_cast<std::ptrdiff_t>(end), [&](std::uint32_t a, std::uint32_t b) {
            const std::uint32_t parent_of_a = place[nodes_[a].parent], parent_of_b = place[nodes_[b].parent];
            return parent_of_a != parent_of_b ? parent_of_a < parent_of_b : nodes_[a].rank < nodes_[b].rank;
          });
      for (; begin < end; ++begin) place[order[begin]] = static_cast<std::uint32_t>(begin);
    }
    trie.first_child.assign(nodes_.size() + 1, 0);
    for (const std::uint32_t i : order) {
      trie.ranks.push_back(nodes_[i].rank);
      trie.counts.push_back(nodes_[i].count);
      if (i != 0) ++trie.first_child[place[nodes_[i].parent] + 1];
    }
    trie.first_child[0] = 1;
    for (std::size_t i = 1; i < trie.first_child.size(); ++i) trie.first_child[i] += trie.first_child[i - 1];
    return trie;
  }

 private:
  struct Node {
    std::uint32_t parent;
    Rank rank;
    std::uint32_t count;
    std::uint32_t depth;
  };
  struct Leaf {
    double saving;
    std::uint32_t node;
  };

  static std::uint64_t key(std::uint32_t parent, Rank rank) { return std::uint64_t{parent} << 32 | rank; }

  void count(std::uint32_t node) { nodes_[node].count += nodes_[node].count < max_count; }

  std::uint32_t append(std::uint32_t parent, Rank rank, std::uint32_t count) {
    if (nodes_.size() >= max_count)
      throw std::length_error("a prefix trie has too many nodes: lower trie_nodes");
    const auto node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({parent, rank, count, nodes_[parent].depth + 1});
    child_of_[key(parent, rank)] = node;
    return node;
  }

  template <class IsKept>
  void keep_nodes(const IsKept& is_kept) {
    std::vector<std::uint32_t> place(nodes_.size(), 0);
    std::vector<Node> kept_nodes;
    child_of_ = {};
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!is_kept(i)) continue;
      place[i] = static_cast<std::uint32_t>(kept_nodes.size());
      Node node = nodes_[i];
      node.parent = place[node.parent];
      if (i != 0) child_of_[key(node.parent, node.rank)] = place[i];
      kept_nodes.push_back(node);
    }
    nodes_ = std::move(kept_nodes);
  }

  std::vector<Node> nodes_;
  FlatMap<std::uint64_t, std::uint32_t> child_of_;
};

}  // namespace

void check(const PrefixTrie& trie, std::size_t scores, std::size_t ranks) {
  const std::size_t nodes = trie.nodes();
  if (nodes == 0 || trie.first_child.size() != nodes + 1 || trie.counts.size() != nodes)
    fail_trie("the number of nodes does not fit");
  if (trie.sums.size() / scores != nodes || trie.sums.size() % scores != 0)
    fail_trie("the number of sums does not fit");
  if (trie.first_child[0] != 1 || trie.first_child[nodes] != nodes) fail_trie("the children do not fit");
  for (std::size_t i = 0; i < nodes; ++i) {
    // Children come after their parent, so every walk from parent to child ends.
    const bool fits = i < trie.first_child[i] && trie.first_child[i] <= trie.first_child[i + 1] &&
                      trie.first_child[i + 1] <= nodes;
    if (!fits) fail_trie("the children do not fit");
    if (trie.ranks[i] >= std::max<std::size_t>(ranks, 1)) fail_trie("a rank is too large");
    for (std::size_t c = trie.first_child[i]; c < trie.first_child[i + 1]; ++c) {
      const bool ascends = (i == 0 || trie.ranks[c] > trie.ranks[i]) &&
                           (c == trie.first_child[i] || trie.ranks[c] > trie.ranks[c - 1]);
      if (!ascends) fail_trie("ranks do not ascend");
    }
  }
}

PrefixTrie grow_trie(const PrefixTrie* old, const Sequences& rows, std::size_t most_nodes,
                     const PrefixCost& cost) {
  GrowingTrie trie = old == nullptr ? GrowingTrie() : GrowingTrie(*old);
  const bool is_huge = most_nodes > (max_count - spare_nodes) / 4;
  const std::size_t max_nodes = is_huge ? max_count - 1 : 4 * most_nodes + spare_nodes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (trie.size() + rows[i].size() > max_nodes) trie.prune(std::min(2 * most_nodes, max_nodes / 2), cost);
    trie.add(rows[i]);
  }
  trie.prune(most_nodes, cost);
  return trie.number_by_level();
}

PrefixTrie prune_trie(const PrefixTrie& trie, std::size_t most_nodes, const PrefixCost& cost) {
  GrowingTrie growing(trie);
  growing.prune(most_nodes, cost);
  return growing.number_by_level();
}

}  // namespace unkernel::engines
