// The feature sequence trie of Yoshinaga & Kitsuregawa 2009, section 3: stores the sums of frequent row
// prefixes.
//
// Rows are sequences of ascending ranks. A node represents a frequent prefix and holds, for each score, the
// sum over all conjunctions within the prefix. The score of a row is the sum stored for its longest prefix in
// the trie, plus the weights of all conjunctions with a later feature. So the trie does not change scores.
//
// Nodes are numbered level by level. The children of a node are contiguous and sorted by rank, and the
// children of the next node follow. So only the first child of each node is stored.
//
// Bytes   12 + 8 m per node, for m scores: rank, first child, number of occurrences (for later growth), sums.
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
  std::vector<Rank> ranks;                 // by node: last rank of the prefix; 0 for the root
  std::vector<std::uint32_t> counts;       // by node: source rows with this prefix, at most 2^32 - 1
  std::vector<double> sums;                // nodes x scores

  std::size_t nodes() const { return ranks.size(); }
  std::size_t bytes() const {
    return 4 * (first_child.size() + ranks.size() + counts.size()) + 8 * sums.size();
  }

  // Returns the child with this rank, or 0 if there is none.
  std::uint32_t child(std::uint32_t node, Rank rank) const {
    const Rank* begin = ranks.data() + first_child[node];
    const Rank* end = ranks.data() + first_child[node + 1];
    const Rank* place = std::lower_bound(begin, end, rank);
    return place != end && *place == rank ? static_cast<std::uint32_t>(place - ranks.data()) : 0;
  }
};

struct StoredPrefix {
  std::uint32_t node;
  std::size_t length;
};

// Extends a stored prefix by the next ranks of a row, as far as the trie has nodes.
inline StoredPrefix longest_stored_prefix(const PrefixTrie& trie, StoredPrefix prefix,
                                          std::span<const Rank> next_ranks) {
  for (const Rank rank : next_ranks) {
    const std::uint32_t child = trie.child(prefix.node, rank);
    if (child == 0) break;
    prefix = {child, prefix.length + 1};
  }
  return prefix;
}

// Throws std::invalid_argument unless nodes are ordered as described above and all ranks are below `ranks`.
void check(const PrefixTrie& trie, std::size_t scores, std::size_t ranks);

// Sequences of ascending ranks.
struct Sequences {
  std::vector<std::uint64_t> begins{0};
  std::vector<Rank> ranks;

  std::size_t size() const { return begins.size() - 1; }
  std::span<const Rank> operator[](std::size_t i) const {
    return std::span(ranks).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

// Returns the cost of adding the last feature of a prefix, given its rank and the length of the prefix.
using PrefixCost = std::function<double(Rank rank, std::size_t depth)>;

// Returns a trie without sums, with the nodes of the old trie (null: none) and the prefixes of the rows.
// Removes leaves until at most `most_nodes` nodes are left, not counting the root. Each time, it removes the
// leaf with the smallest saving: its cost times the share of rows with its prefix (section 3.3). Among equal
// savings, it removes the deepest leaf, then the one with the largest rank. While rows are added, the trie
// takes several times the memory of `most_nodes` nodes.
PrefixTrie grow_trie(const PrefixTrie* old, const Sequences& rows, std::size_t most_nodes,
                     const PrefixCost& cost);

// Returns the trie without sums, pruned to `most_nodes` nodes as in grow_trie.
PrefixTrie prune_trie(const PrefixTrie& trie, std::size_t most_nodes, const PrefixCost& cost);

}  // namespace unkernel::engines
