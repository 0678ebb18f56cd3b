// A model of trees from a file (a small forest of shared nodes, roots, coefficients and a kernel of any
// decay), and the text of a tree: scoring it, and explaining the model and the score, stay inside the arrays.
// One tree at a time gives the same scores as a set of trees.
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "data/owned_arrays.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/engines/trees/fragments.hpp"
#include "unkernel/engines/trees/one_tree.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::kernels;

constexpr std::string_view labels = "SNVdx";

// Children are shared, so that nine nodes may be a tree of hundreds.
std::shared_ptr<Forest> forest_of(FuzzBytes& bytes) {
  OwnedArrays arrays;
  for (const char label : labels) {
    arrays.bytes.push_back(label);
    arrays.ends.push_back(static_cast<std::int64_t>(arrays.bytes.size()));
  }
  const std::size_t count = 1 + bytes.below(9);
  for (std::size_t node = 0; node < count; ++node) {
    arrays.labels.push_back(static_cast<std::int32_t>(bytes.below(labels.size())));
    for (std::size_t left = node == 0 ? 0 : bytes.below(4); left > 0; --left)
      arrays.children.push_back(static_cast<NodeId>(bytes.below(node)));
    arrays.begins.push_back(static_cast<std::int64_t>(arrays.children.size()));
  }
  if (bytes.byte() > 240) bytes.damage_one(arrays.ends, arrays.labels, arrays.begins, arrays.children);
  return std::make_shared<Forest>(arrays.restore());
}

std::shared_ptr<ExampleSet> make_example_set(const TreeKernel& kernel, std::shared_ptr<Forest> forest,
                                             std::vector<NodeId> roots, bool normalize) {
  auto set = std::make_shared<ExampleSet>();
  set->size = roots.size();
  std::vector<std::int64_t> offsets;
  for (std::size_t k = 0; k <= roots.size(); ++k) offsets.push_back(static_cast<std::int64_t>(k));
  const unkernel::Monitor monitor;
  set->trees.push_back(TreeCounts::count(kernel, *forest, offsets, roots, normalize, {1, &monitor}));
  set->order = nodes_in_order(kernel, *forest);
  set->forest = std::move(forest);
  return set;
}

bool same_or_nan(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void explain(const ExampleMachine& machine, const ExampleSet& examples, std::size_t score) {
  const engines::FragmentOptions options{4, 60, score};
  const TreeWeights& weights = machine.tree_weights().front();
  const TreeKernel& kernel = machine.kernel().tree;
  CHECK(engines::heaviest_fragments(kernel, machine.forest(), weights, options).fragments.size() <= 4);
  CHECK(engines::decisive_fragments(kernel, machine.forest(), weights, *examples.forest,
                                    examples.trees[0].row(0), options)
            .fragments.size() <= 4);
}

// Decodes the remaining input as letters and brackets.
std::string tree_text(FuzzBytes& bytes) {
  constexpr std::string_view letters = "(()) SNVdx()(S ";
  std::string text;
  while (!bytes.empty() && text.size() < 80) text.push_back(letters[bytes.below(letters.size())]);
  return text;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (char kernel = 0; kernel < 4; ++kernel) {
    for (char shape = 0; shape < 4; ++shape) {
      std::string seed{kernel, 60, 1, shape, 8};
      for (char node = 0; node < 9; ++node) seed += {static_cast<char>((node + shape) % 5), 2, 0, node};
      seed += {0, 1, 2, 8, 7, 3, 60, 61, 62, 63};
      for (const char letter : {0, 5, 4, 0, 6, 4, 8, 2, 0, 7, 4, 9, 2, 2})
        seed.push_back(letter);  // (S (N d) (V x))
      seeds.push_back(seed);
    }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  const TreeKernel tree{static_cast<TreeKernelKind>(bytes.below(4)), bytes.real(),
                        bytes.flag() ? 0.4 : bytes.real()};
  const bool normalize = bytes.flag();
  const ExampleKernel kernel{tree, {KernelFunction::Type::linear, 1, 1.0, 0.0}, Combination::trees, 1.0};
  try {
    const auto forest = forest_of(bytes);
    const std::size_t scores = 1 + bytes.below(2);
    std::vector<NodeId> roots;
    std::vector<std::int32_t> support_vectors;
    std::vector<double> coefficients;
    for (std::size_t left = bytes.below(4); left > 0; --left) {
      support_vectors.push_back(static_cast<std::int32_t>(roots.size()));
      roots.push_back(static_cast<NodeId>(bytes.below(forest->size() + 1)) - 1);
      for (std::size_t s = 0; s < scores; ++s) coefficients.push_back(bytes.real());
    }
    const auto set = make_example_set(tree, forest, roots, normalize);
    const auto machine =
        std::make_shared<const ExampleMachine>(kernel, set, support_vectors, coefficients, scores);
    const std::string text = tree_text(bytes);
    const unkernel::Monitor monitor;
    const std::vector<double> scores_of_text =
        engines::OneTreeScorer(machine, normalize).score(text, monitor);
    auto forest_of_text = std::make_shared<Forest>();
    std::size_t at = data::skip_blanks(text, 0);
    const NodeId root = data::BracketReader(*forest_of_text, data::WordStyle::apart).read(text, at);
    const auto examples = make_example_set(tree, forest_of_text, {root}, normalize);
    std::vector<double> sums(scores, 0.0);
    machine->add_scores(*examples, {}, 1, Monitor(), sums);
    for (std::size_t s = 0; s < scores; ++s) CHECK(same_or_nan(scores_of_text[s], sums[s]));
    explain(*machine, *examples, bytes.below(scores));
  } catch (const std::invalid_argument&) {
  } catch (const data::BracketError&) {}
  return 0;
}
