// Compares kernels that use an index with sums over all pairs of nodes, and these sums with the recursive
// definitions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "random_trees.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/kernels/trees/growing_groups.hpp"
#include "unkernel/kernels/trees/self_kernel.hpp"
#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_pairs.hpp"
#include "unkernel/kernels/trees/tree_scores.hpp"

namespace {

using namespace unkernel::kernels;
using random_trees::chain;
using random_trees::numbers;
using random_trees::random_tree;
using random_trees::TreeKind;
using unkernel::Interrupted;
using unkernel::Monitor;
using unkernel::Random;
using Vector = std::vector<double>;

constexpr std::array kinds = {TreeKernelKind::subtree, TreeKernelKind::subset_tree,
                              TreeKernelKind::subset_tree_words, TreeKernelKind::partial_tree};

const Monitor monitor_without_callback;

struct Trees {
  Forest forest;
  std::vector<NodeId> roots;

  void add(const std::string& text) { roots.push_back(random_trees::add(forest, text)); }
  TreeCounts count(const TreeKernel& kernel, bool normalize, int threads = 1) const {
    return TreeCounts::count(kernel, forest, numbers<std::int64_t>(roots.size() + 1), roots, normalize,
                             {threads, &monitor_without_callback});
  }
};

Trees random_forest(Random& random, std::size_t count, const TreeKind& kind) {
  Trees trees;
  for (std::size_t i = 0; i < count; ++i) trees.add(random_tree(random, kind));
  return trees;
}

// --- Slow twin: the recursive definitions -----------------------------------------------------------

class RecursiveKernel {
 public:
  RecursiveKernel(const TreeKernel& kernel, const Forest& forest) : kernel_(kernel), forest_(forest) {}

  double kernel(NodeId left, NodeId right) {
    double sum = 0.0;
    for (const NodeId a : nodes_below(left)) {
      for (const NodeId b : nodes_below(right)) sum += delta(a, b);
    }
    return sum;
  }

 private:
  std::vector<NodeId> nodes_below(NodeId root) const {  // a node is listed as often as it occurs
    std::vector<NodeId> nodes{root};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const NodeId child : forest_.children(nodes[i])) nodes.push_back(child);
    }
    return nodes;
  }

  double delta(NodeId a, NodeId b) {
    const bool has_leaf = forest_.is_leaf(a) || forest_.is_leaf(b);
    switch (kernel_.kind) {
      case TreeKernelKind::subtree: return a == b && !has_leaf ? power(a) : 0.0;
      case TreeKernelKind::subset_tree: return has_leaf ? 0.0 : subset_trees(a, b);
      case TreeKernelKind::subset_tree_words:
        return has_leaf ? (a == b ? kernel_.decay : 0.0) : subset_trees(a, b);
      case TreeKernelKind::partial_tree: return partial_trees(a, b);
    }
    return 0.0;
  }

  double power(NodeId a) const {
    double value = 1.0;
    for (const NodeId node : nodes_below(a)) value *= forest_.is_leaf(node) ? 1.0 : kernel_.decay;
    return value;
  }

  double subset_trees(NodeId a, NodeId b) {
    if (forest_.production(a) != forest_.production(b)) return 0.0;
    double value = kernel_.decay;
    for (std::size_t k = 0; k < forest_.children(a).size(); ++k) {
      const NodeId x = forest_.children(a)[k];
      const NodeId z = forest_.children(b)[k];
      if (!forest_.is_leaf(x) && !forest_.is_leaf(z)) value *= 1.0 + subset_trees(x, z);
    }
    return value;
  }

  // Sums over all choices of equal numbers of children from both sides, represented as bit sets.
  double partial_trees(NodeId a, NodeId b) {
    if (forest_.label(a) != forest_.label(b)) return 0.0;
    const auto [cached, is_new] = cache_.try_emplace({a, b}, 0.0);
    if (!is_new) return cached->second;
    const double lambda = kernel_.decay;
    double sum = lambda * lambda;
    const auto choices = [&](NodeId node) { return 1U << forest_.children(node).size(); };
    for (std::uint32_t left = 1; left < choices(a); ++left) {
      for (std::uint32_t right = 1; right < choices(b); ++right) sum += subsequences(a, left, b, right);
    }
    return cache_[{a, b}] = kernel_.width_decay * sum;
  }

  double subsequences(NodeId a, std::uint32_t left, NodeId b, std::uint32_t right) {
    const auto xs = positions_of_set_bits(left);
    const auto zs = positions_of_set_bits(right);
    if (xs.size() != zs.size() || xs.size() > longest_subsequence) return 0.0;
    double value = std::pow(kernel_.decay, static_cast<double>(xs.back() - xs.front() + zs.back() -
                                                               zs.front() + 2 - 2 * xs.size()));
    for (std::size_t k = 0; k < xs.size() && value != 0.0; ++k) {
      value *= partial_trees(forest_.children(a)[xs[k]], forest_.children(b)[zs[k]]);
    }
    return value;
  }

  static std::vector<std::size_t> positions_of_set_bits(std::uint32_t bits) {
    std::vector<std::size_t> set_bits;
    for (std::size_t i = 0; bits >> i != 0; ++i) {
      if ((bits >> i & 1U) != 0) set_bits.push_back(i);
    }
    return set_bits;
  }

  TreeKernel kernel_;
  const Forest& forest_;
  std::map<std::pair<NodeId, NodeId>, double> cache_;
};

void test_pairs_equal_the_recursive_definitions() {
  Random random(1);
  for (const TreeKernelKind kind : kinds) {
    for (int round = 0; round < 12; ++round) {
      const TreeKernel kernel{kind, 0.1 + 0.1 * round, 1.2 - 0.1 * round};
      const Trees trees =
          random_forest(random, 8, {3, round % 3 == 0 ? 6U : 3U, 2 + random.below(2), round % 2 == 0});
      const TreeCounts counts = trees.count(kernel, false);
      TreePairs pairs(kernel, trees.forest);
      SelfKernel self(kernel, trees.forest);
      RecursiveKernel slow(kernel, trees.forest);
      for (std::size_t i = 0; i < trees.roots.size(); ++i) {
        for (std::size_t j = 0; j < trees.roots.size(); ++j) {
          CHECK(
              close(pairs(counts.row(i), counts.row(j)), slow.kernel(trees.roots[i], trees.roots[j]), 1e-12));
        }
        CHECK(close(self(counts.row(i), monitor_without_callback),
                    slow.kernel(trees.roots[i], trees.roots[i]), 1e-12));
      }
    }
  }
}

// --- Matrices ---------------------------------------------------------------------------------------

class GramMatrix final : public GramSink {
 public:
  GramMatrix(std::size_t rows, std::size_t columns) : values(rows * columns, 0.0), columns_(columns) {}
  void take(std::size_t i, std::size_t first, std::span<const double> kernels) override {
    for (std::size_t j = 0; j < kernels.size(); ++j) values[i * columns_ + first + j] += kernels[j];
  }
  Vector values;

 private:
  std::size_t columns_;
};

Vector gram(const TreeKernel& kernel, const Trees& left, const Trees& right, bool normalize, int threads,
            bool lower_only = false) {
  const TreeCounts left_counts = left.count(kernel, normalize, threads);
  const TreeCounts right_counts = right.count(kernel, normalize, threads);
  const auto groups = groups_in(kernel, left.forest, right.forest);
  const auto order = nodes_in_order(kernel, right.forest);
  const auto rows = numbers<std::int32_t>(left.roots.size());
  const auto columns = numbers<std::int32_t>(right.roots.size());
  GramMatrix sink(rows.size(), columns.size());
  const Monitor monitor;
  compute_gram(
      kernel,
      {left.forest, groups, left_counts, rows, right.forest, order, right_counts, columns, lower_only},
      threads, monitor, sink);
  return sink.values;
}

// Computes all kernels pair by pair, with the trees of both sides in one forest.
Vector gram_by_pairs(const TreeKernel& kernel, const Trees& left, const Trees& right, bool normalize) {
  Trees joint;
  for (const Trees* side : {&left, &right}) {
    for (const NodeId root : side->roots) joint.add(unkernel::data::to_brackets(side->forest, root, true));
  }
  const TreeCounts counts = joint.count(kernel, normalize);
  TreePairs pairs(kernel, joint.forest);
  Vector values;
  for (std::size_t i = 0; i < left.roots.size(); ++i) {
    for (std::size_t j = 0; j < right.roots.size(); ++j)
      values.push_back(pairs(counts.row(i), counts.row(left.roots.size() + j)));
  }
  return values;
}

void check_close(const Vector& values, const Vector& expected, double tolerance) {
  CHECK(values.size() == expected.size());
  double largest = 1.0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(std::abs(values[i] - expected[i]) <= tolerance * largest);
}

void test_matrices_equal_all_pairs() {
  Random random(2);
  for (const TreeKernelKind kind : kinds) {
    for (int round = 0; round < 40; ++round) {
      const TreeKernel kernel{kind, 0.05 + 0.025 * round, 0.5};
      const TreeKind shape{3 + round % 2, 3, 1 + random.below(4), round % 2 == 0};
      const Trees left = random_forest(random, 1 + random.below(20), shape);
      const Trees right = random_forest(random, 1 + random.below(20), shape);
      const bool normalize = round % 3 != 0;
      const Vector values = gram(kernel, left, right, normalize, 1);
      check_close(values, gram_by_pairs(kernel, left, right, normalize), 1e-12);
      CHECK(gram(kernel, left, right, normalize, 3) == values);
      const Vector own_values = gram(kernel, left, left, normalize, 1);
      check_close(own_values, gram_by_pairs(kernel, left, left, normalize), 1e-12);
      const Vector lower = gram(kernel, left, left, normalize, 2, true);
      for (std::size_t i = 0; i < left.roots.size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j)
          CHECK(lower[i * left.roots.size() + j] == own_values[i * left.roots.size() + j]);
      }
    }
  }
}

// Nearly all nodes have the same production, and nearly all of their children do. Covers all forms in which
// matches are stored: lists, complements of lists, ranges and whole blocks.
void test_blocks_in_which_most_nodes_match() {
  Random random(3);
  for (const TreeKernelKind kind : kinds) {
    for (int round = 0; round < 30; ++round) {
      const auto word = [&] { return std::string(random.below(6) == 0 ? "y" : "x"); };
      const auto tree = [&] {
        return "(S (A " + word() + ") (B (A " + word() + ")) (B (A " + word() + ")) (C " + word() + "))";
      };
      Trees left;
      Trees right;
      for (int i = 0; i < 12; ++i) left.add(tree());
      for (int i = 0; i < 12; ++i) right.add(tree());
      const TreeKernel kernel{kind, 0.9, 0.9};
      check_close(gram(kernel, left, right, false, 1), gram_by_pairs(kernel, left, right, false), 1e-12);
    }
  }
}

void test_more_columns_than_fit_into_one_block() {
  Random random(4);
  const Trees left = random_forest(random, 5, {3, 3, 3, false});
  Trees right = random_forest(random, 50, {3, 3, 3, false});
  const std::vector<NodeId> first_roots = right.roots;
  for (std::size_t i = 50; i < 5000; ++i) right.roots.push_back(first_roots[random.below(50)]);
  for (const TreeKernelKind kind : kinds) {
    const TreeKernel kernel{kind, 0.4, 0.4};
    const Vector values = gram(kernel, left, right, true, 2);
    std::map<NodeId, std::size_t> first;
    for (std::size_t j = 0; j < 50; ++j) first.try_emplace(first_roots[j], j);
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t j = 0; j < 5000; ++j) {
        CHECK(close(values[i * 5000 + j], values[i * 5000 + first.at(right.roots[j])], 1e-13));
      }
    }
  }
}

// --- Scores -----------------------------------------------------------------------------------------

void check_scores(const TreeKernel& kernel, const Trees& support, const Trees& inputs, std::size_t n_scores,
                  bool prepared, Random& random) {
  const std::size_t count = support.roots.size();
  Vector coefficients(count * n_scores);
  for (double& value : coefficients) value = random.below(2001) / 1000.0 - 1.0;
  const auto all_vectors = numbers<std::int32_t>(count);
  const auto order = nodes_in_order(kernel, support.forest);
  TreeWeights weights(kernel, support.forest, order, support.count(kernel, true), all_vectors, coefficients,
                      n_scores);
  if (prepared) weights.add_up_parents();
  const auto groups = index_groups(weights.index(), groups_in(kernel, inputs.forest, support.forest));
  const TreeCounts counts = inputs.count(kernel, true);
  const Monitor monitor;
  Vector scores(inputs.roots.size() * n_scores, 0.5);  // scores are added to existing values
  add_scores(weights, inputs.forest, groups, counts, {}, 1, monitor, scores);
  const Vector values = gram_by_pairs(kernel, inputs, support, true);
  Vector expected(scores.size(), 0.5);
  for (std::size_t i = 0; i < inputs.roots.size(); ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      for (std::size_t s = 0; s < n_scores; ++s)
        expected[i * n_scores + s] += values[i * count + j] * coefficients[j * n_scores + s];
    }
  }
  check_close(scores, expected, 1e-12);
  Vector scores_by_threads(scores.size(), 0.5);
  add_scores(weights, inputs.forest, groups, counts, {}, 3, monitor, scores_by_threads);
  CHECK(scores_by_threads == scores);
  const std::vector<std::int32_t> last{static_cast<std::int32_t>(inputs.roots.size()) - 1};
  Vector scores_of_last(n_scores, 0.5);
  add_scores(weights, inputs.forest, groups, counts, last, 1, monitor, scores_of_last);
  for (std::size_t s = 0; s < n_scores; ++s) CHECK(scores_of_last[s] == scores[scores.size() - n_scores + s]);
}

void test_scores_equal_sums_of_kernels() {
  Random random(5);
  for (const TreeKernelKind kind : kinds) {
    for (int round = 0; round < 20; ++round) {
      const TreeKernel kernel{kind, 0.1 + 0.05 * round, 0.4};
      const Trees support = random_forest(random, 1 + random.below(30), {4, 3, 3, round % 2 == 0});
      // The inputs have a label that the support trees lack.
      const Trees inputs = random_forest(random, 1 + random.below(90), {4, 3, 4, round % 2 == 0});
      for (const std::size_t scores : {1UL, 3UL})
        check_scores(kernel, support, inputs, scores, round % 4 < 2, random);
    }
  }
}

// There are many nodes and few different productions. Covers first children that many or few nodes share, and
// nodes that match although their parents do not match.
void test_scores_of_large_blocks() {
  Random random(8);
  const auto word = [&](std::uint32_t words) {
    return std::string(1, static_cast<char>('a' + random.below(words)));
  };
  const auto tree = [&](std::uint32_t words) {
    std::string text = "(S (A (D " + word(words) + ") (D " + word(2) + ")) (B (A " + word(3) + ")) (B (A " +
                       word(words) + ")) (C " + (random.below(9) == 0 ? "y" : "x") + "))";
    for (std::uint32_t levels = random.below(4); levels > 0; --levels) text = "(R " + text + ")";
    return random.below(9) == 0 ? "(T " + text + " " + text + ")" : text;
  };
  for (const TreeKernelKind kind : kinds) {
    for (const std::uint32_t words : {2U, 5U, 20U}) {
      Trees support;
      Trees inputs;
      for (int i = 0; i < 150; ++i) support.add(tree(words));
      for (int i = 0; i < 10; ++i) inputs.add(tree(words + 1));
      const TreeKernel kernel{kind, 0.6, 0.5};
      for (const std::size_t scores : {1UL, 2UL, 4UL, 6UL, 9UL})
        for (const bool prepared : {false, true})
          check_scores(kernel, support, inputs, scores, prepared, random);
    }
  }
}

// --- Counts -----------------------------------------------------------------------------------------

void test_counts_of_repeated_nodes() {
  Trees trees;
  trees.add("(A (B x) (B x) x)");
  const TreeKernel words{TreeKernelKind::subset_tree_words, 0.5, 0.5};
  const TreeCounts counts = trees.count(words, false);
  const TreeRow row = counts.row(0);
  CHECK(row.nodes.size() == 3 && std::ranges::is_sorted(row.nodes));
  Vector weights(row.weights.begin(), row.weights.end());
  std::ranges::sort(weights);
  CHECK(weights == (Vector{1.0, 2.0, 3.0}));  // A once, B twice, x three times
  CHECK(trees.count({TreeKernelKind::subset_tree, 0.5, 0.5}, false).row(0).nodes.size() == 2);
}

void test_examples_with_several_trees_or_none() {
  Trees trees;
  trees.add("(A (B x))");
  trees.add("(B x)");
  const TreeKernel kernel{TreeKernelKind::subset_tree, 0.5, 0.5};
  const std::vector<std::int64_t> offsets{0, 0, 1, 4};
  const std::vector<NodeId> roots{-1, trees.roots[0], trees.roots[1], trees.roots[1]};
  const TreeCounts counts =
      TreeCounts::count(kernel, trees.forest, offsets, roots, true, {2, &monitor_without_callback});
  CHECK(counts.size() == 3 && counts.row(0).nodes.empty() && counts.row(1).nodes.empty());
  TreePairs pairs(kernel, trees.forest);
  // Each tree has norm 1: the first tree contributes 1, the second tree, which occurs twice, 2 * 2, and there
  // are 2 * 2 pairs of different trees, one of which contains the other.
  const double norm = std::sqrt((0.5 * 1.5 + 0.5) * 0.5);
  CHECK(close(pairs(counts.row(2), counts.row(2)), 1.0 + 4.0 + 4.0 * 0.5 / norm, 1e-13));
}

void test_normalized_trees_have_norm_one() {
  for (const TreeKernelKind kind : kinds) {
    const TreeKernel kernel{kind, 0.4, 0.4};
    Trees trees;
    trees.add(chain(1020));  // with a table of all pairs
    trees.add(chain(1030));  // with an index
    const TreeCounts counts = trees.count(kernel, true);
    TreePairs pairs(kernel, trees.forest);
    for (std::size_t i = 0; i < 2; ++i) CHECK(close(pairs(counts.row(i), counts.row(i)), 1.0, 1e-9));
  }
}

// Returns a deep tree in which each node on the path has one more child, different from all others. With
// `to_the_right`, this child comes before the next node of the path.
std::string comb(int depth, bool to_the_right) {
  std::string begin, end;
  for (int k = 0; k < depth; ++k) {
    const std::string leaf = "(A b w" + std::to_string(k) + ")";
    begin += to_the_right ? "(S " + leaf + " " : "(S ";
    end.insert(0, to_the_right ? ")" : " " + leaf + ")");
  }
  return begin + "x" + end;
}

// Rows of a deep tree are not all kept at the same time, and its kernel equals the kernel of the mirrored
// tree, whose nodes are visited in the order of their numbers.
void test_deep_trees_keep_few_rows() {
  const TreeKernel kernel{TreeKernelKind::partial_tree, 0.4, 0.4};
  constexpr int depth = 4000;  // all rows would take 128 MB
  double norms[2];
  for (const bool to_the_right : {false, true}) {
    Trees trees;
    trees.add(comb(depth, to_the_right));
    const TreeCounts counts = trees.count(kernel, false);
    const TreeIndex index(kernel, trees.forest, nodes_in_order(kernel, trees.forest));
    const std::vector<std::int32_t> groups =
        index_groups(index, groups_in(kernel, trees.forest, trees.forest));
    TreeRows rows(index, trees.forest, groups);
    struct Ignored {
      struct Node {
        void excess(std::int32_t, std::int32_t, double) {}
      };
      static Node begin(std::size_t, std::int32_t, double) { return {}; }
      static void end(const Node&) {}
    } ignored;
    rows.visit(counts.row(0).nodes, ignored, monitor_without_callback);
    CHECK(rows.rows() < 10);
    norms[to_the_right] = SelfKernel(kernel, trees.forest)(counts.row(0), monitor_without_callback);
  }
  CHECK(close(norms[0], norms[1], 1e-12));
}

// Rows of subtrees that occur twice are kept until the second occurrence, which takes too much memory here.
void test_trees_that_need_too_much_memory_are_refused() {
  const TreeKernel kernel{TreeKernelKind::partial_tree, 0.4, 0.4};
  std::string begin, end;
  for (int k = 0; k < 36'000; ++k) {
    begin += "(S (A b w" + std::to_string(k % 18'000) + ") ";
    end += ")";
  }
  Trees trees;
  trees.add(begin + "x" + end);
  CHECK_THROWS(trees.count(kernel, true), unkernel::NotEnoughMemory);
}

void test_kernels_that_are_not_finite_are_refused() {
  std::string wide = "(A";
  for (int i = 0; i < 3000; ++i) wide += " (B x)";
  Trees trees;
  trees.add(wide + ")");
  CHECK_THROWS(trees.count({TreeKernelKind::subset_tree, 1.0, 1.0}, true), std::invalid_argument);
}

void test_groups_in_a_growing_forest() {
  Random random(7);
  for (const TreeKernelKind kind : kinds) {
    const TreeKernel kernel{kind, 0.4, 0.4};
    const Trees trees = random_forest(random, 20, {3, 3, 3, true});
    Trees growing_trees;
    GrowingGroups growing(kernel, trees.forest, growing_trees.forest);
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < round; ++i) growing_trees.add(random_tree(random, {3, 3, 4, true}));
      growing.update();
      const std::vector<std::int32_t> expected = groups_in(kernel, trees.forest, growing_trees.forest);
      for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(growing.group(static_cast<NodeId>(i)) == expected[i]);
      CHECK(std::ranges::any_of(expected, [](std::int32_t group) { return group >= 0; }) || round < 2 ||
            kind == TreeKernelKind::subtree);
    }
  }
}

void test_the_order_of_selected_nodes() {
  Random random(8);
  for (const TreeKernelKind kind : kinds) {
    const TreeKernel kernel{kind, 0.4, 0.4};
    const Trees trees = random_forest(random, 20, {3, 3, 3, false});
    const TreeCounts counts = trees.count(kernel, false);
    const std::vector<NodeId> all = nodes_in_order(kernel, trees.forest);
    std::vector<NodeId> selected(counts.row(3).nodes.begin(), counts.row(3).nodes.end());
    const std::vector<std::int32_t> row_numbers{3};
    CHECK(nodes_in_order(kernel, trees.forest, selected) ==
          nodes_of(all, trees.forest.size(), counts, row_numbers));
  }
}

void test_a_stopped_monitor_interrupts() {
  Random random(6);
  const Trees trees = random_forest(random, 20, {3, 3, 3, false});
  const TreeKernel kernel{TreeKernelKind::subset_tree, 0.4, 0.4};
  const TreeCounts counts = trees.count(kernel, true);
  const auto groups = groups_in(kernel, trees.forest, trees.forest);
  const auto order = nodes_in_order(kernel, trees.forest);
  const auto all = numbers<std::int32_t>(20);
  GramMatrix sink(20, 20);
  Monitor monitor;
  monitor.stop();
  const GramTask task{trees.forest, groups, counts, all, trees.forest, order, counts, all, false};
  for (const int threads : {1, 3})
    CHECK_THROWS(compute_gram(kernel, task, threads, monitor, sink), Interrupted);
}

}  // namespace

int main() {
  test_pairs_equal_the_recursive_definitions();
  test_matrices_equal_all_pairs();
  test_blocks_in_which_most_nodes_match();
  test_more_columns_than_fit_into_one_block();
  test_scores_equal_sums_of_kernels();
  test_scores_of_large_blocks();
  test_counts_of_repeated_nodes();
  test_examples_with_several_trees_or_none();
  test_normalized_trees_have_norm_one();
  test_kernels_that_are_not_finite_are_refused();
  test_deep_trees_keep_few_rows();
  test_trees_that_need_too_much_memory_are_refused();
  test_groups_in_a_growing_forest();
  test_the_order_of_selected_nodes();
  test_a_stopped_monitor_interrupts();
  return 0;
}
