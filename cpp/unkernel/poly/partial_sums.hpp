// Finds the strongest conjunctions if rows are divided into several parts and each part can sum only its own
// rows.
//
// A conjunction with sum s_k in part k has the strength |sum_k s_k|. Conjunctions whose strength exceeds a
// threshold are found in three steps with small messages:
//
// 1. Features: for each feature, each part sends the feature's sum, and a bound of the sums of longer
//    conjunctions whose rarest feature it is (conjunction_search.hpp). If the bounds of all parts add up to
//    at most the threshold, no longer conjunction can exceed the threshold. All other features are *live*.
// 2. Buckets: longer conjunctions of live features are hashed into buckets. For each bucket, each part sends
//    its largest and its smallest sum. Added up over the parts, these sums bound all strengths in the bucket.
//    Triples need two rounds: the first bounds the triples that extend the pairs of a bucket.
// 3. Sums: for conjunctions in buckets whose bound exceeds the threshold, each part sends key and sum.
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
  std::vector<double> bounds;  // by rank: for longer conjunctions whose rarest feature has this rank
};

struct BucketBounds {
  std::vector<double> largest, smallest;  // of the sums; 0 if no sum has that sign
  std::vector<double> below;              // bounds of the triples that extend pairs in the bucket
};

struct ConjunctionSums {
  std::vector<kernels::Key> keys;  // ascending
  std::vector<double> sums;
};

// Selects the conjunctions to visit. Flags are bytes, 0 or 1; the number of buckets is a power of two.
struct LiveConjunctions {
  std::span<const std::uint8_t> features;      // by rank
  std::span<const std::uint8_t> pair_buckets;  // buckets of pairs whose triples are visited; empty for none
};

FeatureBounds feature_bounds(const ConjunctionSearch& search, std::span<const double> row_weights,
                             std::size_t features, int threads, const Monitor& monitor);

BucketBounds bucket_bounds(const ConjunctionSearch& search, std::span<const double> row_weights,
                           const LiveConjunctions& live, std::size_t buckets, int threads,
                           const Monitor& monitor);

ConjunctionSums sums_in_buckets(const ConjunctionSearch& search, std::span<const double> row_weights,
                                const LiveConjunctions& live, std::span<const std::uint8_t> requested_buckets,
                                int threads, const Monitor& monitor);

}  // namespace unkernel::poly
