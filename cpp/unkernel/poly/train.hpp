// Trains models: computes the weights of conjunctions from distinct rows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/mapped_rows.hpp"
#include "unkernel/poly/storage.hpp"
#include "unkernel/solve/dual_problem.hpp"

namespace unkernel::poly {

struct TrainOptions {
  kernels::FeatureMap map;
  solve::Loss loss;
  double C;
  std::vector<double> class_weights;  // one per class; empty in regression
  Storage storage;
  double memory;  // bytes; 0 for no limit
  double tolerance;
  solve::Finish finish;
  std::int64_t max_epochs;
  std::uint64_t seed;
  int threads;
};

// The targets of regression by their codes, and the factors that multiply C for scores below and above the
// target.
struct Regression {
  std::span<const double> targets;
  double below = 1.0;
  double above = 1.0;
};

// The dual variables of an earlier fit; hashes identify the rows.
struct WarmStart {
  std::span<const std::uint64_t> hashes;  // sorted
  std::span<const double> duals;          // hashes x problems: the u of solve/loss.hpp
};

// A trained model. With Storage::split and Storage::kernel, it consists of the dual variables, without
// weights and intercept.
struct Trained : Conjunctions {
  std::vector<double> duals;  // rows x problems
  std::vector<solve::Outcome> outcomes;
  Storage storage = Storage::automatic;
  std::size_t dimension = 0;  // length of a weight vector during training
};

// Returns the number of problems: one for two classes (class 1 is positive), else one per class, against the
// rest.
int problem_count(int classes);

Trained train(const DistinctRows& examples, const TrainOptions& options, const WarmStart& start,
              Monitor& monitor);

// Trains regression with options.loss.
Trained train_regression(const DistinctRows& examples, const TrainOptions& options,
                         const Regression& regression, const WarmStart& start, Monitor& monitor);

// Trains l2-regularised logistic regression (solve/kernel_newton.hpp), with softmax for several classes.
// max_epochs limits the Newton steps; options.loss is ignored.
Trained train_logistic(const DistinctRows& examples, const TrainOptions& options, const WarmStart& start,
                       Monitor& monitor);

// Trains l2-regularised Poisson regression on targets that are not negative. options.loss is ignored. The
// duals are those of rows whose costs are p = C sum of weights times targets and q = C sum of weights
// (solve/poisson_term.hpp).
Trained train_poisson(const DistinctRows& examples, const TrainOptions& options,
                      std::span<const double> targets, const WarmStart& start, Monitor& monitor);

}  // namespace unkernel::poly
