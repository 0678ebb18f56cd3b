// Chooses how phi(x) is stored, by estimates of memory.
#pragma once

#include <cstdint>
#include <string>

#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/split_rows.hpp"

namespace unkernel::poly {

enum class Storage { automatic, on_the_fly, condensed, split };

struct StorageEstimate {
  double possible_columns = 0;  // C(n + d, d), or its count of sets for binary data
  double expected_columns = 0;  // how many of those occur: eq. (11), degree by degree
  double mapped_nonzeros = 0;   // eq. (10), as a sum instead of a mean
  double on_the_fly_bytes = 0;  // for all weight vectors in memory at once, and the model
  double condensed_bytes = 0;
  SplitPlan split;  // its bytes are infinite until it is planned
};

// Throws if there are too many features to number their conjunctions.
void check_feature_count(const DistinctRows& examples, int degree);

// For all storages but the split, which takes time to plan.
StorageEstimate estimate_storage(const DistinctRows& examples, int degree, int problems);

// Whether planning a split could make a difference, and whether the data allow it.
bool split_is_considered(Storage wanted, const StorageEstimate& estimate, double memory);
bool can_be_split(const DistinctRows& examples, const kernels::FeatureMap& map);

// The fastest storage that fits into `memory` bytes (0: no limit). Throws NotEnoughMemory, with the sizes, if
// none fits or if the requested one does not.
Storage choose_storage(Storage wanted, const StorageEstimate& estimate, double memory);

}  // namespace unkernel::poly
