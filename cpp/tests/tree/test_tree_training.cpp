// The duality gaps of learners over trees are correct, and all methods of computing cuts give the same cuts.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "random_trees.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"
#include "unkernel/kernels/trees/tree_pairs.hpp"
#include "unkernel/tree/best_intercept.hpp"
#include "unkernel/tree/exact.hpp"
#include "unkernel/tree/gram_block.hpp"
#include "unkernel/tree/sampled.hpp"

namespace {

using namespace unkernel::tree;
using random_trees::numbers;
using random_trees::random_tree;
using unkernel::Interrupted;
using unkernel::Monitor;
using unkernel::Progress;
using unkernel::Random;
using unkernel::kernels::Combination;
using unkernel::kernels::ExampleKernel;
using unkernel::kernels::ExampleSet;
using unkernel::kernels::Forest;
using unkernel::kernels::KernelFunction;
using unkernel::kernels::NodeId;
using unkernel::kernels::TreeCounts;
using unkernel::kernels::TreeKernelKind;
using unkernel::kernels::TreePairs;
using Vector = std::vector<double>;

constexpr std::size_t large_memory = std::size_t{1} << 26;

ExampleKernel kernel_of(TreeKernelKind kind) {
  return {{kind, 0.4, 0.4}, {KernelFunction::Type::linear, 1, 1.0, 0.0}, Combination::trees, 1.0};
}

// Trees whose label usually depends on one of their children.
struct Problem {
  Problem(std::size_t count, TreeKernelKind kind, std::uint64_t seed) : kernel(kernel_of(kind)) {
    Random random(seed);
    auto forest = std::make_shared<Forest>();
    std::vector<NodeId> roots;
    for (std::size_t i = 0; i < count; ++i) {
      const bool positive = i < 2 ? i == 0 : random.below(2) == 0;
      labelling.labels.push_back(positive ? 1 : -1);
      labelling.costs.push_back(0.5 + 0.25 * random.below(4));
      const bool sign = random.below(6) == 0 ? random.below(2) == 0 : positive;
      const std::string text =
          "(S " + random_tree(random, {3, 3, 3, false}) + (sign ? " (P p)" : " (Q q)") + ")";
      roots.push_back(random_trees::add(*forest, text));
    }
    auto example_set = std::make_shared<ExampleSet>();
    example_set->forest = forest;
    example_set->size = count;
    const unkernel::Monitor no_monitor;
    example_set->trees.push_back(TreeCounts::count(kernel.tree, *forest, numbers<std::int64_t>(count + 1),
                                                   roots, true, {1, &no_monitor}));
    example_set->order = nodes_in_order(kernel.tree, *forest);
    set = example_set;
  }

  Vector gram() const {
    TreePairs pairs(kernel.tree, *set->forest);
    Vector values;
    for (std::size_t i = 0; i < set->size; ++i) {
      for (std::size_t j = 0; j < set->size; ++j)
        values.push_back(pairs(set->trees[0].row(i), set->trees[0].row(j)));
    }
    return values;
  }

  ExampleKernel kernel;
  std::shared_ptr<const ExampleSet> set;
  Labelling labelling;
};

// --- The intercept ---------------------------------------------------------------------------------------

void test_the_best_intercept_is_at_a_kink() {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = 1 + random.below(12);
    Vector scores(n), costs(n);
    std::vector<signed char> labels(n);
    for (std::size_t i = 0; i < n; ++i) {
      scores[i] = (static_cast<double>(random.below(17)) - 8.0) / 4.0;
      costs[i] = random.below(4);
      labels[i] = random.below(2) == 0 ? 1 : -1;
    }
    const BestIntercept best = best_intercept(scores, labels, costs);
    CHECK(close(best.loss, hinge_loss(scores, labels, costs, best.intercept), 1e-12));
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(best.loss <= hinge_loss(scores, labels, costs, labels[i] - scores[i]) + 1e-12);
    }
  }
}

// --- The Gram block ---------------------------------------------------------------------------------

void check_block(const GramBlock& block, const Vector& gram, std::size_t n) {
  const auto examples = block.examples();
  for (std::size_t i = 0; i < examples.size(); ++i) {
    CHECK(block.place(examples[i]) == static_cast<std::int32_t>(i));
    for (std::size_t j = 0; j < examples.size(); ++j) {
      const auto value = static_cast<double>(block.values()[i * block.stride() + j]);
      CHECK(close(value,
                  gram[static_cast<std::size_t>(examples[i]) * n + static_cast<std::size_t>(examples[j])],
                  1e-6));
    }
  }
}

void test_a_block_holds_the_kernels_of_its_examples() {
  Random random(2);
  constexpr std::size_t n = 150;
  const Problem problem(n, TreeKernelKind::subset_tree, 2);
  const Vector gram = problem.gram();
  const Monitor monitor;
  const LocalExamples examples(problem.kernel, problem.set, 2, monitor);
  GramBlock block(examples, 90, 2);
  for (int round = 0; round < 12; ++round) {
    std::vector<std::int32_t> new_examples;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(n); ++i) {
      if (block.place(i) < 0 && random.below(4) == 0 && block.size() + new_examples.size() < block.capacity())
        new_examples.push_back(i);
    }
    block.add(new_examples);
    check_block(block, gram, n);
    std::vector<bool> is_kept(n);
    for (std::size_t i = 0; i < n; ++i) is_kept[i] = random.below(3) > 0;
    block.keep(is_kept);
    check_block(block, gram, n);
    for (std::size_t i = 0; i < n; ++i) CHECK(is_kept[i] || block.place(static_cast<std::int32_t>(i)) < 0);
  }
}

// --- Exact ------------------------------------------------------------------------------------------

struct Values {
  double primal;
  double dual;
};

// Computes values by plain sums over the whole kernel matrix.
Values values_of(const Problem& problem, const Vector& gram, const Trained& trained) {
  const std::size_t n = problem.set->size;
  double squared = 0.0;
  double mass = 0.0;
  double loss = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    double score = 0.0;
    for (std::size_t j = 0; j < n; ++j) score += gram[i * n + j] * trained.coefficients[j];
    squared += trained.coefficients[i] * score;
    mass += std::abs(trained.coefficients[i]);
    loss += problem.labelling.costs[i] *
            std::max(0.0, 1.0 - problem.labelling.labels[i] * (score + trained.intercept));
  }
  return {0.5 * squared + loss, mass - 0.5 * squared};
}

Trained train(const Problem& problem, bool fit_intercept, std::size_t memory, int threads) {
  Monitor monitor;
  const LocalExamples examples(problem.kernel, problem.set, threads, monitor);
  return train_exact(examples, std::span(&problem.labelling, 1), {1e-5, 1000, fit_intercept, memory, threads},
                     monitor)
      .front();
}

void test_the_gap_is_certified() {
  for (const TreeKernelKind kind : {TreeKernelKind::subtree, TreeKernelKind::subset_tree,
                                    TreeKernelKind::subset_tree_words, TreeKernelKind::partial_tree}) {
    const Problem problem(160, kind, 3);
    const Vector gram = problem.gram();
    for (const bool fit_intercept : {true, false}) {
      const Trained trained = train(problem, fit_intercept, large_memory, 1);
      CHECK(trained.converged);
      const auto [primal, dual] = values_of(problem, gram, trained);
      CHECK(close(trained.objective, primal, 1e-9) && close(trained.dual_objective, dual, 1e-9));
      CHECK(primal - dual <= 1e-5 * primal && primal - dual >= -1e-9 * primal);
      double sum = 0.0;
      for (std::size_t i = 0; i < 160; ++i) {
        const double alpha = trained.coefficients[i] * problem.labelling.labels[i];
        CHECK(alpha >= 0.0 && alpha <= problem.labelling.costs[i]);
        sum += trained.coefficients[i];
      }
      CHECK(fit_intercept ? std::abs(sum) < 1e-9 : trained.intercept == 0.0);
      const Trained threaded = train(problem, fit_intercept, large_memory, 3);
      CHECK(threaded.coefficients == trained.coefficients && threaded.intercept == trained.intercept);
      const Trained small = train(problem, fit_intercept, 0, 1);  // enough for 64 examples
      CHECK(small.converged && close(small.objective, trained.objective, 2e-5));
    }
  }
}

Trained train_by_cuts(const Problem& problem, CutMethod method, int threads, const SampledOptions& options,
                      Monitor& monitor) {
  const auto cuts = make_cuts(method, problem.kernel, problem.set, threads, monitor);
  return train_sampled(*cuts, problem.labelling, options, Progress{}, monitor);
}

void test_a_stopped_monitor_interrupts_training() {
  const Problem problem(100, TreeKernelKind::partial_tree, 4);
  Monitor monitor;
  monitor.stop();
  const ExactOptions exact{1e-12, 1000, true, large_memory, 2};
  const LocalExamples examples(problem.kernel, problem.set, 2, monitor);
  CHECK_THROWS(train_exact(examples, std::span(&problem.labelling, 1), exact, monitor), Interrupted);
  const SampledOptions sampled{1.0, 1e-9, 1000, 100, true, 1};
  CHECK_THROWS(train_by_cuts(problem, CutMethod::forest, 2, sampled, monitor), Interrupted);
}

// --- Sampled ----------------------------------------------------------------------------------------

void test_every_method_makes_the_same_cuts() {
  constexpr std::array methods = {CutMethod::forest, CutMethod::pairs, CutMethod::dag_each,
                                  CutMethod::dag_together, CutMethod::kernels};
  for (const TreeKernelKind kind : {TreeKernelKind::subset_tree, TreeKernelKind::partial_tree}) {
    const Problem problem(120, kind, 5);
    std::vector<Trained> trained;
    for (const CutMethod method : methods) {
      for (const int threads : {1, 3}) {
        Monitor monitor;
        trained.push_back(train_by_cuts(problem, method, threads, {0.5, 1e-3, 10, 50, true, 7}, monitor));
        const Trained& first = trained.front();
        const Trained& last = trained.back();
        CHECK(last.rounds == first.rounds && close(last.objective, first.objective, 1e-9) &&
              close(last.intercept, first.intercept, 1e-9));
        for (std::size_t i = 0; i < 120; ++i) CHECK(close(last.coefficients[i], first.coefficients[i], 1e-9));
        if (threads == 3) CHECK(last.coefficients == trained[trained.size() - 2].coefficients);
      }
    }
    CHECK(std::ranges::count_if(trained.front().coefficients, [](double value) { return value != 0.0; }) >
          20);
  }
}

}  // namespace

int main() {
  test_the_best_intercept_is_at_a_kink();
  test_a_block_holds_the_kernels_of_its_examples();
  test_the_gap_is_certified();
  test_a_stopped_monitor_interrupts_training();
  test_every_method_makes_the_same_cuts();
  return 0;
}
