// A forest stores every subtree once, whatever it is built from.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "data/owned_arrays.hpp"
#include "random_trees.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/data/text/name_table.hpp"
#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/data/trees/forest.hpp"
#include "unkernel/data/trees/forest_copy.hpp"
#include "unkernel/data/trees/tree_lines.hpp"

namespace {

using namespace unkernel::data;
using random_trees::add;
using random_trees::chain;
using random_trees::random_tree;
using unkernel::FormatError;
using unkernel::Random;
using Ids = std::vector<std::int32_t>;

// --- Names ------------------------------------------------------------------------------------------

void test_names_get_consecutive_numbers() {
  NameTable names;
  std::map<std::string, std::int32_t> numbers;
  Random random(1);
  for (int i = 0; i < 50'000; ++i) {
    // Short names, names with a multiple of eight bytes, and names that differ in a zero byte.
    std::string name(random.below(20), static_cast<char>(random.below(3)));
    if (random.below(2) == 0) name += std::to_string(random.below(20'000));
    const bool is_new = !numbers.contains(name);
    CHECK((names.find(name) < 0) == is_new);
    const std::int32_t number = names.add(name);
    CHECK(number == numbers.try_emplace(name, static_cast<std::int32_t>(numbers.size())).first->second);
    CHECK(names.size() == numbers.size());
  }
  for (const auto& [name, number] : numbers) CHECK(names.name(number) == name && names.find(name) == number);
  CHECK(names.find("nobody") < 0);
  CHECK(names.memory() >= names.bytes().size());
}

void test_empty_and_very_long_names() {
  NameTable names;
  const std::string large(3'000'000, 'x');
  CHECK(names.add(large) == 0 && names.add("") == 1 && names.add(std::string_view("\0", 1)) == 2);
  CHECK(names.find(large) == 0 && names.find("") == 1 && names.name(1).empty() && names.name(2).size() == 1);
}

// --- Nodes ------------------------------------------------------------------------------------------

void test_equal_subtrees_are_one_node() {
  Forest forest;
  std::map<std::pair<std::int32_t, Ids>, NodeId> nodes;
  std::map<std::pair<std::int32_t, Ids>, std::int32_t> productions;
  Random random(2);
  for (int i = 0; i < 40'000; ++i) {
    const std::int32_t label = forest.add_label(std::to_string(random.below(40)));
    Ids children;
    if (forest.size() > 0) {
      for (std::uint32_t k = random.below(4); k > 0; --k) {
        children.push_back(static_cast<NodeId>(
            random.below(static_cast<std::uint32_t>(std::min<std::size_t>(forest.size(), 60)))));
      }
    }
    const auto existing = nodes.find({label, children});
    CHECK(forest.find_node(label, children) == (existing == nodes.end() ? -1 : existing->second));
    const std::size_t before = forest.size();
    const NodeId node = forest.add_node(label, children);
    CHECK(node == (existing == nodes.end() ? static_cast<NodeId>(before) : existing->second));
    nodes[{label, children}] = node;
    CHECK(forest.label(node) == label && std::ranges::equal(forest.children(node), children));
    CHECK(forest.is_leaf(node) == children.empty());
    if (children.empty()) {
      CHECK(forest.production(node) == -1);
      continue;
    }
    Ids labels;
    for (const NodeId child : children) labels.push_back(forest.label(child));
    const auto number = static_cast<std::int32_t>(productions.size());
    CHECK(forest.production(node) == productions.try_emplace({label, labels}, number).first->second);
    CHECK(forest.find_production(label, labels) == forest.production(node));
  }
  CHECK(forest.size() == nodes.size() && forest.production_count() == productions.size());
  CHECK(forest.find_production(forest.find_label("0"), Ids(9, 0)) == -1);
}

// Regular nodes, such as new words below new labels, must not fill consecutive slots of the hash tables:
// lookups would take minutes.
void test_regular_nodes_do_not_fill_consecutive_slots() {
  Forest forest;
  constexpr int pairs = 200'000;
  for (int i = 0; i < pairs; ++i) {
    const std::int32_t label = forest.add_label("L" + std::to_string(i));
    const NodeId leaf = forest.add_node(forest.add_label("w" + std::to_string(i)), {});
    forest.add_node(label, Ids{leaf});
    forest.add_node(label, Ids{leaf, leaf});
  }
  CHECK(forest.size() == 3 * pairs && forest.production_count() == 2 * pairs);
}

// --- Text -------------------------------------------------------------------------------------------

void test_written_trees_are_read_back_equal() {
  Random random(3);
  Forest forest;
  Forest joined;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random_tree(random, {4, 4, 3, i % 2 == 0});
    const NodeId root = add(forest, text);
    CHECK(to_brackets(forest, root, false) == text);
    const std::string bracketed = to_brackets(forest, root, true);
    CHECK(add(forest, bracketed) == root);
    std::size_t at = 0;
    const NodeId other = BracketReader(joined, WordStyle::joined).read(bracketed, at);
    CHECK(at == bracketed.size() && to_brackets(joined, other, true) == bracketed);
  }
}

void test_word_styles() {
  const auto read = [](std::string_view text, WordStyle style) {
    Forest forest;
    std::size_t at = 0;
    return to_brackets(forest, BracketReader(forest, style).read(text, at), true);
  };
  CHECK(read("(NN New \t York)", WordStyle::apart) == "(NN (New)(York))");
  CHECK(read("(NN New \t York)", WordStyle::joined) == "(NN (New York))");
  CHECK(read("(A b (C d))", WordStyle::joined) == "(A (b)(C (d)))");
  CHECK(read("(A (C d) New York)", WordStyle::joined) == "(A (C (d))(New)(York))");
  CHECK(read("(A b c d (C e f))", WordStyle::joined) == "(A (b)(c)(d)(C (e f)))");
}

void check_refused(std::string_view text, std::size_t offset) {
  for (const WordStyle style : {WordStyle::apart, WordStyle::joined}) {
    Forest forest;
    std::size_t at = 0;
    try {
      BracketReader(forest, style).read(text, at);
      CHECK(false);
    } catch (const BracketError& error) { CHECK(error.offset == offset); }
  }
}

void test_invalid_brackets_are_refused() {
  check_refused("", 0);
  check_refused("a", 0);
  check_refused(" (A b)", 0);  // the caller skips blanks
  check_refused(")", 0);
  check_refused("(", 0);
  check_refused("(A", 0);
  check_refused("()", 1);
  check_refused("(A ())", 4);
  check_refused("(A (B c) (D e)", 0);
  check_refused("(A (B c) (D (E", 12);
}

void test_a_reader_can_be_used_after_an_error() {
  Forest forest;
  BracketReader reader(forest, WordStyle::joined);
  std::size_t at = 0;
  CHECK_THROWS(reader.read("(A (B c c c (", at), BracketError);
  at = 0;
  CHECK(to_brackets(forest, reader.read("(A b)", at), false) == "(A b)");
}

void test_deep_and_wide_trees() {
  Forest forest;
  const std::string deep = chain(200'000);
  CHECK(to_brackets(forest, add(forest, deep), false) == deep);
  CHECK(forest.size() == 200'001 && forest.production_count() == 2);
  std::string wide = "(A";
  for (int i = 0; i < 200'000; ++i) wide += " b";
  wide += ")";
  const NodeId root = add(forest, wide);
  CHECK(forest.children(root).size() == 200'000 && to_brackets(forest, root, false) == wide);
}

void test_trees_from_preorder() {
  Forest forest;
  const std::vector<std::string_view> labels{"A", "B", "x", "y"};
  CHECK(add_preorder(forest, labels, std::vector<std::int64_t>{2, 1, 0, 0}) == add(forest, "(A (B x) y)"));
  CHECK(add_preorder(forest, labels, std::vector<std::int64_t>{1, 2, 0, 0}) == add(forest, "(A (B x y))"));
  using Arities = std::vector<std::int64_t>;
  for (const Arities& wrong :
       {Arities{2, 1, 0, 1}, Arities{1, 0, 0, 0}, Arities{-1, 0, 0, 0}, Arities{4, 0, 0, 0}, Arities{0}}) {
    CHECK_THROWS(add_preorder(forest, labels, wrong), std::invalid_argument);
  }
  CHECK_THROWS(add_preorder(forest, {}, {}), std::invalid_argument);
}

// --- Copies and arrays ----------------------------------------------------------------------------------

void test_absorb_copies_only_the_given_trees() {
  Random random(4);
  Forest source;
  std::vector<NodeId> roots;
  for (int i = 0; i < 200; ++i) roots.push_back(add(source, random_tree(random, {4, 3, 3, true})));
  roots[7] = -1;
  const std::span<const NodeId> selected = std::span(roots).first(20);
  Forest target;
  add(target, "(Z (A a))");
  const std::vector<NodeId> copies = absorb(target, source, selected);
  Forest expected;
  for (std::size_t i = 0; i < selected.size(); ++i) {
    CHECK((copies[i] < 0) == (selected[i] < 0));
    if (selected[i] < 0) continue;
    CHECK(to_brackets(target, copies[i], true) == to_brackets(source, selected[i], true));
    add(expected, to_brackets(source, selected[i], true));
  }
  CHECK(target.size() <= expected.size() + 3 && target.size() < source.size());
  CHECK(absorb(target, source, selected) == copies);
  CHECK(absorb(source, source, selected) == std::vector<NodeId>(selected.begin(), selected.end()));
}

void test_restored_arrays_give_an_equal_forest() {
  Random random(5);
  Forest forest;
  CHECK(OwnedArrays(OwnedArrays(forest).restore()) == OwnedArrays(forest));
  for (int i = 0; i < 100; ++i) add(forest, random_tree(random, {4, 3, 3, true}));
  const Forest copy = OwnedArrays(forest).restore();
  CHECK(OwnedArrays(copy) == OwnedArrays(forest) && copy.production_count() == forest.production_count());
}

void test_a_node_that_is_its_own_child_is_refused() {
  Forest forest;
  add(forest, "(A b)");
  OwnedArrays arrays(forest);
  CHECK(arrays.children == Ids{0});
  arrays.children[0] = 1;
  CHECK_THROWS(arrays.restore(), std::invalid_argument);
}

template <class T>
void damage(std::vector<T>& values, Random& random) {
  if (values.empty()) return;
  const std::size_t place = random.below(static_cast<std::uint32_t>(values.size()));
  switch (random.below(5)) {
    case 0: values.erase(values.begin() + static_cast<std::ptrdiff_t>(place)); return;
    case 1: values[place] = std::numeric_limits<T>::max(); return;
    case 2: values[place] = std::numeric_limits<T>::min(); return;
    case 3: values[place] += static_cast<T>(random.below(5)) - 2; return;
    default: values.push_back(values[place]);
  }
}

// Damaged arrays are rejected, or give a forest with exactly these arrays.
void test_damaged_arrays_are_refused_or_restored_exactly() {
  Random random(6);
  int restored = 0;
  for (int i = 0; i < 20'000; ++i) {
    Forest forest;
    for (int k = 0; k < 3; ++k) add(forest, random_tree(random, {3, 2, 2, true}));
    OwnedArrays arrays(forest);
    switch (random.below(5)) {
      case 0: damage(arrays.ends, random); break;
      case 1: damage(arrays.labels, random); break;
      case 2: damage(arrays.begins, random); break;
      case 3: damage(arrays.children, random); break;
      default: arrays.bytes.pop_back();
    }
    try {
      CHECK(OwnedArrays(arrays.restore()) == arrays);
      ++restored;
    } catch (const std::invalid_argument&) {}
  }
  CHECK(restored > 0 && restored < 10'000);
}

// --- Lines ------------------------------------------------------------------------------------------

void test_lines_of_examples() {
  auto forest = std::make_shared<Forest>();
  TreeLines lines("test", forest);
  for (const char letter : std::string_view(
           "1 qid:4 |BT| (A New York) |BT| |ET| 1:0.5 |BV| 7:1 |EV|\n\n2 qid:5 |BT| (A b) |ET|")) {
    lines.feed({&letter, 1});
  }
  lines.finish();
  const TreeExamples& examples = lines.examples();
  CHECK(examples.labels == (Ids{0, 1}) && examples.queries == (std::vector<std::int64_t>{4, 5}));
  CHECK(examples.tree_ends == (std::vector<std::int64_t>{2, 3}) && examples.tree_channel == (Ids{0, 1, 0}));
  CHECK(examples.roots[1] == -1 && to_brackets(*forest, examples.roots[0], true) == "(A (New York))");
  CHECK(examples.vector_ends == (std::vector<std::int64_t>{2, 2}) &&
        examples.indices == (std::vector<std::int64_t>{1, 7}));
  TreeLines wrong("test", forest);
  try {
    wrong.feed("1 |BT| (A b) |ET|\n1 |BT| (A |ET|\n");
    CHECK(false);
  } catch (const FormatError& error) { CHECK(std::string(error.what()).starts_with("test:2:8")); }
}

}  // namespace

int main() {
  test_names_get_consecutive_numbers();
  test_empty_and_very_long_names();
  test_equal_subtrees_are_one_node();
  test_regular_nodes_do_not_fill_consecutive_slots();
  test_written_trees_are_read_back_equal();
  test_word_styles();
  test_invalid_brackets_are_refused();
  test_a_reader_can_be_used_after_an_error();
  test_deep_and_wide_trees();
  test_trees_from_preorder();
  test_absorb_copies_only_the_given_trees();
  test_restored_arrays_give_an_equal_forest();
  test_a_node_that_is_its_own_child_is_refused();
  test_damaged_arrays_are_refused_or_restored_exactly();
  test_lines_of_examples();
  return 0;
}
