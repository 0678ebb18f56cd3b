#include "unkernel/poly/conjunction_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unkernel/base/gather.hpp"
#include "unkernel/base/parallel.hpp"

namespace unkernel::poly {
namespace {

using kernels::Basis;
using kernels::Conjunction;
using kernels::Key;

// The larger of the positive and the negative part of a sum, given the sum and that of the absolute values.
double larger_side(double sum, double mass) { return 0.5 * (mass + std::abs(sum)); }

}  // namespace

LinearConstants::LinearConstants(const kernels::FeatureMap& map, bool binary) {
  const auto root = [](double squared) { return std::sqrt(squared); };
  constant = root(map.monomial(0, 1));
  single = root(map.monomial(1, 1));
  pair = root(map.monomial(2, 1));
  triple = root(map.monomial(3, 1));
  square = root(map.monomial(2, 2));
  square_times_other = root(map.monomial(3, 2));
  cube = root(map.monomial(3, 6));
  if (binary) {
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

ConjunctionSearch::ConjunctionSearch(const DistinctRows& examples, const kernels::FeatureMap& map)
    : examples_(examples),
      index_(map.degree, examples.binary() ? Basis::sets : Basis::monomials),
      constants_(map, examples.binary()),
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

// The candidates and buffers of one thread.
struct ConjunctionSearch::Worker {
  // A row that contains the current prefix, its features before the last one of the prefix, and its weight
  // times the prefix.
  struct Prefixed {
    const std::int32_t* features;
    const double* values;
    std::int32_t count;
    double weight;
  };

  Worker(std::size_t used_features, const SearchRequest& wanted)
      : request(wanted), sums(used_features, 0.0), masses(used_features, 0.0), starts(used_features + 1, 0) {}

  void offer(Key key, double strength) {
    if (strength <= request.threshold || strength < floor) return;
    found.push_back({key, strength});
    if (found.size() < 2 * request.most) return;
    std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(request.most) - 1,
                     found.end());
    found.resize(request.most);
    floor = found.back().strength;
  }
  // Whether no candidate up to this bound can be wanted. The margin allows for sums in another order.
  bool out_of_reach(double bound) const { return bound <= request.threshold || bound * (1.0 + 1e-9) < floor; }

  // Sums the rows' weights by feature and, if requested, their absolute values.
  template <bool Binary, bool Masses>
  void add(std::span<const Prefixed> summands) {
    for (const Prefixed& row : summands) {
      const auto count = static_cast<std::size_t>(row.count);
      scatter<Binary>(sums.data(), row.features, row.values, count, row.weight);
      if constexpr (Masses) {
        for (std::size_t k = 0; k < count; ++k) {
          masses[static_cast<std::size_t>(row.features[k])] +=
              std::abs(Binary ? row.weight : row.weight * row.values[k]);
        }
      }
    }
  }

  // Calls visit(feature, sum, mass) for the features below `limit` that have sums, and resets both to 0.
  template <class Visit>
  void drain(std::span<const Prefixed> summands, std::size_t limit, const Visit& visit) {
    const auto take = [&](std::size_t feature) {
      const double sum = sums[feature];
      const double mass = masses[feature];
      if (sum == 0.0 && mass == 0.0) return;
      sums[feature] = masses[feature] = 0.0;
      visit(feature, sum, mass);
    };
    std::size_t entries = 0;
    for (const Prefixed& row : summands) entries += static_cast<std::size_t>(row.count);
    if (entries >= limit) {
      for (std::size_t feature = 0; feature < limit; ++feature) take(feature);
      return;
    }
    for (const Prefixed& row : summands) {
      for (std::int32_t k = 0; k < row.count; ++k) take(static_cast<std::size_t>(row.features[k]));
    }
  }

  SearchRequest request;
  std::vector<Candidate> found;
  double floor = 0.0;  // the weakest candidate, once as many as wanted have been found
  std::vector<double> sums, masses;
  std::vector<Prefixed> rows;        // with the first feature
  std::vector<std::size_t> seconds;  // features whose triples must be examined
  std::vector<std::int32_t> starts;  // by feature: number of its rows, then where they begin in `pairs`
  std::vector<Prefixed> pairs;       // rows by second feature
};

template <bool Binary>
void ConjunctionSearch::visit(std::size_t rank, std::span<const double> row_weights, Worker& worker) const {
  worker.rows.clear();
  double sum = 0.0;
  double mass = 0.0;
  for (const Occurrences::Place& place : occurrences_.of(rank)) {
    const auto row = static_cast<std::size_t>(place.row);
    if (row_weights[row] == 0.0) continue;
    const auto begin = static_cast<std::size_t>(examples_.offsets[row]);
    const double* values = Binary ? nullptr : examples_.values.data() + begin;
    const double weight = Binary ? row_weights[row] : row_weights[row] * values[place.position];
    worker.rows.push_back(
        {examples_.features.data() + begin, values, place.position + (Binary ? 0 : 1), weight});
    sum += weight;
    mass += std::abs(weight);
  }
  const Key block = index_.block(rank);
  worker.offer(block, constants_.single * std::abs(sum));
  if (index_.degree() == 1) return;
  const double reach = largest_value_[rank];
  const double pair = Binary ? constants_.pair : std::max(constants_.pair, constants_.square);
  const double triple = Binary
                            ? constants_.triple
                            : std::max({constants_.triple, constants_.square_times_other, constants_.cube});
  const auto side = [&](double s, double m) { return signed_values_ ? m : larger_side(s, m); };
  if (worker.out_of_reach(side(sum, mass) * std::max(pair * reach, triple * reach * reach))) return;

  const bool deeper = index_.degree() == 3;
  deeper ? worker.add<Binary, true>(worker.rows) : worker.add<Binary, false>(worker.rows);
  worker.seconds.clear();
  worker.drain(worker.rows, rank + (Binary ? 0 : 1), [&](std::size_t b, double s, double m) {
    worker.offer(block + 1 + b, (b == rank ? constants_.square : constants_.pair) * std::abs(s));
    if (deeper && !worker.out_of_reach(side(s, m) * triple * largest_value_[b])) worker.seconds.push_back(b);
  });
  if (!worker.seconds.empty()) visit_triples<Binary>(rank, worker);
}

template <bool Binary>
void ConjunctionSearch::visit_triples(std::size_t rank, Worker& worker) const {
  std::sort(worker.seconds.begin(), worker.seconds.end());
  // Buckets by second feature: -1 marks those that are out of reach.
  auto& starts = worker.starts;
  std::fill(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(rank) + 1, -1);
  for (const std::size_t b : worker.seconds) starts[b] = 0;
  for (const auto& row : worker.rows) {
    for (std::int32_t k = 0; k < row.count; ++k) {
      auto& count = starts[static_cast<std::size_t>(row.features[k])];
      if (count >= 0) ++count;
    }
  }
  std::int32_t total = 0;
  for (const std::size_t b : worker.seconds) total += std::exchange(starts[b], total);
  worker.pairs.resize(static_cast<std::size_t>(total));
  for (const auto& row : worker.rows) {
    for (std::int32_t k = 0; k < row.count; ++k) {
      auto& place = starts[static_cast<std::size_t>(row.features[k])];
      if (place < 0) continue;
      worker.pairs[static_cast<std::size_t>(place++)] = {row.features, row.values, k + (Binary ? 0 : 1),
                                                         Binary ? row.weight : row.weight * row.values[k]};
    }
  }
  const Key triples = index_.block(rank) + index_.triples(rank);
  std::size_t begin = 0;
  for (const std::size_t b : worker.seconds) {
    const auto end = static_cast<std::size_t>(starts[b]);  // advanced to its end while filling
    const std::span<const Worker::Prefixed> rows(worker.pairs.data() + begin, end - begin);
    begin = end;
    worker.add<Binary, false>(rows);
    const Key base = triples + index_.triangle(b);
    worker.drain(rows, b + (Binary ? 0 : 1), [&](std::size_t c, double s, double) {
      const double constant = b == rank && c == b   ? constants_.cube
                              : b == rank || c == b ? constants_.square_times_other
                                                    : constants_.triple;
      worker.offer(base + c, constant * std::abs(s));
    });
  }
}

std::vector<Candidate> ConjunctionSearch::strongest(std::span<const double> row_weights,
                                                    const SearchRequest& request,
                                                    const Monitor& monitor) const {
  const auto features = static_cast<std::size_t>(examples_.used_features());
  std::vector<Worker> workers;
  for (int slot = 0; slot < std::max(request.threads, 1); ++slot) workers.emplace_back(features, request);
  parallel_slots(request.threads, examples_.used_features(), [&](std::size_t slot, std::int64_t rank) {
    monitor.throw_if_stopped();
    const auto r = static_cast<std::size_t>(rank);
    examples_.binary() ? visit<true>(r, row_weights, workers[slot])
                       : visit<false>(r, row_weights, workers[slot]);
  });
  std::vector<Candidate> all;
  for (const Worker& worker : workers) all.insert(all.end(), worker.found.begin(), worker.found.end());
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
  const Conjunction conjunction = index_.decode(key);
  const bool binary = examples_.binary();
  if (conjunction.size == 0) {
    for (std::int64_t i = 0; i < examples_.rows(); ++i) {
      binary ? columns.add_entry(static_cast<std::int32_t>(i))
             : columns.add_entry(static_cast<std::int32_t>(i), 1.0);
    }
    return columns.finish(constants_.constant);
  }
  std::vector<Held> rows;
  for (const Occurrences::Place& place : occurrences_.of(conjunction.ranks[0]))
    rows.push_back({place, value_at(place)});
  for (int k = 1; k < conjunction.size; ++k) keep_holders(conjunction.ranks[k], rows);
  for (const Held& held : rows) {
    binary ? columns.add_entry(held.place.row) : columns.add_entry(held.place.row, held.product);
  }
  columns.finish(constants_.of(conjunction));
}

}  // namespace unkernel::poly
