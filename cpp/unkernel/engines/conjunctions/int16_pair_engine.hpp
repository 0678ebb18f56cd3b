// The engine for models of pairs with several scores whose weights are multiples of one power of two that fit
// into 16 bits, as those of our online learners do. Such weights take a quarter of the memory of doubles, so
// that rows miss the cache less, and sums of integers are exact in any order.
//
// Features have ranks by descending frequency. Of the first ones, all pairs are in a dense table: a feature's
// weights with every smaller rank, then its own. A later feature, the owner, has a hash table of its partners
// among all before it, in buckets that never overflow: one load of 16 bytes says whether a pair is there, and
// where.
//
// Many models have features that form no pairs with each other, such as the side features of a parser's
// templates: all columns from some number on. The columns before are the core. Dense features beside the core
// are stored with their pairs with the core only.
//
// Bytes    2 m per dense pair; 2 m and about 6 per other pair that there is; m scores.
// Query    a load for each dense pair of a row, a bucket for each other, and where it has the pair, its
// weights.
#pragma once

#include <cstdint>
#include <memory>

#include "unkernel/engines/conjunctions/layout.hpp"
#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {

// How many pairs the dense table should have: about as many as the model has.
std::uint64_t dense_pairs_for(const ConjunctionWeights& model);

// Null if the model is of another kind. Throws std::invalid_argument if it is not a valid model.
std::unique_ptr<Engine> make_int16_pair_engine(const ConjunctionWeights& model, std::uint64_t dense_pairs);

}  // namespace unkernel::engines
