#include "unkernel/poly/conjunction_search.hpp"

#include <algorithm>
#include <cmath>

#include "unkernel/poly/conjunction_visits.hpp"

namespace unkernel::poly {
namespace {

using kernels::Basis;
using kernels::Conjunction;
using kernels::Key;

// Collects the strongest of the conjunctions that one thread visits.
class StrongestCandidates {
 public:
  explicit StrongestCandidates(const SearchRequest& request) : request_(request) {}

  void visit_single(std::size_t, Key key, double sum) { visit_several(key, sum); }
  void visit_several(Key key, double sum) {
    const double strength = std::abs(sum);
    if (strength <= request_.threshold || strength < weakest_strength_) return;
    candidates_.push_back({key, strength});
    if (candidates_.size() < 2 * request_.max_results) return;
    std::nth_element(candidates_.begin(),
                     candidates_.begin() + static_cast<std::ptrdiff_t>(request_.max_results) - 1,
                     candidates_.end());
    candidates_.resize(request_.max_results);
    weakest_strength_ = candidates_.back().strength;
  }
  bool should_extend(std::size_t, double bound) const { return can_be_among_strongest(bound); }
  bool should_extend_pair(Key, double bound) const { return can_be_among_strongest(bound); }

  const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  // Returns whether a candidate with this bound can be among the strongest candidates. Allows for rounding
  // errors, because sums may be added in another order.
  bool can_be_among_strongest(double bound) const {
    constexpr double rounding = 1e-9;
    return request_.extensions == Extensions::visited && bound > request_.threshold &&
           bound * (1.0 + rounding) >= weakest_strength_;
  }

  SearchRequest request_;
  std::vector<Candidate> candidates_;
  double weakest_strength_ = 0.0;  // of the candidates; 0 while there are fewer than max_results
};

}  // namespace

LinearConstants::LinearConstants(const kernels::FeatureMap& map, bool binary, EqualColumns equal) {
  const auto root = [](double squared) { return std::sqrt(squared); };
  constant = root(map.monomial(0, 1));
  single = root(map.monomial(1, 1));
  pair = root(map.monomial(2, 1));
  triple = root(map.monomial(3, 1));
  square = root(map.monomial(2, 2));
  square_times_other = root(map.monomial(3, 2));
  cube = root(map.monomial(3, 6));
  if (!binary) return;
  if (equal == EqualColumns::all_count) {
    single = root(map.set(1));
    pair = root(map.set(2));
    triple = root(map.set(3));
  } else {
    single = std::max({single, square, cube});
    pair = std::max(pair, square_times_other);
  }
}

double LinearConstants::of(const Conjunction& conjunction) const {
  const auto& ranks = conjunction.ranks;
  const bool equal_first = ranks[0] == ranks[1];
  const bool equal_last = ranks[1] == ranks[2];
  switch (conjunction.size) {
    case 0: return constant;
    case 1: return single;
    case 2: return equal_first ? square : pair;
    default:
      if (equal_first && equal_last) return cube;
      return equal_first || equal_last ? square_times_other : triple;
  }
}

ConjunctionSearch::ConjunctionSearch(const DistinctRows& examples, const kernels::FeatureMap& map,
                                     EqualColumns equal)
    : examples_(examples),
      index_(map.degree, kernels::basis_of(examples.binary())),
      constants_(map, examples.binary(), equal),
      occurrences_(examples),
      largest_value_(static_cast<std::size_t>(examples.used_features()), 1.0) {
  for (std::size_t k = 0; k < examples.values.size(); ++k) {
    has_negative_values_ = has_negative_values_ || examples.values[k] < 0.0;
    double& largest = largest_value_[static_cast<std::size_t>(examples.features[k])];
    largest = std::max(largest, std::abs(examples.values[k]));
  }
  for (std::size_t rank = 1; rank < largest_value_.size(); ++rank) {
    largest_value_[rank] = std::max(largest_value_[rank], largest_value_[rank - 1]);
  }
}

std::vector<Candidate> ConjunctionSearch::strongest(std::span<const double> row_weights,
                                                    const SearchRequest& request,
                                                    const Monitor& monitor) const {
  std::vector<StrongestCandidates> threads(static_cast<std::size_t>(std::max(request.threads, 1)),
                                           StrongestCandidates(request));
  visit_all(row_weights, std::span(threads), monitor);
  std::vector<Candidate> all;
  for (const StrongestCandidates& thread : threads)
    all.insert(all.end(), thread.candidates().begin(), thread.candidates().end());
  std::sort(all.begin(), all.end());
  all.resize(std::min(all.size(), request.max_results));
  return all;
}

double ConjunctionSearch::value_at(const Occurrences::Place& place) const {
  if (examples_.binary()) return 1.0;
  return examples_.values[static_cast<std::size_t>(examples_.offsets[static_cast<std::size_t>(place.row)] +
                                                   place.position)];
}

}  // namespace unkernel::poly
