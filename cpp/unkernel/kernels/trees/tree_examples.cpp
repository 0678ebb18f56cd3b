#include "unkernel/kernels/trees/tree_examples.hpp"

#include <algorithm>
#include <numeric>

#include "unkernel/base/parallel.hpp"
#include "unkernel/kernels/trees/self_kernel.hpp"

namespace unkernel::kernels {
namespace {

constexpr std::int64_t tree_examples_at_once = 64;

// Adds kernel values to the rows of a matrix in memory.
class AddingSink final : public GramSink {
 public:
  AddingSink(std::vector<double>& values, std::size_t columns, double weight)
      : values_(values), columns_(columns), weight_(weight) {}
  void take(std::size_t i, std::size_t first, std::span<const double> values) override {
    double* row = values_.data() + i * columns_ + first;
    for (std::size_t j = 0; j < values.size(); ++j) row[j] += weight_ * values[j];
  }

 private:
  std::vector<double>& values_;
  std::size_t columns_;
  double weight_;
};

void add_tree_kernels(const ExampleKernel& kernel, const KernelMatrix& matrix, int threads,
                      const Monitor& monitor, GramSink& sink) {
  const std::vector<std::int32_t> groups = groups_in(kernel.tree, *matrix.left.forest, *matrix.right.forest);
  const std::size_t channels = std::min(matrix.left.trees.size(), matrix.right.trees.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    compute_gram(
        kernel.tree,
        {*matrix.left.forest, groups, matrix.left.trees[channel], matrix.left_chosen, *matrix.right.forest,
         matrix.right.order, matrix.right.trees[channel], matrix.right_chosen, matrix.lower_only},
        threads, monitor, sink);
  }
}

// Calls take(i, kernels) with the vector kernels of each chosen left row and all chosen right rows.
template <class Take>
void for_vector_kernels(const ExampleKernel& kernel, const KernelMatrix& matrix, int threads,
                        const Monitor& monitor, const Take& take) {
  std::vector<VectorIndex> indices;
  const std::size_t channels = std::min(matrix.left.vectors.size(), matrix.right.vectors.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    indices.emplace_back(kernel.vector, matrix.right.vectors[channel], matrix.right_chosen);
  }
  struct Buffers {
    std::vector<double> kernels;
    std::vector<double> products;
  };
  std::vector<Buffers> buffers(static_cast<std::size_t>(std::max(threads, 1)));
  parallel_slots(
      threads, static_cast<std::int64_t>(matrix.left_chosen.size()), [&](std::size_t slot, std::int64_t i) {
        monitor.throw_if_stopped();
        Buffers& buffer = buffers[slot];
        buffer.kernels.assign(matrix.right_chosen.size(), 0.0);
        const auto example = static_cast<std::size_t>(matrix.left_chosen[static_cast<std::size_t>(i)]);
        for (std::size_t channel = 0; channel < channels; ++channel) {
          indices[channel].add_kernels(matrix.left.vectors[channel], example, buffer.products,
                                       buffer.kernels.data());
        }
        take(static_cast<std::size_t>(i), std::span<const double>(buffer.kernels));
      });
}

// Returns the matrix: left examples x right examples.
std::vector<double> kernel_rows(const ExampleKernel& kernel, const KernelMatrix& matrix, int threads,
                                const Monitor& monitor) {
  const std::size_t columns = matrix.right_chosen.size();
  std::vector<double> values(matrix.left_chosen.size() * columns, 0.0);
  if (kernel.uses_trees()) {
    AddingSink sink(values, columns, kernel.weight_of_trees());
    add_tree_kernels(kernel, matrix, threads, monitor, sink);
  }
  if (kernel.uses_vectors()) {
    const bool is_product = kernel.combination == Combination::product;
    for_vector_kernels(kernel, matrix, threads, monitor, [&](std::size_t i, std::span<const double> kernels) {
      double* row = values.data() + i * columns;
      for (std::size_t j = 0; j < columns; ++j)
        row[j] = is_product ? row[j] * kernels[j] : row[j] + kernels[j];
    });
  }
  return values;
}

// Calls body(first, rows) for pieces of the left examples, each with at most 4 Mi values of the matrix.
template <class Body>
void for_each_piece(std::span<const std::int32_t> left, std::size_t columns, const Body& body) {
  constexpr std::size_t most_values = std::size_t{1} << 22;
  const std::size_t step = std::clamp<std::size_t>(most_values / std::max<std::size_t>(columns, 1), 1,
                                                   std::max<std::size_t>(left.size(), 1));
  for (std::size_t first = 0; first < left.size(); first += step) {
    body(first, left.subspan(first, std::min(step, left.size() - first)));
  }
}

}  // namespace

std::vector<std::int32_t> all_of(const ExampleSet& set) {
  std::vector<std::int32_t> all(set.size);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<double> self_kernels(const ExampleKernel& kernel, const ExampleSet& set, Threads threads) {
  std::vector<double> result(set.size, 0.0);
  const auto tasks =
      (static_cast<std::int64_t>(set.size) + tree_examples_at_once - 1) / tree_examples_at_once;
  const auto make = [&] { return std::make_unique<SelfKernel>(kernel.tree, *set.forest); };
  parallel_workers(threads.count, tasks, make, [&](SelfKernel& tree_kernel, std::int64_t task) {
    const std::size_t begin = static_cast<std::size_t>(task * tree_examples_at_once);
    for (std::size_t i = begin;
         i < std::min(set.size, begin + static_cast<std::size_t>(tree_examples_at_once)); ++i) {
      threads.monitor->throw_if_stopped();
      double trees = 0.0;
      double vectors = 0.0;
      if (kernel.uses_trees()) {
        for (const TreeCounts& counts : set.trees) trees += tree_kernel(counts.row(i), *threads.monitor);
      }
      if (kernel.uses_vectors()) {
        for (const VectorRows& rows : set.vectors) vectors += rows.self_kernel(kernel.vector, i);
      }
      result[i] = kernel.combination == Combination::product ? trees * vectors
                                                             : kernel.weight_of_trees() * trees + vectors;
    }
  });
  return result;
}

void compute_kernels(const ExampleKernel& kernel, const KernelMatrix& matrix, int threads,
                     const Monitor& monitor, GramSink& sink) {
  if (kernel.combination == Combination::trees && matrix.left.trees.size() == 1) {
    add_tree_kernels(kernel, matrix, threads, monitor, sink);
    return;
  }
  for_each_piece(matrix.left_chosen, matrix.right_chosen.size(),
                 [&](std::size_t first, std::span<const std::int32_t> rows) {
                   const KernelMatrix piece{matrix.left, rows, matrix.right, matrix.right_chosen, false};
                   const std::vector<double> values = kernel_rows(kernel, piece, threads, monitor);
                   const std::size_t columns = matrix.right_chosen.size();
                   for (std::size_t i = 0; i < rows.size(); ++i)
                     sink.take(first + i, 0, std::span(values).subspan(i * columns, columns));
                 });
}

ExampleMachine::ExampleMachine(const ExampleKernel& kernel, std::shared_ptr<const ExampleSet> set,
                               std::vector<std::int32_t> chosen, std::vector<double> coefficients,
                               std::size_t scores)
    : kernel_(kernel),
      set_(std::move(set)),
      chosen_(std::move(chosen)),
      coefficients_(std::move(coefficients)),
      scores_(scores) {
  if (!has_weights()) return;
  for (const TreeCounts& counts : set_->trees) {
    trees_.emplace_back(kernel_.tree, *set_->forest, set_->order, counts, chosen_, coefficients_, scores_);
  }
}

std::size_t ExampleMachine::memory() const {
  std::size_t bytes = coefficients_.capacity() * sizeof(double) + chosen_.capacity() * sizeof(std::int32_t);
  for (const TreeWeights& weights : trees_) bytes += weights.memory();
  return bytes;
}

ExampleMachine::Groups ExampleMachine::find_groups(const ExampleSet& examples) const {
  Groups groups;
  if (!has_weights()) return groups;
  const std::vector<std::int32_t> forest_groups = groups_in(kernel_.tree, *examples.forest, *set_->forest);
  for (const TreeWeights& weights : trees_) groups.push_back(index_groups(weights.index(), forest_groups));
  return groups;
}

void ExampleMachine::add_scores(const ExampleSet& examples, const Groups& groups,
                                std::span<const std::int32_t> chosen, int threads, const Monitor& monitor,
                                std::span<double> sums) const {
  if (has_weights()) add_tree_scores(examples, groups, chosen, threads, monitor, sums);
  if (kernel_.uses_vectors()) add_kernel_sums(examples, chosen, threads, monitor, sums);
}

void ExampleMachine::add_tree_scores(const ExampleSet& examples, const Groups& groups,
                                     std::span<const std::int32_t> chosen, int threads,
                                     const Monitor& monitor, std::span<double> sums) const {
  const double weight = kernel_.weight_of_trees();
  std::vector<double> scores(weight == 1.0 ? 0 : sums.size(), 0.0);
  for (std::size_t channel = 0; channel < std::min(trees_.size(), examples.trees.size()); ++channel) {
    kernels::add_scores(trees_[channel], *examples.forest, groups[channel], examples.trees[channel], chosen,
                        threads, monitor, weight == 1.0 ? sums : std::span<double>(scores));
  }
  for (std::size_t i = 0; i < scores.size(); ++i) sums[i] += weight * scores[i];
}

// Adds weighted kernel values. For the kernel `sum`, adds only the kernels of vectors, because
// add_tree_scores adds the scores of trees.
void ExampleMachine::add_kernel_sums(const ExampleSet& examples, std::span<const std::int32_t> chosen,
                                     int threads, const Monitor& monitor, std::span<double> sums) const {
  ExampleKernel kernel = kernel_;
  if (kernel.combination == Combination::sum) kernel.combination = Combination::vectors;
  std::vector<std::int32_t> all;
  if (chosen.empty()) {
    all = all_of(examples);
    chosen = all;
  }
  for_each_piece(chosen, chosen_.size(), [&](std::size_t first, std::span<const std::int32_t> rows) {
    const std::vector<double> values =
        kernel_rows(kernel, {examples, rows, *set_, chosen_, false}, threads, monitor);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < chosen_.size(); ++j) {
        for (std::size_t s = 0; s < scores_; ++s) {
          sums[(first + i) * scores_ + s] += values[i * chosen_.size() + j] * coefficients_[j * scores_ + s];
        }
      }
    }
  });
}

}  // namespace unkernel::kernels
