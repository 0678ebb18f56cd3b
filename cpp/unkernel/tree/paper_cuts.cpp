#include "unkernel/tree/paper_cuts.hpp"

#include <algorithm>
#include <utility>

#include "unkernel/base/parallel.hpp"
#include "unkernel/kernels/trees/tree_pairs.hpp"

namespace unkernel::tree {
namespace {

using kernels::ExampleKernel;
using kernels::ExampleMachine;
using kernels::ExampleSet;

constexpr std::int64_t examples_at_once = 16;

// One index per cut; for scores, one index of all cuts if `one_index`.
class DagCuts final : public LocalCuts {
 public:
  DagCuts(const ExampleKernel& kernel, std::shared_ptr<const ExampleSet> set, int threads,
          const Monitor& monitor, bool one_index)
      : LocalCuts(kernel, std::move(set), threads, monitor), one_index_(one_index) {}

  void score(std::span<const double> alphas, const Sample& sample, std::span<double> scores) override {
    std::ranges::fill(scores, 0.0);
    if (one_index_) {
      WeightedExamples support = weighted_examples(alphas);
      const ExampleMachine machine(kernel_, set_, std::move(support.examples),
                                   std::move(support.coefficients), 1);
      machine.add_scores(*set_, sample.examples, threads_, monitor_, scores);
      return;
    }
    std::vector<double> cut_scores(scores.size());
    for (std::size_t t = 0; t < dags_.size(); ++t) {
      if (alphas[t] == 0.0) continue;
      std::ranges::fill(cut_scores, 0.0);
      dags_[t].add_scores(*set_, sample.examples, threads_, monitor_, cut_scores);
      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += alphas[t] * cut_scores[i];
    }
  }

 private:
  std::vector<double> products_of_newest() override {
    const Cut& cut = cuts_.back();
    dags_.emplace_back(kernel_, set_, cut.examples, cut.coefficients, 1);
    std::vector<double> products;
    std::vector<double> scores(cut.examples.size());
    for (const ExampleMachine& dag : dags_) {
      std::ranges::fill(scores, 0.0);
      if (!scores.empty()) dag.add_scores(*set_, cut.examples, threads_, monitor_, scores);
      products.push_back(along_newest(scores));
    }
    return products;
  }

  bool one_index_;
  std::vector<ExampleMachine> dags_;
};

// Computes one kernel value at a time.
class PairCuts final : public KernelCuts {
 public:
  using KernelCuts::KernelCuts;

 private:
  void add_kernels(const WeightedExamples& support, std::span<const std::int32_t> examples,
                   std::span<double> scores) const override {
    const std::int64_t tasks =
        (static_cast<std::int64_t>(examples.size()) + examples_at_once - 1) / examples_at_once;
    const auto make = [&] { return std::make_unique<kernels::TreePairs>(kernel_.tree, *set_->forest); };
    parallel_workers(threads_, tasks, make, [&](kernels::TreePairs& pairs, std::int64_t task) {
      monitor_.throw_if_stopped();
      const auto begin = static_cast<std::size_t>(task * examples_at_once);
      for (std::size_t i = begin; i < std::min(examples.size(), begin + examples_at_once); ++i)
        scores[i] += sum_over(support, static_cast<std::size_t>(examples[i]), pairs);
    });
  }

  double sum_over(const WeightedExamples& support, std::size_t example, kernels::TreePairs& pairs) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < support.examples.size(); ++k) {
      const auto other = static_cast<std::size_t>(support.examples[k]);
      for (const kernels::TreeCounts& counts : set_->trees)
        sum += support.coefficients[k] * pairs(counts.row(example), counts.row(other));
    }
    return sum;
  }
};

}  // namespace

std::unique_ptr<Cuts> make_paper_cuts(CutMethod method, const ExampleKernel& kernel,
                                      std::shared_ptr<const ExampleSet> set, int threads,
                                      const Monitor& monitor) {
  if (method == CutMethod::pairs) return std::make_unique<PairCuts>(kernel, std::move(set), threads, monitor);
  const bool one_index = method == CutMethod::dag_together;
  return std::make_unique<DagCuts>(kernel, std::move(set), threads, monitor, one_index);
}

}  // namespace unkernel::tree
