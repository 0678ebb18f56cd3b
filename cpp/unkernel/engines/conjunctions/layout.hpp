// Converts the keys and weights of a conjunction model, as learners and files provide them, into tables.
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
  std::span<const std::int64_t> columns;  // rank -> column; ranks are by descending frequency
  std::span<const std::uint64_t> keys;    // ascending; the constant has no key
  std::span<const double> weights;        // keys x scores
  std::span<const double> intercept;      // scores
};

// Throws std::invalid_argument if the model is invalid.
void check(const ConjunctionWeights& weights);

// Checks the model and converts it into tables. Dependent features are grouped as in the rows of `sample`,
// whose columns are input columns.
ConjunctionArrays arrange(const ConjunctionWeights& weights, HeadPlan head, GroupPlan groups,
                          const data::CsrView<std::int32_t, double>& sample, int threads);

}  // namespace unkernel::engines
