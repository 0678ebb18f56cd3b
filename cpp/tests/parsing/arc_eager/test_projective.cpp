// Lifting makes any tree projective and marks lifted words. Restoring gives a tree without marks. It is the
// original tree if at most one word was lifted and all labels are distinct.
#include "unkernel/parsing/arc_eager/projective.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "check.hpp"
#include "parsing/arc_eager/random_heads.hpp"
#include "unkernel/parsing/arc_eager/lifting.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::parsing;

LabelSet plain_labels(std::size_t count) {
  LabelSet labels;
  for (std::size_t k = 0; k < count; ++k) labels.add("l" + std::to_string(k));
  return labels;
}

// Gives each word one of `count` labels; distinct labels if there are enough.
LabelledTree with_labels(const Heads& heads, std::size_t count, Random& random) {
  LabelledTree tree{heads, std::vector<std::int32_t>(heads.size(), no_label)};
  for (std::size_t word = 1; word < heads.size(); ++word) {
    tree.labels[word] = static_cast<std::int32_t>(
        count >= heads.size() ? word : random.below(static_cast<std::uint32_t>(count)));
  }
  return tree;
}

std::size_t check_lifted(const LabelledTree& original, const LabelledTree& tree, const LabelSet& labels) {
  CHECK(is_one_tree(tree.heads) && is_projective(tree.heads));
  std::size_t lifted = 0;
  for (std::size_t word = 1; word < tree.heads.size(); ++word) {
    const Word old_head = original.heads[word];
    const std::int32_t label = tree.labels[word];
    if (tree.heads[word] == old_head) {
      CHECK(label == original.labels[word]);
      continue;
    }
    ++lifted;
    CHECK(tree.heads[word] != no_word && is_below(original.heads, old_head, tree.heads[word]));
    CHECK(labels.plain(label) == original.labels[word]);
    CHECK(labels.head_label(label) == original.labels[static_cast<std::size_t>(old_head)]);
    CHECK(labels.name(label) == std::string(labels.name(labels.plain(label))) + "\u2191" +
                                    std::string(labels.name(labels.head_label(label))));
  }
  return lifted;
}

void check_restored(const LabelledTree& original, const LabelledTree& lifted, const LabelledTree& tree,
                    const LabelSet& labels) {
  CHECK(is_one_tree(tree.heads));
  for (std::size_t word = 1; word < tree.heads.size(); ++word) {
    CHECK(tree.labels[word] == labels.plain(lifted.labels[word]) &&
          tree.labels[word] == original.labels[word]);
    if (lifted.labels[word] == original.labels[word]) CHECK(tree.heads[word] == original.heads[word]);
  }
}

void check_tree(const Heads& heads, std::size_t label_count, Random& random) {
  LabelSet labels = plain_labels(label_count);
  const LabelledTree original = with_labels(heads, label_count, random);
  LabelledTree tree = original;
  const std::size_t lifted = projectivise(tree, labels, unkernel::Monitor());
  CHECK(lifted == check_lifted(original, tree, labels));
  CHECK((lifted == 0) == is_projective(heads));
  const LabelledTree projective = tree;
  deprojectivise(tree, labels, unkernel::Monitor());
  check_restored(original, projective, tree, labels);
  if (lifted <= 1 && label_count >= heads.size()) CHECK(tree.heads == heads);
}

// A parser may put marks anywhere, including labels that did not occur in training.
void check_any_marks(std::size_t words, Random& random) {
  LabelSet labels = plain_labels(3);
  for (std::int32_t label = 0; label < 3; ++label) {
    for (std::int32_t head = 0; head < 3; ++head) labels.add_lifted(label, head);
  }
  LabelledTree tree = with_labels(random_tree(words, random), 3, random);
  for (std::size_t word = 1; word <= words; ++word)
    tree.labels[word] = static_cast<std::int32_t>(random.below(12));
  const LabelledTree marked = tree;
  deprojectivise(tree, labels, unkernel::Monitor());
  CHECK(is_one_tree(tree.heads));
  for (std::size_t word = 1; word <= words; ++word) {
    CHECK(tree.labels[word] == labels.plain(marked.labels[word]));
    if (marked.labels[word] < 3) CHECK(tree.heads[word] == marked.heads[word]);
  }
}

// The arc from word 1 to word 4 crosses the root, which is word 2. The mark of word 4 leads back to word 1.
void test_lifting_and_restoring_one_word() {
  LabelSet labels;
  for (const char* name : {"root", "nsubj", "obj", "acl"}) labels.add(name);
  LabelledTree tree{{0, 2, 0, 2, 1}, {no_label, 1, 0, 2, 3}};
  CHECK(projectivise(tree, labels, unkernel::Monitor()) == 1);
  CHECK((tree.heads == Heads{0, 2, 0, 2, 2}));
  CHECK(labels.name(tree.labels[4]) == "acl\u2191nsubj");
  deprojectivise(tree, labels, unkernel::Monitor());
  CHECK((tree.heads == Heads{0, 2, 0, 2, 1} && tree.labels[4] == 3));
}

// With two roots, a word whose arc crosses a root becomes a root itself.
void test_lifting_with_two_roots() {
  LabelSet labels = plain_labels(3);
  LabelledTree tree{{0, 0, 0, 1}, {no_label, 0, 1, 2}};
  CHECK(projectivise(tree, labels, unkernel::Monitor()) == 1 && (tree.heads == Heads{0, 0, 0, 0}));
  deprojectivise(tree, labels, unkernel::Monitor());
  CHECK((tree.heads == Heads{0, 0, 0, 1}));
}

// A label of the treebank that looks like a mark is not a mark.
void test_labels_that_look_like_marks() {
  LabelSet labels;
  const std::int32_t like_a_mark = labels.add("a\u2191b");
  const std::int32_t a = labels.add("a"), b = labels.add("b");
  CHECK(labels.head_label(like_a_mark) == no_label && labels.plain(like_a_mark) == like_a_mark);
  const std::int32_t lifted = labels.add_lifted(a, b);
  CHECK(lifted == like_a_mark || (labels.plain(lifted) == a && labels.head_label(lifted) == b));
}

// The slow twin: after every lift, searches all arcs for the shortest one that crosses another.
Heads lift_one_by_one(Heads heads) {
  for (;;) {
    Word shortest = no_word;
    const auto length = [&](Word word) { return std::abs(word - head_of(heads, word)); };
    for (Word word = 1; word < static_cast<Word>(heads.size()); ++word) {
      const Word head = head_of(heads, word);
      if (head == no_word || (shortest != no_word && length(word) >= length(shortest))) continue;
      for (Word between = std::min(word, head) + 1; between < std::max(word, head); ++between) {
        if (!is_below(heads, between, head)) shortest = word;
      }
    }
    if (shortest == no_word) return heads;
    heads[static_cast<std::size_t>(shortest)] = head_of(heads, head_of(heads, shortest));
  }
}

void test_lifting_equals_the_slow_twin(Random& random) {
  for (int trial = 0; trial < 2'000; ++trial) {
    Heads heads = random_tree(1 + random.below(24), random);
    const auto any_word = [&] { return 1 + random.below(static_cast<std::uint32_t>(heads.size() - 1)); };
    for (std::uint32_t k = random.below(3); k > 0; --k) heads[any_word()] = no_word;  // forests, too
    CHECK(lifted_heads(heads, unkernel::Monitor()) == lift_one_by_one(heads));
  }
}

}  // namespace

int main() {
  Random random(7);
  test_lifting_and_restoring_one_word();
  test_lifting_with_two_roots();
  test_labels_that_look_like_marks();
  test_lifting_equals_the_slow_twin(random);
  CHECK(is_projective(lifted_heads(random_tree(4'000, random), unkernel::Monitor())));
  for (std::size_t words = 1; words <= 5; ++words) {
    for (const Heads& heads : all_trees(words)) {
      check_tree(heads, words + 1, random);
      check_tree(heads, 2, random);
    }
  }
  for (int trial = 0; trial < 3'000; ++trial) {
    const std::size_t words = 1 + random.below(14);
    check_tree(random_tree(words, random), trial % 2 == 0 ? words + 1 : 3, random);
    check_any_marks(words, random);
  }
  return 0;
}
