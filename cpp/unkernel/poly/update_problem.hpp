// Solves one problem of an update: the scores of one loss.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/poly/conjunction_search.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/old_model.hpp"
#include "unkernel/poly/sparse_train.hpp"
#include "unkernel/solve/dual_problem.hpp"

namespace unkernel::poly {

// The weights of the conjunctions that occur in the new rows.
struct UpdatedWeights {
  std::vector<kernels::Key> keys;  // in any order; 0 is the constant
  std::vector<double> weights;     // output-major
  std::vector<double> scores;      // of the new rows, output-major
  solve::Outcome outcome;
  std::size_t columns = 0;
};

struct UpdateProblem {
  const DistinctRows& examples;
  const SparseOptions& options;
  const OldModel& model;
  const std::vector<OldRows>& old_rows;  // one per output
  std::int64_t number;
  std::int64_t problems;
  int threads;
};

UpdatedWeights update_without_l1(const UpdateProblem& problem, Monitor& monitor);
// The search must use EqualColumns::largest_counts.
UpdatedWeights update_with_l1(const UpdateProblem& problem, const ConjunctionSearch& search,
                              Monitor& monitor);

}  // namespace unkernel::poly
