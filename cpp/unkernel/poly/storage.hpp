// Estimates the memory of phi(x) in each storage, and chooses a storage.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "unkernel/base/error.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/split_rows.hpp"

namespace unkernel::poly {

enum class Storage { automatic, on_the_fly, condensed, split, kernel };

struct StorageEstimate {
  double possible_columns = 0;  // C(n + d, d), or the number of sets for binary data
  double expected_columns = 0;  // conjunctions expected to occur: eq. (11) for each degree
  double mapped_nonzeros = 0;   // eq. (10), summed over all rows
  double on_the_fly_bytes = 0;  // of all weight vectors together, and of the model
  double condensed_bytes = 0;
  SplitPlan split;  // its bytes are infinite until it has been planned
  // Infinite if the model must not consist of support vectors.
  double kernel_bytes = std::numeric_limits<double>::infinity();
  bool is_kernel_fastest = false;  // training on the kernel matrix is faster than on mapped rows
};

// Throws std::invalid_argument if there are too many features to number their conjunctions.
void check_feature_count(const DistinctRows& examples, int degree);

// Estimates all storages except `split`, which takes time to plan.
StorageEstimate estimate_storage(const DistinctRows& examples, int degree, int problems);

// Return whether a split is worth planning, and whether the data can be split.
bool should_plan_split(Storage requested, const StorageEstimate& estimate, double memory);
bool can_split(const DistinctRows& examples, const kernels::FeatureMap& map);

// Adds the estimate for a kernel matrix, which takes 8 bytes per pair of rows.
void estimate_kernel(const DistinctRows& examples, int problems, StorageEstimate& estimate);

// Returns whether the map belongs to a polynomial kernel, so that the model may consist of support vectors.
bool has_kernel_model(const kernels::FeatureMap& map);

// Returns the bytes of the dual variables of all rows and problems, stored `copies` times.
double bytes_of_duals(const DistinctRows& examples, int problems, int copies);

// Throws NotEnoughMemory, with the sizes, if the dual variables, or at degree 1 the weights, do not fit into
// `memory` bytes (0: no limit).
void check_duals(const DistinctRows& examples, int problems, int copies, double memory);
void check_weights(const StorageEstimate& estimate, double memory);

// Returns whether storing weights, or splitting rows, fits into `memory` bytes (0: no limit).
bool fits_without_kernel(const StorageEstimate& estimate, double memory);

// Returns the bytes that rows and weights take in this storage.
double bytes_of(const StorageEstimate& estimate, Storage storage);

// Returns the error that replaces std::bad_alloc during training on rows of this storage.
NotEnoughMemory refused_memory(const StorageEstimate& estimate, Storage storage, double bytes_of_duals);

// Returns the fastest storage that fits into `memory` bytes (0: no limit). Throws NotEnoughMemory, with the
// sizes, if no storage fits or if the requested storage does not fit.
Storage choose_storage(Storage requested, const StorageEstimate& estimate, double memory);

}  // namespace unkernel::poly
