// Where phi(x) lives, and the estimates that decide it.
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
  double expected_columns = 0;  // of those, how many occur: eq. (11), degree by degree
  double mapped_nonzeros = 0;   // eq. (10), summed instead of averaged
  double on_the_fly_bytes = 0;  // for all weight vectors that are alive at once, and the model
  double condensed_bytes = 0;
  SplitPlan split;  // its bytes are infinite until it is planned
};

// Throws where conjunctions of so many features have no numbers of their own.
void check_feature_count(const DistinctRows& examples, int degree);

// Of all but the split, which takes time to plan.
StorageEstimate estimate_storage(const DistinctRows& examples, int degree, int problems);

// Whether a plan of a split could make a difference, and whether there is any for such data.
bool split_is_considered(Storage wanted, const StorageEstimate& estimate, double memory);
bool can_be_split(const DistinctRows& examples, const kernels::FeatureMap& map);

// The fastest of those that fit into `memory` bytes (0: no limit). Throws NotEnoughMemory, with the
// sizes, when none does or when the one asked for does not.
Storage choose_storage(Storage wanted, const StorageEstimate& estimate, double memory);

}  // namespace unkernel::poly
