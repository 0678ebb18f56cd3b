#include "unkernel/tree/cuts.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "unkernel/base/at.hpp"
#include "unkernel/tree/forest_cuts.hpp"
#include "unkernel/tree/paper_cuts.hpp"

namespace unkernel::tree {
namespace {

// Computes kernel values row by row.
class RowCuts final : public KernelCuts {
 public:
  using KernelCuts::KernelCuts;

 private:
  class WeightedSum final : public kernels::GramSink {
   public:
    WeightedSum(std::span<const double> coefficients, std::span<double> scores)
        : coefficients_(coefficients), scores_(scores) {}
    void take(std::size_t i, std::size_t first, std::span<const double> values) override {
      for (std::size_t j = 0; j < values.size(); ++j) scores_[i] += coefficients_[first + j] * values[j];
    }

   private:
    std::span<const double> coefficients_;
    std::span<double> scores_;
  };

  void add_kernels(const WeightedExamples& support, std::span<const std::int32_t> examples,
                   std::span<double> scores) const override {
    WeightedSum sink(support.coefficients, scores);
    kernels::compute_kernels(kernel_, {*set_, examples, *set_, support.examples, false}, threads_, monitor_,
                             sink);
  }
};

}  // namespace

std::vector<double> Cuts::add(Cut cut) {
  cuts_.push_back(std::move(cut));
  return products_of_newest();
}

double LocalCuts::along_newest(std::span<const double> scores) const {
  double sum = 0.0;
  for (std::size_t k = 0; k < scores.size(); ++k) sum += cuts_.back().coefficients[k] * scores[k];
  return sum;
}

WeightedExamples LocalCuts::weighted_examples(std::span<const double> alphas) const {
  std::vector<double> sums(set_->size, 0.0);
  std::vector<bool> has_coefficient(set_->size, false);
  for (std::size_t t = 0; t < cuts_.size(); ++t) {
    if (alphas[t] == 0.0) continue;
    for (std::size_t k = 0; k < cuts_[t].examples.size(); ++k) {
      sums[at(cuts_[t].examples[k])] += alphas[t] * cuts_[t].coefficients[k];
      has_coefficient[at(cuts_[t].examples[k])] = true;
    }
  }
  WeightedExamples weighted;
  for (std::size_t i = 0; i < set_->size; ++i) {
    if (!has_coefficient[i]) continue;
    weighted.examples.push_back(static_cast<std::int32_t>(i));
    weighted.coefficients.push_back(sums[i]);
  }
  return weighted;
}

void KernelCuts::score(std::span<const double> alphas, const Sample& sample, std::span<double> scores) {
  std::ranges::fill(scores, 0.0);
  add_kernels(weighted_examples(alphas), sample.examples, scores);
}

std::vector<double> KernelCuts::products_of_newest() {
  const std::vector<std::int32_t> newest = cuts_.back().examples;
  std::vector<double> products;
  std::vector<double> scores(newest.size());
  for (const Cut& cut : cuts_) {
    std::ranges::fill(scores, 0.0);
    add_kernels({cut.examples, cut.coefficients}, newest, scores);
    products.push_back(along_newest(scores));
  }
  return products;
}

std::unique_ptr<Cuts> make_cuts(CutMethod method, const kernels::ExampleKernel& kernel,
                                std::shared_ptr<const kernels::ExampleSet> set, int threads,
                                const Monitor& monitor) {
  const bool trees_only = kernel.combination == kernels::Combination::trees;
  if (!trees_only && method != CutMethod::kernels)
    throw std::invalid_argument("this way of computing cuts is for kernels of trees alone");
  switch (method) {
    case CutMethod::forest: return make_forest_cuts(kernel, std::move(set), threads, monitor);
    case CutMethod::kernels: return std::make_unique<RowCuts>(kernel, std::move(set), threads, monitor);
    default: return make_paper_cuts(method, kernel, std::move(set), threads, monitor);
  }
}

}  // namespace unkernel::tree
