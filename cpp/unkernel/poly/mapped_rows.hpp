// Stores the mapped rows phi(x) of a training set in the fastest form that fits into memory, and computes
// weights of conjunctions from weighted sums of these rows.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/storage.hpp"
#include "unkernel/poly/stored_rows.hpp"

namespace unkernel::poly {

struct MapOptions {
  kernels::FeatureMap map;
  Storage storage;
  double memory;  // bytes; 0 for no limit
  int threads;
};

using WeightVectors = std::vector<LargeArray<double>>;

// The weights of conjunctions, for one or several scores.
struct Conjunctions {
  std::vector<kernels::Key> keys;  // conjunctions with a non-zero weight, ascending, without the constant
  std::vector<double> weights;     // keys x scores
  std::vector<double> intercept;   // the weight of the constant, one per score
};

// Throws std::invalid_argument if a power of gamma or coef0 is so small or large that the weights, which are
// divided by such powers, would underflow or overflow.
void check_scale(const kernels::FeatureMap& map);

// Return the estimates for all storages, with a plan if splitting may be best; the rows in a storage; and the
// nonzero weights of weight vectors.
StorageEstimate estimate_and_plan(const DistinctRows& examples, const MapOptions& options, int problems);

std::unique_ptr<StoredRows> store_rows(const DistinctRows& examples, const MapOptions& options,
                                       Storage storage, const SplitPlan& split, const Monitor& monitor);

Conjunctions conjunctions_of(const StoredRows& rows, const WeightVectors& vectors);

// Mapped rows for solvers that represent weights as sums of rows. The examples must outlive this object.
class MappedRows {
 public:
  // `vectors_per_row` is the number of values that the solver stores per row. Throws NotEnoughMemory, with
  // the sizes, if these values or the mapped rows do not fit.
  MappedRows(const DistinctRows& examples, const MapOptions& options, int vectors_per_row,
             const Monitor& monitor);

  const StoredRows& stored() const { return *stored_; }
  Storage storage() const { return storage_; }

  // Return the scores of all rows, and the weights of conjunctions, for w = sum_i coefficients_i phi(x_i).
  // `coefficients` has one entry per row.
  std::vector<double> scores(std::span<const double> coefficients, Threads threads) const;
  Conjunctions weights_of(std::span<const double> coefficients, Threads threads) const;

 private:
  LargeArray<double> sum(std::span<const double> coefficients, Threads threads) const;

  Storage storage_ = Storage::automatic;
  std::unique_ptr<StoredRows> stored_;
};

}  // namespace unkernel::poly
