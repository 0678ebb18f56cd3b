// The engine of models of pairs, several scores and short weights: whole multiples of one power of two, 16
// bits each, as those of our online learners are. They take a quarter of the room of doubles, which is what
// rows miss the cache on, and sums of integers are exact in whatever order they are made.
//
// Features have ranks by descending frequency. Of the first ones, all pairs are in a dense table: a feature's
// weights with every smaller rank, then its own. A later feature, the owner, has a hash table of its partners
// among all before it, in buckets that never overflow: one load of 16 bytes says whether a pair is there, and
// where.
//
// Many models have features that form no pairs with each other, such as the side features of a parser's
// templates: all columns from some number on. Among the dense ones these have pairs with the others only, the
// core, and no time is lost on theirs.
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

// How many pairs the dense table may have: about as many as the model has.
std::uint64_t dense_pairs_for(const ConjunctionWeights& model);

// Nothing where the model is another. Throws std::invalid_argument where it cannot be one at all.
std::unique_ptr<Engine> make_int16_pair_engine(const ConjunctionWeights& model, std::uint64_t dense_pairs);

}  // namespace unkernel::engines
