// Kernel SVMs over examples of trees: solves the whole dual, with a certified gap.
//
// Problem   min_{w,b}  P = 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (w'phi(x_i) + b))
//           for each of several labellings of the same examples (one-vs-rest); b is not regularised, or is 0
// Method    decomposition. The kernel matrix of a working set of examples is in memory, and their dual is
//           solved by SMO (solve/smo.hpp) while all other variables are fixed. Then one pass over the forest
//           scores *all* examples with the current weights, for all labellings at once; this gives P, D and
//           the examples that violate the optimality conditions most. These examples join the working set.
//           A pass costs about as much as a few dozen rows of the kernel matrix, and the matrix needs rows
//           only for the examples near the margin.
// Stop      (P - D) / P <= tolerance for the scores of a full pass and the best b for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/history.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/tree/training_examples.hpp"

namespace unkernel::tree {

// One binary problem over the examples.
struct Labelling {
  std::vector<signed char> labels;  // -1, +1
  std::vector<double> costs;        // C_i >= 0
};

struct ExactOptions {
  double tolerance;
  std::int64_t max_rounds;
  bool fit_intercept;
  std::size_t memory;  // bytes for the kernel matrix
  int threads;
};

struct Trained {
  std::vector<double> coefficients;  // y_i alpha_i of each example
  double intercept = 0.0;
  double objective = 0.0;
  double dual_objective = 0.0;
  std::int64_t rounds = 0;
  bool converged = false;
  History history;
};

std::vector<Trained> train_exact(const TrainingExamples& examples, std::span<const Labelling> labellings,
                                 const ExactOptions& options, Monitor& monitor);

}  // namespace unkernel::tree
