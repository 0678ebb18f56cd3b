#include "unkernel/tree/forest_cuts.hpp"

#include <utility>

#include "unkernel/tree/cut_scorer.hpp"

namespace unkernel::tree {
namespace {

class ForestCuts final : public LocalCuts {
 public:
  ForestCuts(const kernels::ExampleKernel& kernel, std::shared_ptr<const kernels::ExampleSet> set,
             int threads, const Monitor& monitor)
      : LocalCuts(kernel, std::move(set), threads, monitor), scorer_(kernel_, set_) {}

  void score(std::span<const double> alphas, const Sample& sample, std::span<double> scores) override {
    scorer_.score(alphas, sample.examples, threads_, monitor_, scores);
  }

 private:
  std::vector<double> products_of_newest() override {
    const Cut& cut = cuts_.back();
    const WeightedTrees trees = scorer_.weighted_trees(cut.examples, cut.coefficients);
    scorer_.add(std::span(&trees, 1));
    return scorer_.products(cut.examples, cut.coefficients, threads_, monitor_);
  }

  CutScorer scorer_;
};

}  // namespace

std::unique_ptr<Cuts> make_forest_cuts(const kernels::ExampleKernel& kernel,
                                       std::shared_ptr<const kernels::ExampleSet> set, int threads,
                                       const Monitor& monitor) {
  return std::make_unique<ForestCuts>(kernel, std::move(set), threads, monitor);
}

}  // namespace unkernel::tree
