// Computes the numbers that an update needs instead of the rows: the curvature of the loss in each weight v_T
// of a model, sum_i h_i m_T(x_i)^2. h_i is the curvature of row i at its score (ScoreLoss::wide_curvatures).
// With second derivatives as h_i, an update would forget rows that the model predicts with certainty.
#pragma once

#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/conjunction_index.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/sparse_train.hpp"

namespace unkernel::poly {

struct WeightCurvatures {
  std::vector<double> intercept;     // by score
  std::vector<double> features;      // ranks x scores, also of features without a weight
  std::vector<double> conjunctions;  // keys x scores
  std::vector<double> slopes;        // of the loss in a weight of each feature: ranks x scores
};

// The keys ascend. `scores` are those of the model for the examples, score by score. Of the options, the
// loss, its costs, the degree and the number of threads matter.
WeightCurvatures weight_curvatures(const DistinctRows& examples, const SparseOptions& options,
                                   std::span<const kernels::Key> keys, std::span<const double> scores,
                                   const Monitor& monitor);

}  // namespace unkernel::poly
