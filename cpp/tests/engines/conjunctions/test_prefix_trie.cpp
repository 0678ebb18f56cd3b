// Compares prefix tries with a map of prefixes.
#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "check.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/prefix_trie.hpp"

namespace {

using unkernel::Random;
using unkernel::engines::check;
using unkernel::engines::grow_trie;
using unkernel::engines::longest_stored_prefix;
using unkernel::engines::PrefixTrie;
using unkernel::engines::prune_trie;
using unkernel::engines::Rank;
using unkernel::engines::Sequences;

using Prefix = std::vector<Rank>;
using Counts = std::map<Prefix, std::uint32_t>;

// Returns whole numbers, so that nothing is rounded.
double cost(Rank rank, std::size_t depth) { return static_cast<double>(depth * depth + rank % 3); }

Sequences random_rows(int count, Rank ranks, Random& random) {
  Sequences rows;
  for (int row = 0; row < count; ++row) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (random.below(rank + 2) == 0) rows.ranks.push_back(rank);
    }
    rows.begins.push_back(rows.ranks.size());
  }
  return rows;
}

Counts counts_of(const PrefixTrie& trie) {
  std::vector<Prefix> prefixes(trie.nodes());
  Counts counts{{{}, trie.counts[0]}};
  for (std::uint32_t node = 0; node < trie.nodes(); ++node) {
    for (std::uint32_t child = trie.first_child[node]; child < trie.first_child[node + 1]; ++child) {
      prefixes[child] = prefixes[node];
      prefixes[child].push_back(trie.ranks[child]);
      CHECK(counts.emplace(prefixes[child], trie.counts[child]).second);
      CHECK(trie.child(node, trie.ranks[child]) == child);
    }
  }
  return counts;
}

bool has_child(const Counts& counts, const Prefix& prefix) {
  const auto next = counts.upper_bound(prefix);
  return next != counts.end() && next->first.size() > prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), next->first.begin());
}

// The order in which leaves are removed, the smallest first. Which of several equal leaves is removed is not
// checked.
using Order = std::tuple<double, std::int64_t, std::int64_t>;

Order order_of(const Prefix& prefix, std::uint32_t count) {
  return {count * cost(prefix.back(), prefix.size()), -static_cast<std::int64_t>(prefix.size()),
          -static_cast<std::int64_t>(prefix.back())};
}

void add(const Sequences& rows, Counts& counts) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Prefix prefix;
    ++counts[prefix];
    for (const Rank rank : rows[i]) {
      prefix.push_back(rank);
      ++counts[prefix];
    }
  }
}

// Checks that kept nodes have the correct counts, and that no removed leaf ranks above a kept leaf.
void check_kept_nodes(const Counts& kept, const Counts& all, std::size_t max_nodes) {
  CHECK(kept.size() == std::min(all.size(), max_nodes + 1));
  Order best_removed{-1.0, 0, 0};
  for (const auto& [prefix, count] : all) {
    const auto node = kept.find(prefix);
    if (node != kept.end()) {
      CHECK(node->second == count);
      CHECK(prefix.empty() || kept.contains(Prefix(prefix.begin(), prefix.end() - 1)));
    } else if (!has_child(all, prefix)) {
      best_removed = std::max(best_removed, order_of(prefix, count));
    }
  }
  for (const auto& [prefix, count] : kept) {
    if (!prefix.empty() && kept.size() < all.size() && !has_child(all, prefix))
      CHECK(order_of(prefix, count) >= best_removed);
  }
}

void test_growing_and_pruning_keep_the_best_nodes() {
  Random random(1);
  for (const std::size_t max_nodes : {1U, 5U, 40U, 100'000U}) {
    Counts all;
    PrefixTrie trie;
    for (int part = 0; part < 4; ++part) {
      const Sequences rows = random_rows(30, 9, random);
      add(rows, all);
      trie = grow_trie(part == 0 ? nullptr : &trie, rows, max_nodes, cost);
      trie.sums.assign(2 * trie.nodes(), 0.0);
      check(trie, 2, 9);
      const Counts kept = counts_of(trie);
      check_kept_nodes(kept, all, max_nodes);
      all = kept;  // removed nodes lose their counts
      const PrefixTrie pruned = prune_trie(trie, max_nodes / 2, cost);
      check_kept_nodes(counts_of(pruned), kept, max_nodes / 2);
    }
  }
}

void test_the_longest_stored_prefix_is_found() {
  Random random(2);
  const PrefixTrie trie = grow_trie(nullptr, random_rows(40, 8, random), 30, cost);
  const Counts stored = counts_of(trie);
  const Sequences rows = random_rows(200, 8, random);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Prefix longest(rows[i].begin(), rows[i].end());
    while (!stored.contains(longest)) longest.pop_back();
    const auto match = longest_stored_prefix(trie, {0, 0}, rows[i]);
    CHECK(match.length == longest.size() && trie.counts[match.node] == stored.at(longest));
    // Engines look up the head of a row first, and then its tail.
    for (std::size_t head_size = 0; head_size <= match.length; ++head_size) {
      const auto head_match = longest_stored_prefix(trie, {0, 0}, rows[i].first(head_size));
      CHECK(head_match.length == head_size);
      CHECK(longest_stored_prefix(trie, head_match, rows[i].subspan(head_size)).node == match.node);
    }
  }
}

void test_a_trie_without_rows() {
  for (const std::size_t max_nodes : {0U, 1U, 10U}) {
    PrefixTrie trie = grow_trie(nullptr, Sequences{}, max_nodes, cost);
    CHECK(trie.nodes() == 1 && trie.first_child == (std::vector<std::uint32_t>{1, 1}) && trie.counts[0] == 0);
    trie.sums.assign(1, 0.0);
    check(trie, 1, 0);
    CHECK(longest_stored_prefix(trie, {0, 0}, std::vector<Rank>{0, 3}).length == 0);
  }
}

template <class Change>
void check_refused(const Change& change) {
  Random random(3);
  PrefixTrie trie = grow_trie(nullptr, random_rows(20, 6, random), 15, cost);
  trie.sums.assign(trie.nodes(), 0.0);
  check(trie, 1, 6);
  change(trie);
  CHECK_THROWS(check(trie, 1, 6), std::invalid_argument);
}

void test_damaged_tries_are_refused() {
  check_refused([](PrefixTrie& t) { t = {}; });
  check_refused([](PrefixTrie& t) { t.first_child.pop_back(); });
  check_refused([](PrefixTrie& t) { t.counts.pop_back(); });
  check_refused([](PrefixTrie& t) { t.sums.pop_back(); });
  check_refused([](PrefixTrie& t) { t.first_child[0] = 0; });
  check_refused([](PrefixTrie& t) { t.first_child.back() += 1; });
  check_refused([](PrefixTrie& t) { t.first_child[2] = 0xffff'ffff; });
  check_refused([](PrefixTrie& t) { t.first_child[1] = 1; });  // a node would be its own child
  check_refused([](PrefixTrie& t) { t.ranks.back() = 6; });
  check_refused([](PrefixTrie& t) { t.ranks.back() = 0; });
  check_refused([](PrefixTrie& t) { std::swap(t.ranks[1], t.ranks[2]); });
}

}  // namespace

int main() {
  test_growing_and_pruning_keep_the_best_nodes();
  test_the_longest_stored_prefix_is_found();
  test_a_trie_without_rows();
  test_damaged_tries_are_refused();
  return 0;
}
