// Fills a prefix trie with sums, parents first, using the scoring routine of the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/engines/conjunctions/prefix_trie.hpp"

namespace unkernel::engines {

// Fills the sums level by level. A node's sums are its parent's sums plus the contribution of its last rank,
// which add_last(path, scratch, out) computes. Copies the sums of nodes of the old trie.
template <class MakeScratch, class AddLast>
void fill_prefix_sums(const PrefixTrie* old, std::size_t scores, int threads, Monitor& monitor,
                      const MakeScratch& make_scratch, const AddLast& add_last, PrefixTrie& trie) {
  trie.sums.assign(trie.nodes() * scores, 0.0);
  std::vector<std::uint32_t> parents(trie.nodes(), 0), old_node_of(trie.nodes(), 0);
  for (std::uint32_t i = 0; i < trie.nodes(); ++i) {
    for (std::uint32_t c = trie.first_child[i]; c < trie.first_child[i + 1]; ++c) {
      parents[c] = i;
      if (old != nullptr && (i == 0 || old_node_of[i] != 0))
        old_node_of[c] = old->child(old_node_of[i], trie.ranks[c]);
    }
  }
  const auto fill = [&](std::size_t node, auto& scratch, std::vector<Rank>& path) {
    double* out = trie.sums.data() + node * scores;
    if (old_node_of[node] != 0) {
      std::copy_n(old->sums.data() + old_node_of[node] * scores, scores, out);
      return;
    }
    path.clear();
    for (auto i = static_cast<std::uint32_t>(node); i != 0; i = parents[i]) path.push_back(trie.ranks[i]);
    std::reverse(path.begin(), path.end());
    std::copy_n(trie.sums.data() + parents[node] * scores, scores, out);
    add_last(path, scratch, out);
  };
  // The nodes of a level are the children of the previous level.
  for (std::size_t begin = 1, end = trie.nodes() > 1 ? trie.first_child[1] : 1; begin < end;) {
    parallel_ranges(threads, static_cast<std::int64_t>(end - begin), 1024,
                    [&](std::int64_t first, std::int64_t last) {
                      monitor.throw_if_stopped();
                      auto scratch = make_scratch();
                      std::vector<Rank> path;
                      for (std::int64_t i = first; i < last; ++i)
                        fill(begin + static_cast<std::size_t>(i), scratch, path);
                    });
    const std::size_t next = trie.first_child[end];
    begin = end;
    end = next;
  }
}

}  // namespace unkernel::engines
