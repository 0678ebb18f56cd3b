// The engine for models of degree 2 with several scores, whose weights are 16-bit multiples of one power of
// two. Online learners make such models. 16-bit weights take a quarter of the memory of doubles, so rows
// cause fewer cache misses. Integer sums are exact in any order.
//
// Features have ranks by descending frequency. A dense table covers the first ranks, the dense features: it
// has the weights of each feature with every smaller rank, then the weights of the feature alone. All other
// features are sparse, and each is an owner. An owner has a hash table of its partners among all smaller
// ranks, in buckets that never overflow: one 16-byte load tells whether a pair exists, and where its weights
// are.
//
// In many models, all columns from a certain column on form no pairs with each other, such as the side
// features of a parser's templates. The columns before that column are the core. Dense features outside the
// core store their pairs with the core only.
//
// Bytes    for m scores: 2 m per dense pair; 2 m and about 6 per other existing pair
// Query    one load per dense pair of a row, one bucket per other pair and, if the pair exists, its weights
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "unkernel/engines/conjunctions/layout.hpp"
#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {

// Returns the recommended number of pairs in the dense table: about twice the number of the model's pairs.
std::uint64_t dense_pairs_for(const ConjunctionWeights& model);

// Returns the largest power of two of which all these finite numbers are 16-bit multiples, if there is one.
std::optional<double> int16_unit(std::span<const double> intercept, std::span<const double> weights);

// Returns the engine, or null if it does not support the model. Throws std::invalid_argument if the model is
// invalid.
std::unique_ptr<Engine> make_int16_pair_engine(const ConjunctionWeights& model, std::uint64_t dense_pairs);

}  // namespace unkernel::engines
