// Cuts of a sampled cutting-plane method over trees, with the operations that the method needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"

namespace unkernel::tree {

// g = sum of coefficient_i phi(x_i); each example occurs once.
struct Cut {
  std::vector<std::int32_t> examples;
  std::vector<double> coefficients;
  double offset = 0.0;
};

// Examples to score; the examples with label * (score + intercept) < 1 form a cut.
struct Sample {
  std::span<const std::int32_t> examples;  // ascending; an example may occur several times
  std::span<const signed char> labels;     // one per entry of `examples`
  double intercept;
};

// Examples, ascending, with their coefficients in w, summed over all cuts.
struct WeightedExamples {
  std::vector<std::int32_t> examples;
  std::vector<double> coefficients;
};

class Cuts {
 public:
  virtual ~Cuts() = default;

  const std::vector<Cut>& cuts() const { return cuts_; }

  // Computes w'phi(x) for w = sum_t alphas[t] g_t.
  virtual void score(std::span<const double> alphas, const Sample& sample, std::span<double> scores) = 0;

  // Adds the cut. Returns its inner products with all cuts; the last of these is its squared norm.
  std::vector<double> add(Cut cut);

 protected:
  // Returns the inner products of the newest cut with all cuts, including itself.
  virtual std::vector<double> products_of_newest() = 0;

  std::vector<Cut> cuts_;
};

// Cuts whose examples are in this process.
class LocalCuts : public Cuts {
 public:
  LocalCuts(const kernels::ExampleKernel& kernel, std::shared_ptr<const kernels::ExampleSet> set, int threads,
            const Monitor& monitor)
      : kernel_(kernel), set_(std::move(set)), threads_(threads), monitor_(monitor) {}

 protected:
  // Returns the sum over the newest cut's examples of coefficient times score.
  double along_newest(std::span<const double> scores) const;
  WeightedExamples weighted_examples(std::span<const double> alphas) const;

  kernels::ExampleKernel kernel_;
  std::shared_ptr<const kernels::ExampleSet> set_;
  int threads_;
  const Monitor& monitor_;
};

// Cuts that are computed from kernel values alone.
class KernelCuts : public LocalCuts {
 public:
  using LocalCuts::LocalCuts;
  void score(std::span<const double> alphas, const Sample& sample, std::span<double> scores) final;

 protected:
  // Adds sum_k coefficients[k] K(x, support[k]) to the score of each example x.
  virtual void add_kernels(const WeightedExamples& support, std::span<const std::int32_t> examples,
                           std::span<double> scores) const = 0;

 private:
  std::vector<double> products_of_newest() final;
};

// Methods to compute scores and inner products of cuts. The results do not depend on the method.
enum class CutMethod {
  forest,        // one index of all cuts; the products of a new cut with all cuts in one pass
  pairs,         // uSVM: one kernel value at a time
  dag_each,      // SDAG: one index per cut
  dag_together,  // SDAG+: one index of all cuts for scores, one per cut for products
  kernels,       // kernel values row by row: for kernels that are not sums over nodes (products, vectors)
};

std::unique_ptr<Cuts> make_cuts(CutMethod method, const kernels::ExampleKernel& kernel,
                                std::shared_ptr<const kernels::ExampleSet> set, int threads,
                                const Monitor& monitor);

}  // namespace unkernel::tree
