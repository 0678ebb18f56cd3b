// Updates a model with new rows, without the rows that it was trained on (old_model.hpp).
//
// Problem   min_v  penalty(v) + loss of the new rows + approximate loss of the old rows
// Method    without l1, Newton's method over the new rows (kernel_newton.hpp); the old rows pull each weight.
//           With l1, a working set: the old weights, and the conjunctions that violate their optimality
//           condition, found as in sparse_train.hpp. The loss of the old rows acts as one row per weight
//           (anchored_loss.hpp).
// Weights of conjunctions that do not occur in the new rows are known in closed form.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/old_model.hpp"
#include "unkernel/poly/sparse_train.hpp"
#include "unkernel/poly/train.hpp"
#include "unkernel/poly/weight_curvatures.hpp"

namespace unkernel::poly {

struct Updated {
  Trained trained;
  WeightCurvatures curvatures;  // of the loss of old and new rows
};

// The features of the examples must be numbered as in the model; features that it lacks come last.
Updated update_model(const DistinctRows& examples, const SparseOptions& options, const OldModel& model,
                     Monitor& monitor);

}  // namespace unkernel::poly
