#include "unkernel/tree/training_examples.hpp"

#include <utility>

namespace unkernel::tree {

std::vector<double> LocalExamples::self_kernels() const {
  return kernels::self_kernels(kernel_, *set_, {threads_, &monitor_});
}

void LocalExamples::compute_kernels(std::span<const std::int32_t> rows, std::span<const std::int32_t> columns,
                                    bool lower_only, kernels::GramSink& sink) const {
  kernels::compute_kernels(kernel_, {*set_, rows, *set_, columns, lower_only}, threads_, monitor_, sink);
}

std::vector<double> LocalExamples::scores(Support support, std::span<const std::int32_t> examples) const {
  const kernels::ExampleMachine machine(kernel_, set_, std::move(support.examples),
                                        std::move(support.coefficients), support.problems);
  std::vector<double> scores(examples.size() * support.problems, 0.0);
  machine.add_scores(*set_, examples, threads_, monitor_, scores);
  return scores;
}

}  // namespace unkernel::tree
