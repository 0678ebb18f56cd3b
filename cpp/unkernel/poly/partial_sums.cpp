#include "unkernel/poly/partial_sums.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "unkernel/base/random.hpp"
#include "unkernel/poly/conjunction_visits.hpp"

namespace unkernel::poly {
namespace {

using kernels::Key;

// Returns the bucket of a key. All processes compute the same bucket.
std::size_t bucket_of(Key key, std::size_t buckets) {
  return static_cast<std::size_t>(Random::mix(key)) & (buckets - 1);
}

void check_buckets(std::size_t buckets) {
  if (!std::has_single_bit(buckets))
    throw std::invalid_argument("the number of buckets must be a power of two");
}

class FeatureVisitor {
 public:
  explicit FeatureVisitor(FeatureBounds& result) : bounds_(result) {}

  void visit_single(std::size_t rank, Key, double sum) { bounds_.sums[rank] = sum; }
  void visit_several(Key, double) {}
  bool should_extend(std::size_t rank, double bound) {
    bounds_.bounds[rank] = bound;
    return false;
  }
  bool should_extend_pair(Key, double) { return false; }

 private:
  FeatureBounds& bounds_;  // threads write to different ranks
};

class LiveVisitor {
 public:
  explicit LiveVisitor(const LiveConjunctions& live) : live_(live) {}

  void visit_single(std::size_t, Key, double) {}  // step 1 has summed single features
  bool should_extend(std::size_t rank, double) const { return live_.features[rank] != 0; }
  bool should_extend_pair(Key key, double) const {
    return !live_.pair_buckets.empty() && live_.pair_buckets[bucket_of(key, live_.pair_buckets.size())] != 0;
  }

 private:
  LiveConjunctions live_;
};

class BucketVisitor : public LiveVisitor {
 public:
  BucketVisitor(const LiveConjunctions& live, std::size_t buckets)
      : LiveVisitor(live), largest(buckets, 0.0), smallest(buckets, 0.0), below(buckets, 0.0) {}

  void visit_several(Key key, double sum) {
    const std::size_t bucket = bucket_of(key, largest.size());
    largest[bucket] = std::max(largest[bucket], sum);
    smallest[bucket] = std::min(smallest[bucket], sum);
  }
  bool should_extend_pair(Key key, double bound) {
    double& largest_bound = below[bucket_of(key, below.size())];
    largest_bound = std::max(largest_bound, bound);
    return LiveVisitor::should_extend_pair(key, bound);
  }

  std::vector<double> largest, smallest, below;
};

class SumVisitor : public LiveVisitor {
 public:
  SumVisitor(const LiveConjunctions& live, std::span<const std::uint8_t> requested_buckets)
      : LiveVisitor(live), requested_buckets_(requested_buckets) {}

  void visit_several(Key key, double sum) {
    if (requested_buckets_[bucket_of(key, requested_buckets_.size())] != 0) result.push_back({key, sum});
  }

  std::vector<std::pair<Key, double>> result;

 private:
  std::span<const std::uint8_t> requested_buckets_;
};

}  // namespace

FeatureBounds feature_bounds(const ConjunctionSearch& search, std::span<const double> row_weights,
                             std::size_t features, int threads, const Monitor& monitor) {
  FeatureBounds result{std::vector<double>(features, 0.0), std::vector<double>(features, 0.0)};
  std::vector<FeatureVisitor> visitors(static_cast<std::size_t>(std::max(threads, 1)),
                                       FeatureVisitor(result));
  search.visit_all(row_weights, std::span(visitors), monitor);
  return result;
}

BucketBounds bucket_bounds(const ConjunctionSearch& search, std::span<const double> row_weights,
                           const LiveConjunctions& live, std::size_t buckets, int threads,
                           const Monitor& monitor) {
  check_buckets(buckets);
  std::vector<BucketVisitor> visitors(static_cast<std::size_t>(std::max(threads, 1)),
                                      BucketVisitor(live, buckets));
  search.visit_all(row_weights, std::span(visitors), monitor);
  BucketVisitor& all = visitors.front();
  for (const BucketVisitor& other : std::span(visitors).subspan(1)) {
    for (std::size_t b = 0; b < buckets; ++b) {
      all.largest[b] = std::max(all.largest[b], other.largest[b]);
      all.smallest[b] = std::min(all.smallest[b], other.smallest[b]);
      all.below[b] = std::max(all.below[b], other.below[b]);
    }
  }
  return {std::move(all.largest), std::move(all.smallest), std::move(all.below)};
}

ConjunctionSums sums_in_buckets(const ConjunctionSearch& search, std::span<const double> row_weights,
                                const LiveConjunctions& live, std::span<const std::uint8_t> requested_buckets,
                                int threads, const Monitor& monitor) {
  check_buckets(requested_buckets.size());
  std::vector<SumVisitor> visitors(static_cast<std::size_t>(std::max(threads, 1)),
                                   SumVisitor(live, requested_buckets));
  search.visit_all(row_weights, std::span(visitors), monitor);
  std::vector<std::pair<Key, double>> all;
  for (const SumVisitor& visitor : visitors)
    all.insert(all.end(), visitor.result.begin(), visitor.result.end());
  std::sort(all.begin(), all.end());
  ConjunctionSums sums;
  for (const auto& [key, sum] : all) {
    sums.keys.push_back(key);
    sums.sums.push_back(sum);
  }
  return sums;
}

}  // namespace unkernel::poly
