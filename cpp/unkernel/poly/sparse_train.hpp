// Trains sparse models: exact l1 (or elastic net) over all conjunctions, storing only a few of them.
//
// Problem   min_w  sum_Tk [ l1 |w_Tk| + l2/2 w_Tk^2 ] + sum_i L_i(w'phi(x_i)),
//           for the weight w_Tk of conjunction T in output k. L is the squared hinge, eq. (17) of Chang et
//           al. 2010, the logistic loss, the squared error, or the Poisson loss. More than two classes are
//           trained one against the rest (squared hinge), or jointly with softmax (logistic)
// Method    a working set: the problem is solved on some conjunctions (proximal_newton.hpp). Then the
//           conjunctions that violate their optimality condition most are added (conjunction_search.hpp), at
//           most as many as already have weights. This repeats until the gap is certified. Conjunctions that
//           cannot enter the model are never stored. With pure l1, conjunctions of binary features that hold
//           in the same rows share one column.
// Stop      (P - D) / P <= tolerance, for the objective P and a lower bound D of the optimum over *all*
//           conjunctions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/train.hpp"
#include "unkernel/solve/proximal_newton.hpp"

namespace unkernel::poly {

enum class SparseLoss { squared_hinge, logistic, squared_error, poisson };

struct SparseOptions {
  kernels::FeatureMap map;
  SparseLoss loss;
  solve::Penalty penalty;
  double C;
  std::vector<double> class_weights;  // one per class; empty in regression
  std::vector<double> targets;        // by code, in regression
  double epsilon;                     // in regression, the largest error without a loss
  double memory;                      // bytes; 0 for no limit
  double tolerance;
  std::int64_t max_steps;  // of the Newton method
  std::uint64_t seed;
  int threads;
};

// Returns whether the loss has targets instead of classes.
bool is_regression(SparseLoss loss);

// Returns the number of scores of a model.
std::size_t score_count(const SparseOptions& options);

// Returns the loss of one problem: one class against the rest with the squared hinge, all classes with the
// logistic loss.
std::unique_ptr<solve::ScoreLoss> sparse_loss_of(const DistinctRows& examples, const SparseOptions& options,
                                                 std::int64_t problem);

// The weights of an earlier model with the same feature numbering, in the form of Trained. Empty if training
// starts from zero.
struct SparseStart {
  std::span<const kernels::Key> keys;
  std::span<const double> weights;
  std::span<const double> intercept;
};

// Trains a sparse model. Trained::dimension is the number of stored columns; Trained::duals is empty.
Trained train_sparse(const DistinctRows& examples, const SparseOptions& options, const SparseStart& start,
                     Monitor& monitor);

}  // namespace unkernel::poly
