// Cuts of a sampled cutting-plane method over trees, with the operations that the method needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"
#include "unkernel/tree/sampled.hpp"

namespace unkernel::tree {

// g = sum of coefficient_i phi(x_i); each example occurs once.
struct Cut {
  std::vector<std::int32_t> examples;
  std::vector<double> coefficients;
  double offset = 0.0;
};

// Examples, ascending, with their coefficients in w, summed over all cuts.
struct WeightedExamples {
  std::vector<std::int32_t> examples;
  std::vector<double> coefficients;
};

class Cuts {
 public:
  Cuts(const kernels::ExampleKernel& kernel, std::shared_ptr<const kernels::ExampleSet> set, int threads,
       const Monitor& monitor)
      : kernel_(kernel), set_(std::move(set)), threads_(threads), monitor_(monitor) {}
  virtual ~Cuts() = default;

  const std::vector<Cut>& cuts() const { return cuts_; }

  // w'phi(x) for w = sum_t alphas[t] g_t.
  virtual void score(std::span<const double> alphas, std::span<const std::int32_t> examples,
                     std::span<double> scores) = 0;

  // Adds the cut; returns its inner products with all cuts, that with itself last.
  std::vector<double> add(Cut cut);

 protected:
  // With all cuts, including the newest.
  virtual std::vector<double> products_of_newest() = 0;

  // The sum over the newest cut's examples of coefficient times score.
  double along_newest(std::span<const double> scores) const;
  WeightedExamples weighted_examples(std::span<const double> alphas) const;

  kernels::ExampleKernel kernel_;
  std::shared_ptr<const kernels::ExampleSet> set_;
  int threads_;
  const Monitor& monitor_;
  std::vector<Cut> cuts_;
};

// Cuts that need kernel values only.
class KernelCuts : public Cuts {
 public:
  using Cuts::Cuts;
  void score(std::span<const double> alphas, std::span<const std::int32_t> examples,
             std::span<double> scores) final;

 protected:
  // Adds sum_k coefficients[k] K(x, support[k]) to the score of each example x.
  virtual void add_kernels(const WeightedExamples& support, std::span<const std::int32_t> examples,
                           std::span<double> scores) const = 0;

 private:
  std::vector<double> products_of_newest() final;
};

std::unique_ptr<Cuts> make_cuts(CutMethod method, const kernels::ExampleKernel& kernel,
                                std::shared_ptr<const kernels::ExampleSet> set, int threads,
                                const Monitor& monitor);

}  // namespace unkernel::tree
