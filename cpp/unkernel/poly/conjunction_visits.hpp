// Visits the conjunctions of some rows with their sums, and skips extensions that the visitor rejects. Only
// conjunction_search.cpp, partial_sums.cpp and weight_curvatures.cpp include this file.
//
// A visitor has the functions
//   visit_single(rank, key, sum)     receives a feature, with its sum times its constant
//   visit_several(key, sum)          receives a conjunction of several features, likewise
//   should_extend(rank, bound)       returns whether to visit the extensions of a first feature; their
//                                    strengths are at most `bound`
//   should_extend_pair(key, bound)   returns whether to visit the extensions of a pair, with the same bound
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/base/gather.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/poly/conjunction_search.hpp"

namespace unkernel::poly {

// Returns the sum of the positive or of the absolute negative terms, whichever is larger. `sum` adds up all
// terms, `mass` their absolute values.
inline double larger_side(double sum, double mass) { return 0.5 * (mass + std::abs(sum)); }

// The buffers of one thread.
struct ConjunctionSearch::Buffers {
  // A row that contains the current prefix. `features` and `values` are those before the prefix's last
  // feature; `weight` is the weight of the row times the value of the prefix.
  struct Prefixed {
    const std::int32_t* features;
    const double* values;
    std::int32_t count;
    double weight;
  };

  explicit Buffers(std::size_t used_features)
      : sums(used_features, 0.0), masses(used_features, 0.0), starts(used_features + 1, 0) {}

  // Adds each row's weight to `sums` for each of the row's features; with Masses, adds its absolute value to
  // `masses`.
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

  // Calls visit(feature, sum, mass) for the features below `limit` with a non-zero sum or mass, and resets
  // both to 0.
  template <class Visit>
  void take_sums(std::span<const Prefixed> summands, std::size_t limit, const Visit& visit) {
    const auto take_sum = [&](std::size_t feature) {
      const double sum = sums[feature];
      const double mass = masses[feature];
      if (sum == 0.0 && mass == 0.0) return;
      sums[feature] = masses[feature] = 0.0;
      visit(feature, sum, mass);
    };
    std::size_t entries = 0;
    for (const Prefixed& row : summands) entries += static_cast<std::size_t>(row.count);
    if (entries >= limit) {
      for (std::size_t feature = 0; feature < limit; ++feature) take_sum(feature);
      return;
    }
    for (const Prefixed& row : summands) {
      for (std::int32_t k = 0; k < row.count; ++k) take_sum(static_cast<std::size_t>(row.features[k]));
    }
  }

  std::vector<double> sums, masses;
  std::vector<Prefixed> rows;        // that contain the first feature
  std::vector<std::size_t> seconds;  // second features whose triples are visited
  std::vector<std::int32_t> starts;  // by feature: the number of its rows, then where they begin in `pairs`
  std::vector<Prefixed> pairs;       // rows, grouped by second feature
};

template <bool Binary, class Visitor>
void ConjunctionSearch::visit(std::size_t rank, std::span<const double> row_weights, Buffers& buffers,
                              Visitor& visitor) const {
  buffers.rows.clear();
  double sum = 0.0;
  double mass = 0.0;
  for (const Occurrences::Place& place : occurrences_.of(rank)) {
    const auto row = static_cast<std::size_t>(place.row);
    if (row_weights[row] == 0.0) continue;
    const auto begin = static_cast<std::size_t>(examples_.offsets[row]);
    const double* values = Binary ? nullptr : examples_.values.data() + begin;
    const double weight = Binary ? row_weights[row] : row_weights[row] * values[place.position];
    buffers.rows.push_back(
        {examples_.features.data() + begin, values, place.position + (Binary ? 0 : 1), weight});
    sum += weight;
    mass += std::abs(weight);
  }
  const kernels::Key block = index_.block(rank);
  visitor.visit_single(rank, block, constants_.single * sum);
  if (index_.degree() == 1) return;
  const double reach = largest_value_[rank];
  const double pair = Binary ? constants_.pair : std::max(constants_.pair, constants_.square);
  const double triple = Binary
                            ? constants_.triple
                            : std::max({constants_.triple, constants_.square_times_other, constants_.cube});
  const auto side = [&](double s, double m) { return has_negative_values_ ? m : larger_side(s, m); };
  if (!visitor.should_extend(rank, side(sum, mass) * std::max(pair * reach, triple * reach * reach))) return;

  const bool has_triples = index_.degree() == 3;
  has_triples ? buffers.add<Binary, true>(buffers.rows) : buffers.add<Binary, false>(buffers.rows);
  buffers.seconds.clear();
  buffers.take_sums(buffers.rows, rank + (Binary ? 0 : 1), [&](std::size_t b, double s, double m) {
    const kernels::Key key = block + 1 + b;
    visitor.visit_several(key, (b == rank ? constants_.square : constants_.pair) * s);
    if (has_triples && visitor.should_extend_pair(key, side(s, m) * triple * largest_value_[b]))
      buffers.seconds.push_back(b);
  });
  if (!buffers.seconds.empty()) visit_triples<Binary>(rank, buffers, visitor);
}

template <bool Binary, class Visitor>
void ConjunctionSearch::visit_triples(std::size_t rank, Buffers& buffers, Visitor& visitor) const {
  std::sort(buffers.seconds.begin(), buffers.seconds.end());
  // Group rows by second feature; -1 marks features whose triples are skipped.
  auto& starts = buffers.starts;
  std::fill(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(rank) + 1, -1);
  for (const std::size_t b : buffers.seconds) starts[b] = 0;
  for (const auto& row : buffers.rows) {
    for (std::int32_t k = 0; k < row.count; ++k) {
      auto& count = starts[static_cast<std::size_t>(row.features[k])];
      if (count >= 0) ++count;
    }
  }
  std::int32_t total = 0;
  for (const std::size_t b : buffers.seconds) total += std::exchange(starts[b], total);
  buffers.pairs.resize(static_cast<std::size_t>(total));
  for (const auto& row : buffers.rows) {
    for (std::int32_t k = 0; k < row.count; ++k) {
      auto& place = starts[static_cast<std::size_t>(row.features[k])];
      if (place < 0) continue;
      buffers.pairs[static_cast<std::size_t>(place++)] = {row.features, row.values, k + (Binary ? 0 : 1),
                                                          Binary ? row.weight : row.weight * row.values[k]};
    }
  }
  const kernels::Key triples = index_.block(rank) + index_.triples(rank);
  std::size_t begin = 0;
  for (const std::size_t b : buffers.seconds) {
    const auto end = static_cast<std::size_t>(starts[b]);  // filling moved it to the group's end
    const std::span<const Buffers::Prefixed> rows(buffers.pairs.data() + begin, end - begin);
    begin = end;
    buffers.add<Binary, false>(rows);
    const kernels::Key base = triples + index_.triangle(b);
    buffers.take_sums(rows, b + (Binary ? 0 : 1), [&](std::size_t c, double s, double) {
      double constant = constants_.triple;
      if (b == rank || c == b) constant = constants_.square_times_other;
      if (b == rank && c == b) constant = constants_.cube;
      visitor.visit_several(base + c, constant * s);
    });
  }
}

// Uses one thread per visitor.
template <class Visitor>
void ConjunctionSearch::visit_all(std::span<const double> row_weights, std::span<Visitor> visitors,
                                  const Monitor& monitor) const {
  const auto features = static_cast<std::size_t>(examples_.used_features());
  std::vector<Buffers> buffers(visitors.size(), Buffers(features));
  parallel_slots(static_cast<int>(visitors.size()), examples_.used_features(),
                 [&](std::size_t slot, std::int64_t rank) {
                   monitor.throw_if_stopped();
                   const auto r = static_cast<std::size_t>(rank);
                   examples_.binary() ? visit<true>(r, row_weights, buffers[slot], visitors[slot])
                                      : visit<false>(r, row_weights, buffers[slot], visitors[slot]);
                 });
}

}  // namespace unkernel::poly
