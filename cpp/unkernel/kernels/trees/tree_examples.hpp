// Examples that consist of trees and vectors, and kernel machines over them.
//
// An example has trees in some *channels*, and vectors in other channels. The kernel of two examples is
//
//   trees     T = sum over channels of the tree kernel
//   vectors   V = sum over channels of the vector kernel
//   sum       weight T + V
//   product   T V
//
// Models with the kernels `trees` and `sum` are scored through weighted nodes (tree_scores.hpp). With the
// kernel `product`, the kernel values with all examples of the model are computed and summed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/trees/tree_counts.hpp"
#include "unkernel/kernels/trees/tree_scores.hpp"
#include "unkernel/kernels/vector_rows.hpp"

namespace unkernel::kernels {

enum class Combination { trees, vectors, sum, product };

struct ExampleKernel {
  TreeKernel tree;
  KernelFunction vector;
  Combination combination;
  double tree_weight;

  bool uses_trees() const { return combination != Combination::vectors; }
  bool uses_vectors() const { return combination != Combination::trees; }
  double weight_of_trees() const { return combination == Combination::sum ? tree_weight : 1.0; }
};

struct ExampleSet {
  std::shared_ptr<const Forest> forest;
  std::vector<NodeId> order;  // nodes_in_order; only for right examples and support examples
  std::size_t size = 0;
  std::vector<TreeCounts> trees;    // one per channel
  std::vector<VectorRows> vectors;  // one per channel
};

// Returns all examples of the set, in order.
std::vector<std::int32_t> all_of(const ExampleSet& set);

// Returns the kernel of each example with itself.
std::vector<double> self_kernels(const ExampleKernel& kernel, const ExampleSet& set, Threads threads);

// Selects the kernels of chosen left examples with chosen right examples; see GramTask.
struct KernelMatrix {
  const ExampleSet& left;
  std::span<const std::int32_t> left_chosen;
  const ExampleSet& right;
  std::span<const std::int32_t> right_chosen;
  bool lower_only;
};
// Computes the selected kernels and passes them to the sink.
void compute_kernels(const ExampleKernel& kernel, const KernelMatrix& matrix, int threads,
                     const Monitor& monitor, GramSink& sink);

// Chosen examples with coefficients, ready to score other examples.
class ExampleMachine {
 public:
  ExampleMachine(const ExampleKernel& kernel, std::shared_ptr<const ExampleSet> set,
                 std::vector<std::int32_t> chosen, std::vector<double> coefficients, std::size_t scores);

  std::size_t scores() const { return scores_; }
  const ExampleKernel& kernel() const { return kernel_; }
  const std::vector<TreeWeights>& tree_weights() const { return trees_; }
  const Forest& forest() const { return *set_->forest; }
  std::size_t memory() const;

  // Speeds up scoring for machines that score many examples; see TreeWeights::add_up_parents.
  void prepare_for_many() {
    for (TreeWeights& weights : trees_) weights.add_up_parents();
  }

  // By channel: the index groups of all nodes in the examples' forest.
  using Groups = std::vector<std::vector<std::int32_t>>;
  Groups find_groups(const ExampleSet& examples) const;

  // Adds the scores of the chosen examples to `sums`, row-major. An empty `chosen` stands for all examples.
  void add_scores(const ExampleSet& examples, std::span<const std::int32_t> chosen, int threads,
                  const Monitor& monitor, std::span<double> sums) const {
    add_scores(examples, find_groups(examples), chosen, threads, monitor, sums);
  }
  // Does the same with find_groups(examples), which callers pass if they score the examples in several calls.
  void add_scores(const ExampleSet& examples, const Groups& groups, std::span<const std::int32_t> chosen,
                  int threads, const Monitor& monitor, std::span<double> sums) const;

 private:
  bool has_weights() const { return kernel_.uses_trees() && kernel_.combination != Combination::product; }
  void add_tree_scores(const ExampleSet& examples, const Groups& groups, std::span<const std::int32_t> chosen,
                       int threads, const Monitor& monitor, std::span<double> sums) const;
  void add_kernel_sums(const ExampleSet& examples, std::span<const std::int32_t> chosen, int threads,
                       const Monitor& monitor, std::span<double> sums) const;

  ExampleKernel kernel_;
  std::shared_ptr<const ExampleSet> set_;
  std::vector<std::int32_t> chosen_;
  std::vector<double> coefficients_;
  std::size_t scores_;
  std::vector<TreeWeights> trees_;
};

}  // namespace unkernel::kernels
