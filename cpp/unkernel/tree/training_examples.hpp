// The exact learner's interface to training examples of trees, in this process or on other machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"

namespace unkernel::tree {

// Examples with their coefficients in several problems: row-major, `problems` numbers per example.
struct Support {
  std::vector<std::int32_t> examples;
  std::vector<double> coefficients;
  std::size_t problems;
};

class TrainingExamples {
 public:
  virtual ~TrainingExamples() = default;

  virtual std::size_t size() const = 0;

  // Returns the kernel of each example with itself.
  virtual std::vector<double> self_kernels() const = 0;

  // Computes the kernels of `rows` with `columns`; if `lower_only`, only up to the diagonal.
  virtual void compute_kernels(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns,
                               bool lower_only, kernels::GramSink& sink) const = 0;

  // Returns the scores of some examples in all problems of the support, row-major.
  virtual std::vector<double> scores(Support support, std::span<const std::int32_t> examples) const = 0;
};

// Examples in this process.
class LocalExamples final : public TrainingExamples {
 public:
  LocalExamples(const kernels::ExampleKernel& kernel, std::shared_ptr<const kernels::ExampleSet> set,
                int threads, const Monitor& monitor)
      : kernel_(kernel), set_(std::move(set)), threads_(threads), monitor_(monitor) {}

  std::size_t size() const override { return set_->size; }
  std::vector<double> self_kernels() const override;
  void compute_kernels(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns,
                       bool lower_only, kernels::GramSink& sink) const override;
  std::vector<double> scores(Support support, std::span<const std::int32_t> examples) const override;

 private:
  kernels::ExampleKernel kernel_;
  std::shared_ptr<const kernels::ExampleSet> set_;
  int threads_;
  const Monitor& monitor_;
};

}  // namespace unkernel::tree
