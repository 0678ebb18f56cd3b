// The feature sequence trie of Yoshinaga & Kitsuregawa 2009, section 3: stores the sums of frequent row
// prefixes.
//
// Rows are sequences of ascending ranks. A node represents a frequent prefix and holds the sum over all
// conjunctions within it, for each score. A row finds its longest prefix that has a node, and adds only the
// weights of conjunctions with a later feature. So the scores do not depend on the trie.
//
// Nodes are numbered level by level. The children of a node are contiguous, by ascending rank, and the
// children of the next node follow, so that one number per node, its first child, is enough.
//
// Bytes   12 + 8 m per node: rank, first child, number of occurrences (for later growth), m sums.
// Query   a binary search among the children for each step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "unkernel/engines/ranking.hpp"

namespace unkernel::engines {

// Node 0 is the empty prefix.
struct PrefixTrie {
  std::vector<std::uint32_t> first_child;  // nodes + 1
  std::vector<Rank> ranks;                 // nodes; the root's is 0
  std::vector<std::uint32_t> counts;       // nodes: source rows with this prefix, at most 2^32 - 1
  std::vector<double> sums;                // nodes x scores

  std::size_t nodes() const { return ranks.size(); }
  std::size_t bytes() const {
    return 4 * (first_child.size() + ranks.size() + counts.size()) + 8 * sums.size();
  }

  // Returns the child with that rank; 0 if there is none.
  std::uint32_t child(std::uint32_t node, Rank rank) const {
    const Rank* begin = ranks.data() + first_child[node];
    const Rank* end = ranks.data() + first_child[node + 1];
    const Rank* found = std::lower_bound(begin, end, rank);
    return found != end && *found == rank ? static_cast<std::uint32_t>(found - ranks.data()) : 0;
  }
};

struct StoredPrefix {
  std::uint32_t node;
  std::size_t length;
};

// Extends a stored prefix by the ranks of `rest` for as long as the trie has a node.
inline StoredPrefix longest_stored_prefix(const PrefixTrie& trie, StoredPrefix prefix,
                                          std::span<const Rank> rest) {
  for (const Rank rank : rest) {
    const std::uint32_t child = trie.child(prefix.node, rank);
    if (child == 0) break;
    prefix = {child, prefix.length + 1};
  }
  return prefix;
}

// Throws std::invalid_argument unless nodes are ordered as described and all ranks are below `ranks`.
void check(const PrefixTrie& trie, std::size_t scores, std::size_t ranks);

// Sequences of ranks, ascending in each.
struct Sequences {
  std::vector<std::uint64_t> begins{0};
  std::vector<Rank> ranks;

  std::size_t size() const { return begins.size() - 1; }
  std::span<const Rank> operator[](std::size_t i) const {
    return std::span(ranks).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

// The cost of looking up the last feature of a node with this rank and depth.
using PrefixCost = std::function<double(Rank rank, std::size_t depth)>;

// Returns a trie without sums, with the nodes of the old one (if there is one) and the prefixes of the rows.
// While it has more than `most_nodes` nodes, not counting the root, removes the leaf with the smallest
// saving, which is its cost times the share of rows with its prefix (section 3.3). Ties are broken by depth,
// the deepest first, then by the largest rank. While rows are added, the trie takes a few times the memory of
// `most_nodes` nodes.
PrefixTrie grow_trie(const PrefixTrie* old, const Sequences& rows, std::size_t most_nodes,
                     const PrefixCost& cost);

// Returns the trie pruned to `most_nodes` in the same way, without sums.
PrefixTrie prune_trie(const PrefixTrie& trie, std::size_t most_nodes, const PrefixCost& cost);

}  // namespace unkernel::engines
