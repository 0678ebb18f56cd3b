// From a conjunction model's keys and weights, as learners make and files hold them, to tables.
#pragma once

#include <cstdint>
#include <span>

#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/table_builder.hpp"

namespace unkernel::engines {

struct ConjunctionWeights {
  Basis basis;
  FeatureMap map;
  std::int64_t features;                  // columns of an input row
  std::span<const std::int64_t> columns;  // rank -> column; the model's ranks descend in frequency
  std::span<const std::uint64_t> keys;    // ascending, without the constant's
  std::span<const double> weights;        // keys x scores
  std::span<const double> intercept;      // scores
};

// Throws std::invalid_argument where something cannot be.
void check(const ConjunctionWeights& weights);

// Checks everything. What is grouped is grouped by what occurs together in the sample,
// typical rows by input column.
ConjunctionArrays arrange(const ConjunctionWeights& weights, HeadPlan head, GroupPlan groups,
                          const data::CsrView<std::int32_t, double>& sample, int threads);

}  // namespace unkernel::engines
