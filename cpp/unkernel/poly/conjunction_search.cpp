#include "unkernel/poly/conjunction_search.hpp"

#include <algorithm>
#include <cmath>

#include "unkernel/poly/conjunction_visits.hpp"

namespace unkernel::poly {
namespace {

using kernels::Basis;
using kernels::Conjunction;
using kernels::Key;

// The strongest of all conjunctions that one thread has seen.
class Strongest {
 public:
  explicit Strongest(const SearchRequest& request) : request_(request) {}

  void single(std::size_t, Key key, double sum) { longer(key, sum); }
  void longer(Key key, double sum) {
    const double strength = std::abs(sum);
    if (strength <= request_.threshold || strength < floor_) return;
    found_.push_back({key, strength});
    if (found_.size() < 2 * request_.most) return;
    std::nth_element(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(request_.most) - 1,
                     found_.end());
    found_.resize(request_.most);
    floor_ = found_.back().strength;
  }
  bool follow(std::size_t, double bound) const { return within_reach(bound); }
  bool follow_pair(Key, double bound) const { return within_reach(bound); }

  const std::vector<Candidate>& found() const { return found_; }

 private:
  // Returns whether a candidate with this bound may be among the strongest. The margin allows for other
  // orders of summation.
  bool within_reach(double bound) const {
    return bound > request_.threshold && bound * (1.0 + 1e-9) >= floor_;
  }

  SearchRequest request_;
  std::vector<Candidate> found_;
  double floor_ = 0.0;  // the weakest candidate, once enough candidates are known
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
  const bool first_two = ranks[0] == ranks[1];
  const bool last_two = ranks[1] == ranks[2];
  switch (conjunction.size) {
    case 0: return constant;
    case 1: return single;
    case 2: return first_two ? square : pair;
    default: return first_two && last_two ? cube : first_two || last_two ? square_times_other : triple;
  }
}

ConjunctionSearch::ConjunctionSearch(const DistinctRows& examples, const kernels::FeatureMap& map,
                                     EqualColumns equal)
    : examples_(examples),
      index_(map.degree, examples.binary() ? Basis::sets : Basis::monomials),
      constants_(map, examples.binary(), equal),
      occurrences_(examples),
      largest_value_(static_cast<std::size_t>(examples.used_features()), 1.0) {
  for (std::size_t k = 0; k < examples.values.size(); ++k) {
    signed_values_ = signed_values_ || examples.values[k] < 0.0;
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
  std::vector<Strongest> threads(static_cast<std::size_t>(std::max(request.threads, 1)), Strongest(request));
  visit_all(row_weights, std::span(threads), monitor);
  std::vector<Candidate> all;
  for (const Strongest& thread : threads) all.insert(all.end(), thread.found().begin(), thread.found().end());
  std::sort(all.begin(), all.end());
  all.resize(std::min(all.size(), request.most));
  return all;
}

double ConjunctionSearch::value_at(const Occurrences::Place& place) const {
  if (examples_.binary()) return 1.0;
  return examples_.values[static_cast<std::size_t>(examples_.offsets[static_cast<std::size_t>(place.row)] +
                                                   place.position)];
}

// Merges with the feature's own rows, unless these are so many more that a search in each row is faster.
void ConjunctionSearch::keep_holders(std::size_t rank, std::vector<Held>& rows) const {
  constexpr std::size_t many = 8;
  const auto holders = occurrences_.of(rank);
  auto next = holders.begin();
  std::size_t kept = 0;
  for (const Held& held : rows) {
    Occurrences::Place place{held.place.row, 0};
    if (holders.size() <= many * rows.size()) {
      while (next != holders.end() && next->row < held.place.row) ++next;
      if (next == holders.end()) break;
      if (next->row != held.place.row) continue;
      place = *next;
    } else {
      const std::int32_t* first =
          examples_.features.data() + examples_.offsets[static_cast<std::size_t>(held.place.row)];
      const std::int32_t* last = first + held.place.position + 1;
      const std::int32_t* found = std::lower_bound(first, last, static_cast<std::int32_t>(rank));
      if (found == last || *found != static_cast<std::int32_t>(rank)) continue;
      place.position = static_cast<std::int32_t>(found - first);
    }
    rows[kept++] = {held.place, held.product * value_at(place)};
  }
  rows.resize(kept);
}

void ConjunctionSearch::append_column(Key key, solve::SparseColumns& columns) const {
  append_entries(key, columns);
  columns.finish(constant_of(key));
}

void ConjunctionSearch::append_entries(Key key, solve::SparseColumns& columns) const {
  const Conjunction conjunction = index_.decode(key);
  const bool binary = examples_.binary();
  if (conjunction.size == 0) {
    for (std::int64_t i = 0; i < examples_.rows(); ++i) {
      binary ? columns.add_entry(static_cast<std::int32_t>(i))
             : columns.add_entry(static_cast<std::int32_t>(i), 1.0);
    }
    return;
  }
  std::vector<Held> rows;
  for (const Occurrences::Place& place : occurrences_.of(conjunction.ranks[0]))
    rows.push_back({place, value_at(place)});
  for (int k = 1; k < conjunction.size; ++k) keep_holders(conjunction.ranks[k], rows);
  for (const Held& held : rows) {
    binary ? columns.add_entry(held.place.row) : columns.add_entry(held.place.row, held.product);
  }
}

}  // namespace unkernel::poly
