// For any bytes, brackets are refused at a position in the text, or give a tree that is equal after being
// written and read again. Lines are refused with a FormatError or give valid examples, which do not depend on
// how the text is split into blocks. Arrays are refused, or give a forest that has exactly these arrays.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "data/owned_arrays.hpp"
#include "fuzz.hpp"
#include "fuzz_input.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/data/trees/forest.hpp"
#include "unkernel/data/trees/tree_lines.hpp"

namespace {

using namespace unkernel::data;
using unkernel::FormatError;
using unkernel::Random;

void check_forest(const Forest& forest) {
  for (std::size_t i = 0; i < forest.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    CHECK(forest.label(node) >= 0 && static_cast<std::size_t>(forest.label(node)) < forest.label_count());
    for (const NodeId child : forest.children(node)) CHECK(child >= 0 && child < node);
    CHECK(forest.find_node(forest.label(node), forest.children(node)) == node);
  }
}

// Copies the last tree into a new forest.
void check_copy(const Forest& forest) {
  if (forest.size() == 0) return;
  const auto root = static_cast<NodeId>(forest.size()) - 1;
  Forest copy;
  const std::vector<NodeId> copied = absorb(copy, forest, std::vector<NodeId>{root, -1});
  CHECK(copied.size() == 2 && copied[1] == -1 && copy.size() <= forest.size());
  CHECK(to_brackets(copy, copied[0], false) == to_brackets(forest, root, false));
}

void check_brackets(std::string_view text) {
  for (const WordStyle style : {WordStyle::apart, WordStyle::joined}) {
    Forest forest;
    BracketReader reader(forest, style);
    try {
      for (std::size_t at = skip_blanks(text, 0); at < text.size(); at = skip_blanks(text, at)) {
        const std::size_t begin = at;
        const NodeId root = reader.read(text, at);
        CHECK(at > begin && at <= text.size());
        for (const bool bracket_leaves : {false, true}) {
          const std::string written = to_brackets(forest, root, bracket_leaves);
          std::size_t end = 0;
          const NodeId reread = BracketReader(forest, WordStyle::apart).read(written, end);
          CHECK(end == written.size());
          // In joined style, a word with a blank in it looks like two words.
          CHECK(reread == root || style == WordStyle::joined);
        }
      }
    } catch (const BracketError& error) { CHECK(error.offset <= text.size()); }
    check_copy(forest);
    check_forest(forest);
  }
}

// Makes labels and numbers of children in preorder from the bytes.
void check_preorder(std::string_view text) {
  std::vector<std::string_view> labels;
  std::vector<std::int64_t> arities;
  for (std::size_t at = 0; at < text.size(); ++at) {
    labels.push_back(text.substr(at, 1));
    arities.push_back(static_cast<unsigned char>(text[at]) % 4 - (text[at] == 'x' ? 1 : 0));
  }
  Forest forest;
  try {
    const NodeId root = add_preorder(forest, labels, arities);
    CHECK(root >= 0 && static_cast<std::size_t>(root) < forest.size());
  } catch (const std::invalid_argument&) {}
  check_forest(forest);
}

// --- Lines ------------------------------------------------------------------------------------------

struct Outcome {
  std::string error;  // empty if the lines were read
  std::vector<std::string> names;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> queries;
  std::vector<std::int64_t> tree_ends;
  std::vector<std::int32_t> tree_channel;
  std::vector<NodeId> roots;
  std::vector<std::int64_t> vector_ends;
  std::vector<std::int32_t> vector_channel;
  std::vector<std::int64_t> entry_ends;
  std::vector<std::int64_t> indices;
  std::vector<double> values;

  bool operator==(const Outcome&) const = default;
};

void check_ends(const std::vector<std::int64_t>& ends, std::size_t lists, std::size_t size) {
  CHECK(ends.size() == lists && std::ranges::is_sorted(ends));
  CHECK(static_cast<std::size_t>(ends.empty() ? 0 : ends.back()) == size);
}

void check_examples(const TreeExamples& examples, const Forest& forest) {
  const std::size_t count = examples.labels.size();
  CHECK(examples.queries.size() == (examples.has_queries ? count : 0));
  check_ends(examples.tree_ends, count, examples.roots.size());
  check_ends(examples.vector_ends, count, examples.vector_channel.size());
  check_ends(examples.entry_ends, examples.vector_channel.size(), examples.indices.size());
  CHECK(examples.tree_channel.size() == examples.roots.size() &&
        examples.values.size() == examples.indices.size());
  for (const NodeId root : examples.roots) CHECK(root >= -1 && root < static_cast<NodeId>(forest.size()));
  for (const double value : examples.values) CHECK(std::isfinite(value));
  std::size_t begin = 0;
  for (const std::int64_t end : examples.entry_ends) {
    const auto entries = std::span(examples.indices).subspan(begin, static_cast<std::size_t>(end) - begin);
    CHECK(std::ranges::adjacent_find(entries, std::greater_equal<>()) == entries.end());
    begin = static_cast<std::size_t>(end);
  }
  check_forest(forest);
}

Outcome read_lines(std::span<const std::string_view> blocks) {
  auto forest = std::make_shared<Forest>();
  TreeLines lines("fuzz", forest);
  Outcome outcome;
  try {
    for (const std::string_view block : blocks) lines.feed(block);
    lines.finish();
  } catch (const FormatError& error) {
    outcome.error = error.what();
    return outcome;
  }
  TreeExamples& examples = lines.examples();
  check_examples(examples, *forest);
  for (const NameTable* names :
       {&examples.label_names, &examples.tree_channels, &examples.vector_channels, &examples.features}) {
    outcome.names.push_back(names->bytes());
  }
  outcome.labels = examples.labels;
  outcome.queries = examples.queries;
  outcome.tree_ends = examples.tree_ends;
  outcome.tree_channel = examples.tree_channel;
  outcome.roots = examples.roots;
  outcome.vector_ends = examples.vector_ends;
  outcome.vector_channel = examples.vector_channel;
  outcome.entry_ends = examples.entry_ends;
  outcome.indices = examples.indices;
  outcome.values = examples.values;
  return outcome;
}

void check_lines(std::string_view text, Random& random) {
  const std::string_view whole[] = {text};
  const Outcome outcome = read_lines(whole);
  if (!fuzz_also(random.next(), 4)) return;
  std::vector<std::string_view> blocks;
  for (std::string_view unread = text; !unread.empty();) {
    const std::size_t size = random.below(static_cast<std::uint32_t>(unread.size() + 1));
    blocks.push_back(unread.substr(0, size));
    unread.remove_prefix(size);
  }
  CHECK(read_lines(blocks) == outcome);
}

// --- Arrays -----------------------------------------------------------------------------------------

// Interprets the bytes as a nearly valid forest: labels, arities and children may be just out of range, and
// one offset may be anything.
void check_arrays(std::string_view text) {
  if (text.size() < 4) return;
  std::size_t at = 0;
  const auto below = [&](std::size_t bound) {
    return static_cast<unsigned char>(text[at++ % text.size()]) % bound;
  };
  OwnedArrays arrays;
  const std::size_t names = below(6);
  for (std::size_t i = 0; i < names; ++i) {
    arrays.bytes.append(below(3), static_cast<char>('a' + below(3)));
    arrays.ends.push_back(static_cast<std::int64_t>(arrays.bytes.size()));
  }
  const std::size_t count = below(12);
  for (std::size_t i = 0; i < count; ++i) {
    arrays.labels.push_back(
        static_cast<std::int32_t>(below(names + (below(16) == 0 ? 1 : 0) + (names == 0 ? 1 : 0))));
    for (std::size_t arity = i == 0 ? 0 : below(3); arity > 0; --arity) {
      arrays.children.push_back(static_cast<NodeId>(below(i + (below(16) == 0 ? 1 : 0))));
    }
    arrays.begins.push_back(static_cast<std::int64_t>(arrays.children.size()));
  }
  if (below(4) == 0) arrays.begins[below(arrays.begins.size())] = static_cast<std::int64_t>(below(12)) - 2;
  if (below(8) == 0 && names > 0) arrays.ends[below(names)] = static_cast<std::int64_t>(below(12)) - 2;
  try {
    const Forest forest = arrays.restore();
    CHECK(OwnedArrays(forest) == arrays);
    check_forest(forest);
  } catch (const std::invalid_argument&) {}
}

}  // namespace

// Returns enough different labels, trees and words to make tables grow.
std::string many_labels() {
  std::string tree = "(S";
  for (int k = 0; k < 300; ++k) tree += " (N" + std::to_string(k) + " (M w" + std::to_string(k) + "))";
  return tree + ")";
}

std::vector<std::string> fuzz_seeds() {
  return {
      many_labels(),
      "(S (NP (D the) (N dog)) (VP barks))\n( (S x))",
      "((A)(B b b b (C)))",
      "1 |BT| (A (B b) New York) |BT| |ET| 1:0.5 7:-3e-2 |BV| 2:1 |EV| # why\n-1 |BT| (C d) |ET|\n",
      "1 qid:3 |BT| (A b) |ET| |BV| |EV|\n+1 qid:-4 |EV|\n",
      "LABEL |BT:grct| (A b c) |ET| |BV:bow| w::n:1.0 x:2 w::n:3 |EV| |BS:s| any |ES|\r\n",
      "1 2:1 3:1e308\n1\n\n# remark\n",
      "1 |BT| (A |ET|",
      "1 |BT| () |ET|",
      "1 |BV:x| w:1e308 w:1e308 |EV|",
      "1 |BX:y| |EX|",
      "1 2147483646:1 2147483647:1",
      "\xff\xfe |BT| (\x80 \xe7\x8a\xac) |ET|\n",
      "(A (B (C (D (E (F f))))))",
      "b``a````",  // in preorder
      "\x05\x02\x10\x18\x00\x08\x10\x00\x00\x08\x10\x18\x00\x08",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FuzzInput input(data, size);
  const std::string_view text = input.text();
  Random random(input.hash());
  if (fuzz_also(random.next(), 2)) check_brackets(text);
  if (fuzz_also(random.next(), 2)) check_lines(text, random);
  if (fuzz_also(random.next(), 4)) check_arrays(text);
  if (fuzz_also(random.next(), 8)) check_preorder(text);
  return 0;
}
