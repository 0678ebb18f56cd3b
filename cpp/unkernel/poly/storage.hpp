// Where phi(x) lives, and the estimates that decide it.
#pragma once

#include <cstdint>
#include <string>

#include "unkernel/poly/examples.hpp"

namespace unkernel::poly {

enum class Storage { automatic, on_the_fly, condensed };

struct StorageEstimate {
  double possible_columns = 0;  // C(n + d, d), or its count of sets for binary data
  double expected_columns = 0;  // of those, how many occur: eq. (11), degree by degree
  double mapped_nonzeros = 0;   // eq. (10), summed instead of averaged
  double on_the_fly_bytes = 0;  // for all weight vectors that are alive at once, and the model
  double condensed_bytes = 0;
};

// Throws where conjunctions of so many features have no numbers of their own.
void check_feature_count(const Examples& examples, int degree);

StorageEstimate estimate_storage(const Examples& examples, int degree, int problems);

// The faster of those that fit into `memory` bytes (0: no limit). Throws NotEnoughMemory, with the
// sizes, when neither does or when the one asked for does not.
Storage choose_storage(Storage wanted, const StorageEstimate& estimate, double memory);

}  // namespace unkernel::poly
