#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/engines/trees/fragments.hpp"
#include "unkernel/kernels/trees/tree_scores.hpp"

namespace {

using unkernel::Random;
using unkernel::data::BracketReader;
using unkernel::data::to_brackets;
using unkernel::data::WordStyle;
using unkernel::engines::decisive_fragments;
using unkernel::engines::Fragment;
using unkernel::engines::FragmentList;
using unkernel::engines::FragmentOptions;
using unkernel::engines::heaviest_fragments;
using unkernel::kernels::Forest;
using unkernel::kernels::longest_subsequence;
using unkernel::kernels::NodeId;
using unkernel::kernels::TreeCounts;
using unkernel::kernels::TreeKernel;
using unkernel::kernels::TreeKernelKind;
using unkernel::kernels::TreeRow;
using unkernel::kernels::TreeWeights;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr TreeKernelKind kinds[] = {TreeKernelKind::subtree, TreeKernelKind::subset_tree,
                                    TreeKernelKind::subset_tree_words, TreeKernelKind::partial_tree};

// --- Slow twin: list every fragment of every node ---------------------------------------------------

struct Occurrence {
  double size = 0.0;    // the fragment's weight in the kernel, such as lambda^productions
  double number = 0.0;  // e(tau, node): weighted number of occurrences at a node
};
// Fragments in the notation of the reference twins: labels, and brackets around nodes with children.
using Fragments = std::map<std::string, Occurrence>;

using Choices = std::vector<Fragments>;  // one for each child

// Returns all combinations of one choice per child, with products of sizes and numbers.
Fragments products(const std::string& label, const Choices& choices, double size, double number) {
  Fragments result{{"(" + label, {size, number}}};
  for (const Fragments& choice : choices) {
    Fragments extended;
    for (const auto& [start, left] : result) {
      for (const auto& [text, right] : choice) {
        extended[start + " " + text] = {left.size * right.size, left.number * right.number};
      }
    }
    result = std::move(extended);
  }
  Fragments closed;
  for (const auto& [text, counted] : result) closed[text + ")"] = counted;
  return closed;
}

Fragments subset_trees(const TreeKernel& kernel, const Forest& forest, NodeId node) {
  Choices choices;
  for (const NodeId child : forest.children(node)) {
    choices.push_back(forest.is_leaf(child) ? Fragments{} : subset_trees(kernel, forest, child));
    choices.back()[std::string(forest.label_name(child))] = {1.0, 1.0};
  }
  return products(std::string(forest.label_name(node)), choices, kernel.decay, 1.0);
}

Fragments partial_trees(const TreeKernel& kernel, const Forest& forest, NodeId node) {
  const auto children = forest.children(node);
  const std::string label(forest.label_name(node));
  Choices child_fragments;
  for (const NodeId child : children) child_fragments.push_back(partial_trees(kernel, forest, child));
  Fragments result{{label, {kernel.width_decay * kernel.decay * kernel.decay, 1.0}}};
  for (std::uint32_t chosen_children = 1; chosen_children < (1U << children.size()); ++chosen_children) {
    Choices choices;
    int gaps = -1;
    std::size_t last = 0;
    for (std::size_t i = 0; i < children.size(); ++i) {
      if ((chosen_children >> i & 1U) == 0) continue;
      gaps = choices.empty() ? 0 : gaps + static_cast<int>(i - last) - 1;
      last = i;
      choices.push_back(child_fragments[i]);
    }
    if (choices.size() > longest_subsequence) continue;
    for (const auto& [text, counted] :
         products(label, choices, kernel.width_decay, std::pow(kernel.decay, gaps))) {
      result[text].size = counted.size;
      result[text].number += counted.number;
    }
  }
  return result;
}

Fragments fragments_of(const TreeKernel& kernel, const Forest& forest, NodeId node) {
  if (kernel.kind == TreeKernelKind::partial_tree) return partial_trees(kernel, forest, node);
  if (forest.is_leaf(node)) return {{std::string(forest.label_name(node)), {kernel.decay, 1.0}}};
  if (kernel.kind != TreeKernelKind::subtree) return subset_trees(kernel, forest, node);
  return {{to_brackets(forest, node, false),
           {unkernel::kernels::subtree_constants(kernel, forest)[static_cast<std::size_t>(node)], 1.0}}};
}

// --- Models -----------------------------------------------------------------------------------------

struct Trees {
  Forest forest;
  std::vector<NodeId> roots;

  void add(std::string_view text) {
    std::size_t at = 0;
    roots.push_back(BracketReader(forest, WordStyle::apart).read(text, at));
  }
  TreeCounts count(const TreeKernel& kernel, bool normalize) const {
    std::vector<std::int64_t> offsets(roots.size() + 1);
    std::iota(offsets.begin(), offsets.end(), 0);
    const unkernel::Monitor monitor;
    return TreeCounts::count(kernel, forest, offsets, roots, normalize, {1, &monitor});
  }
};

// Weighs all trees, with coefficients for one or more scores.
TreeWeights weigh(const TreeKernel& kernel, const Trees& trees, const std::vector<double>& coefficients,
                  std::size_t scores, bool normalize) {
  std::vector<std::int32_t> all_trees(trees.roots.size());
  std::iota(all_trees.begin(), all_trees.end(), 0);
  const auto order = unkernel::kernels::nodes_in_order(kernel, trees.forest);
  return TreeWeights(kernel, trees.forest, order, trees.count(kernel, normalize), all_trees, coefficients,
                     scores);
}

// Returns W, the weights of all fragments.
std::map<std::string, double> slow_weights(const TreeKernel& kernel, const Trees& trees,
                                           const TreeWeights& weights, std::size_t score) {
  std::map<std::string, double> sums;
  for (std::size_t i = 0; i < weights.index().size(); ++i) {
    for (const auto& [text, counted] : fragments_of(kernel, trees.forest, weights.index().node(i))) {
      sums[text] += weights.node_weights(i)[score] * counted.size * counted.number;
    }
  }
  return sums;
}

// Returns n, the numbers of occurrences of all fragments.
std::map<std::string, double> slow_occurrences(const TreeKernel& kernel, const Forest& forest,
                                               const TreeRow& row) {
  std::map<std::string, double> sums;
  for (std::size_t i = 0; i < row.nodes.size(); ++i) {
    for (const auto& [text, counted] : fragments_of(kernel, forest, row.nodes[i]))
      sums[text] += row.weights[i] * counted.number;
  }
  return sums;
}

// Converts `(NN ...)` to the notation of the slow twin.
std::string to_twin_notation(const std::string& text) {
  static const std::regex unexpanded(R"(\(([^ ()]*) \.\.\.\))");
  return std::regex_replace(text, unexpanded, "$1");
}

void check_listing(const FragmentList& list, std::size_t top, const std::map<std::string, double>& expected,
                   bool decision) {
  CHECK(list.complete);
  std::vector<double> magnitudes;
  for (const auto& [text, value] : expected) {
    if (std::abs(value) > 1e-9) magnitudes.push_back(std::abs(value));
  }
  std::ranges::sort(magnitudes, std::greater<>());
  CHECK(list.fragments.size() <= top && list.fragments.size() >= std::min(top, magnitudes.size()));
  std::set<std::string> listed;
  for (std::size_t i = 0; i < list.fragments.size(); ++i) {
    const Fragment& fragment = list.fragments[i];
    const double value = decision ? fragment.contribution : fragment.weight;
    const auto match = expected.find(to_twin_notation(fragment.text));
    CHECK(match != expected.end() && listed.insert(match->first).second);
    CHECK(close(value, match->second, 1e-10));
    if (i < magnitudes.size()) CHECK(close(std::abs(value), magnitudes[i], 1e-10));
    CHECK(i == 0 || std::abs(value) <= std::abs(decision ? list.fragments[i - 1].contribution
                                                         : list.fragments[i - 1].weight));
  }
}

void check_model(const TreeKernel& kernel, const Trees& trees, const TreeWeights& weights,
                 std::size_t score) {
  const auto expected = slow_weights(kernel, trees, weights, score);
  for (const std::size_t top : {std::size_t{0}, std::size_t{1}, std::size_t{7}, unlimited}) {
    const FragmentList list = heaviest_fragments(kernel, trees.forest, weights, {top, unlimited, score});
    check_listing(list, top, expected, false);
    for (const Fragment& fragment : list.fragments)
      CHECK(fragment.occurrences == 0.0 && fragment.contribution == 0.0);
  }
}

void check_decision(const TreeKernel& kernel, const Trees& trees, const TreeWeights& weights,
                    std::size_t score, const Forest& forest, const TreeRow& row) {
  const auto model = slow_weights(kernel, trees, weights, score);
  const auto tree = slow_occurrences(kernel, forest, row);
  std::map<std::string, double> expected;
  double sum = 0.0;
  for (const auto& [text, occurrences] : tree) {
    const auto match = model.find(text);
    if (match == model.end()) continue;
    sum += expected[text] = occurrences * match->second;
  }
  for (const std::size_t top : {std::size_t{0}, std::size_t{1}, std::size_t{5}, unlimited}) {
    const FragmentList list =
        decisive_fragments(kernel, trees.forest, weights, forest, row, {top, unlimited, score});
    CHECK(close(list.score, sum, 1e-10));
    check_listing(list, top, expected, true);
    double total = 0.0;
    for (const Fragment& fragment : list.fragments) {
      CHECK(close(fragment.occurrences, tree.at(to_twin_notation(fragment.text)), 1e-10));
      CHECK(close(fragment.weight, model.at(to_twin_notation(fragment.text)), 1e-10));
      total += fragment.contribution;
    }
    if (top == unlimited) CHECK(close(total, list.score, 1e-10));
  }
}

// --- Random trees -----------------------------------------------------------------------------------

// Makes a tree with the labels A, B, .. and the words a, b, ..; with `words_like_labels`, some words are
// spelled like labels.
std::string random_tree(Random& random, int depth, std::uint32_t max_width, bool words_like_labels) {
  std::string text = "(";
  text += static_cast<char>('A' + random.below(3));
  const std::uint32_t width = 1 + random.below(max_width);
  for (std::uint32_t i = 0; i < width; ++i) {
    text += ' ';
    if (depth > 1 && random.below(3) > 0) {
      text += random_tree(random, depth - 1, max_width, words_like_labels);
    } else {
      text += static_cast<char>((words_like_labels && random.below(2) == 0 ? 'A' : 'a') +
                                static_cast<int>(random.below(3)));
    }
  }
  return text + ")";
}

void test_fragments_of_random_forests() {
  Random random(7);
  for (const TreeKernelKind kind : kinds) {
    for (int round = 0; round < 24; ++round) {
      const double decays[] = {0.4, 0.9, 1.0, 1.5};
      const TreeKernel kernel{kind, decays[round % 4], round % 3 == 0 ? 1.2 : 0.5};
      const bool words_like_labels = round % 2 == 1 && kind != TreeKernelKind::subtree;
      const std::size_t scores = round % 5 == 0 ? 2 : 1;
      const std::uint32_t max_width = kind == TreeKernelKind::partial_tree ? 2 : 3;
      Trees trees;
      Trees new_trees;
      for (int i = 0; i < 5; ++i) trees.add(random_tree(random, 3, max_width, words_like_labels));
      for (int i = 0; i < 3; ++i) new_trees.add(random_tree(random, 3, max_width, words_like_labels));
      new_trees.add("(A (Unheard of) b)");
      std::vector<double> coefficients(trees.roots.size() * scores);
      // Few distinct values, so that there are ties and sums of 0.
      for (double& coefficient : coefficients) coefficient = static_cast<double>(random.below(5)) - 2.0;
      const bool normalize = round % 2 == 0;
      const TreeWeights weights = weigh(kernel, trees, coefficients, scores, normalize);
      check_model(kernel, trees, weights, scores - 1);
      const TreeCounts own_counts = trees.count(kernel, normalize);
      const TreeCounts counts = new_trees.count(kernel, normalize);
      check_decision(kernel, trees, weights, scores - 1, trees.forest, own_counts.row(0));
      for (std::size_t i = 0; i < counts.size(); ++i)
        check_decision(kernel, trees, weights, scores - 1, new_trees.forest, counts.row(i));
    }
  }
}

// Covers fragments with gaps between children, fragments that occur in several ways, and the limit of five
// children per node.
void test_partial_trees_with_gaps() {
  for (const double decay : {0.4, 1.0, 1.3}) {
    const TreeKernel kernel{TreeKernelKind::partial_tree, decay, 0.7};
    Trees trees;
    trees.add("(A (B b) (B c) (B b) a (B d) a b)");
    trees.add("(A (B b) (C c) (B b) (B (B b) b) a)");
    const TreeWeights weights = weigh(kernel, trees, {1.0, -0.7}, 1, true);
    check_model(kernel, trees, weights, 0);
    const TreeCounts counts = trees.count(kernel, false);
    for (std::size_t i = 0; i < 2; ++i)
      check_decision(kernel, trees, weights, 0, trees.forest, counts.row(i));
  }
}

// A hundred equal children have 75 million subsequences of five, which are summed, not listed.
void test_equal_children_are_summed_not_listed() {
  std::string text = "(A";
  for (int i = 0; i < 100; ++i) text += " b";
  Trees trees;
  trees.add(text + ")");
  const TreeKernel kernel{TreeKernelKind::partial_tree, 1.0, 1.0};
  const TreeWeights weights = weigh(kernel, trees, {1.0}, 1, false);
  const FragmentList list = heaviest_fragments(kernel, trees.forest, weights, {unlimited, unlimited, 0});
  CHECK(list.complete && list.fragments.size() == 7);
  CHECK(list.fragments[0].text == "(A b b b b b)" && list.fragments[0].weight == 75287520.0 &&
        list.fragments[0].productions == 6);
}

// --- Examples ---------------------------------------------------------------------------------------

void check_texts(const FragmentList& list, std::vector<std::string> expected) {
  std::vector<std::string> texts;
  for (const Fragment& fragment : list.fragments) texts.push_back(fragment.text);
  std::ranges::sort(texts);
  std::ranges::sort(expected);
  CHECK(texts == expected);
}

void test_texts_of_fragments() {
  Trees trees;
  trees.add("(NP (DT the) (. .))");
  const FragmentOptions all{unlimited, unlimited, 0};
  const auto list = [&](TreeKernelKind kind) {
    const TreeKernel kernel{kind, 0.5, 0.5};
    return heaviest_fragments(kernel, trees.forest, weigh(kernel, trees, {1.0}, 1, false), all);
  };
  check_texts(list(TreeKernelKind::subtree), {"(NP (DT the) (. .))", "(DT the)", "(. .)"});
  const std::vector<std::string> subset_trees{"(NP (DT ...) (. ...))",
                                              "(NP (DT the) (. ...))",
                                              "(NP (DT ...) (. .))",
                                              "(NP (DT the) (. .))",
                                              "(DT the)",
                                              "(. .)"};
  check_texts(list(TreeKernelKind::subset_tree), subset_trees);
  std::vector<std::string> with_words = subset_trees;
  with_words.insert(with_words.end(), {"the", "."});
  const FragmentList words = list(TreeKernelKind::subset_tree_words);
  check_texts(words, with_words);
  for (const Fragment& fragment : words.fragments)
    CHECK(close(fragment.weight, std::pow(0.5, fragment.productions)));
  check_texts(list(TreeKernelKind::partial_tree),
              {"(NP ...)", "(DT ...)", "the", "(. ...)", "(DT the)", "(. .)", "(NP (DT ...))",
               "(NP (DT the))", "(NP (. ...))", "(NP (. .))", "(NP (DT ...) (. ...))",
               "(NP (DT the) (. ...))", "(NP (DT ...) (. .))", "(NP (DT the) (. .))"});
}

void test_searches_that_exceed_the_budget_are_incomplete() {
  Random random(3);
  Trees trees;
  for (int i = 0; i < 5; ++i) trees.add(random_tree(random, 4, 3, false));
  for (const TreeKernelKind kind : {TreeKernelKind::subset_tree, TreeKernelKind::partial_tree}) {
    const TreeKernel kernel{kind, 0.9, 0.9};
    const TreeWeights weights = weigh(kernel, trees, {1.0, -1.0, 1.0, -1.0, 0.5}, 1, true);
    const FragmentList incomplete = heaviest_fragments(kernel, trees.forest, weights, {5, 1, 0});
    CHECK(!incomplete.complete && incomplete.fragments.size() == 5);
    const FragmentList best = heaviest_fragments(kernel, trees.forest, weights, {5, unlimited, 0});
    CHECK(best.complete);
    for (std::size_t i = 0; i < 5; ++i)
      CHECK(std::abs(incomplete.fragments[i].weight) <= std::abs(best.fragments[i].weight));
  }
}

void test_invalid_arguments_are_refused() {
  Trees trees;
  trees.add("(A b)");
  const TreeKernel kernel{TreeKernelKind::subset_tree, 0.4, 0.4};
  const TreeWeights weights = weigh(kernel, trees, {1.0}, 1, false);
  CHECK_THROWS(heaviest_fragments(kernel, trees.forest, weights, {1, 1, 1}), std::out_of_range);
  CHECK_THROWS(heaviest_fragments({TreeKernelKind::subset_tree, 0.0, 0.4}, trees.forest, weights, {1, 1, 0}),
               std::invalid_argument);
  CHECK_THROWS(heaviest_fragments({TreeKernelKind::partial_tree, 0.4, 0.0}, trees.forest, weights, {1, 1, 0}),
               std::invalid_argument);
  const FragmentList empty = decisive_fragments(kernel, trees.forest, weights, trees.forest, {}, {3, 10, 0});
  CHECK(empty.complete && empty.fragments.empty() && empty.score == 0.0);
}

// --- Depth ------------------------------------------------------------------------------------------

// Returns (L0 (L1 (L2 ... word))), beginning with label number `first`.
std::string chain(int first, int depth, const std::string& word) {
  std::string text;
  for (int i = first; i < depth; ++i) text += "(L" + std::to_string(i) + " ";
  return text + word + std::string(static_cast<std::size_t>(depth - first), ')');
}

// Two chains that differ only in their words, with weights only at their roots: only the complete chains
// matter, and the search must be deep enough to find them.
void test_deep_chains_are_found_as_a_whole() {
  constexpr int depth = 10000;
  for (const TreeKernelKind kind : kinds) {
    const TreeKernel kernel{kind, 1.0, 1.0};
    const int levels = kind == TreeKernelKind::partial_tree ? 2000 : depth;
    Trees trees;
    for (const char* word : {"x", "y"}) {
      for (const int first : {0, 1}) trees.add(chain(first, levels, word));
    }
    const TreeWeights weights = weigh(kernel, trees, {1.0, -1.0, -1.0, 1.0}, 1, false);
    const FragmentList heaviest = heaviest_fragments(kernel, trees.forest, weights, {2, 100000, 0});
    CHECK(heaviest.complete && heaviest.fragments.size() == 2);
    const int size = kind == TreeKernelKind::partial_tree ? levels + 1 : levels;
    for (const Fragment& fragment : heaviest.fragments)
      CHECK(std::abs(fragment.weight) == 1.0 && fragment.productions == size);
    const TreeCounts counts = trees.count(kernel, false);
    const FragmentList decisive =
        decisive_fragments(kernel, trees.forest, weights, trees.forest, counts.row(0), {5, 100000, 0});
    CHECK(decisive.complete && decisive.fragments.size() == 1 && close(decisive.score, 1.0));
    CHECK(decisive.fragments[0].text == to_brackets(trees.forest, trees.roots[0], false));
  }
}

// A chain with a single label has very many fragments, and each of them occurs very often.
void test_a_deep_chain_with_one_label() {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "(A ";
  Trees trees;
  trees.add(text + "b" + std::string(10000, ')'));
  for (const TreeKernelKind kind : {TreeKernelKind::subset_tree, TreeKernelKind::partial_tree}) {
    const TreeKernel kernel{kind, 0.4, 0.4};
    const FragmentList list =
        heaviest_fragments(kernel, trees.forest, weigh(kernel, trees, {1.0}, 1, false), {10, 1000, 0});
    CHECK(list.complete && list.fragments.size() == 10);
    CHECK(list.fragments[0].text == (kind == TreeKernelKind::subset_tree ? "(A (A ...))" : "(A ...)"));
    const TreeKernel undecayed{kind, 1.0, 1.0};
    const FragmentList incomplete =
        heaviest_fragments(undecayed, trees.forest, weigh(undecayed, trees, {1.0}, 1, false), {100, 50, 0});
    CHECK(!incomplete.complete && incomplete.fragments.size() >= 50 - 1);
  }
}

}  // namespace

int main() {
  test_fragments_of_random_forests();
  test_partial_trees_with_gaps();
  test_equal_children_are_summed_not_listed();
  test_texts_of_fragments();
  test_searches_that_exceed_the_budget_are_incomplete();
  test_invalid_arguments_are_refused();
  test_deep_chains_are_found_as_a_whole();
  test_a_deep_chain_with_one_label();
  return 0;
}
