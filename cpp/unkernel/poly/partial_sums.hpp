// Finds the strongest conjunctions when the rows are divided into parts, and each part can sum over its own
// rows only.
//
// If a conjunction has the sum s_k in part k, its strength is |sum_k s_k|. Three steps with small messages
// find all conjunctions whose strength exceeds a threshold:
//
// 1. Features: each part sends, for each feature, its sum, and a bound on the sums of the longer conjunctions
//    whose rarest feature it is (conjunction_search.hpp). If the bounds of all parts add up to at most the
//    threshold, no longer conjunction can exceed the threshold. All other features are *live*.
// 2. Buckets: the longer conjunctions of live features are hashed into buckets. Each part sends the largest
//    and the smallest sum in each bucket. Added up over the parts, these bound all strengths in the bucket.
//    Triples need two rounds: the first bounds the triples that extend the pairs of a bucket.
// 3. Sums: each part sends the keys and sums of conjunctions in buckets whose bound exceeds the threshold.
//
// Cost     each step visits every conjunction of the part's live features once. Memory: 16 bytes per bucket
//          and thread, 24 for degree 3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/poly/conjunction_search.hpp"

namespace unkernel::poly {

struct FeatureBounds {
  std::vector<double> sums;    // by rank
  std::vector<double> bounds;  // by rank: bounds for longer conjunctions whose rarest feature has this rank
};

struct BucketBounds {
  std::vector<double> largest, smallest;  // sums in each bucket; 0 if no sum has that sign
  std::vector<double> below;              // bounds for triples that extend pairs of the bucket
};

struct ConjunctionSums {
  std::vector<kernels::Key> keys;  // ascending
  std::vector<double> sums;
};

// Selects the conjunctions to visit. Flags are the bytes 0 and 1; the number of buckets is a power of two.
struct LiveConjunctions {
  std::span<const std::uint8_t> features;      // by rank
  std::span<const std::uint8_t> pair_buckets;  // flags of pairs whose triples are visited; empty for none
};

// These functions compute the messages of one part in steps 1 to 3.
FeatureBounds feature_bounds(const ConjunctionSearch& search, std::span<const double> row_weights,
                             std::size_t features, int threads, const Monitor& monitor);

BucketBounds bucket_bounds(const ConjunctionSearch& search, std::span<const double> row_weights,
                           const LiveConjunctions& live, std::size_t buckets, int threads,
                           const Monitor& monitor);

ConjunctionSums sums_in_buckets(const ConjunctionSearch& search, std::span<const double> row_weights,
                                const LiveConjunctions& live, std::span<const std::uint8_t> requested_buckets,
                                int threads, const Monitor& monitor);

}  // namespace unkernel::poly
