// Lists conjunctions by plain loops, and weighs them by the formula of the kernel expansion.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "unkernel/kernels/conjunction_index.hpp"
#include "unkernel/kernels/feature_map.hpp"

namespace brute_force {

using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;
using unkernel::kernels::Key;

using Ranks = std::vector<std::uint64_t>;  // descending

// Appends to `list` all conjunctions of `size` members that begin with `prefix`, which ends with
// candidates[last]. `may_repeat` is 1 if a feature may occur repeatedly (monomials), and 0 otherwise (sets).
inline void complete(const Ranks& candidates, std::size_t last, std::size_t size, std::size_t may_repeat,
                     Ranks& prefix, std::vector<Ranks>& list) {
  if (prefix.size() == size) return list.push_back(prefix);
  for (std::size_t next = 0; next < last + may_repeat; ++next) {
    prefix.push_back(candidates[next]);
    complete(candidates, next, size, may_repeat, prefix, list);
    prefix.pop_back();
  }
}

// Returns all conjunctions of `candidates` (ascending) with at most `degree` members, in the order of their
// numbers.
inline std::vector<Ranks> conjunctions(const Ranks& candidates, int degree, Basis basis) {
  const std::size_t may_repeat = basis == Basis::monomials ? 1 : 0;
  std::vector<Ranks> list{{}};
  for (std::size_t a = 0; a < candidates.size(); ++a) {
    for (std::size_t size = 1; size <= static_cast<std::size_t>(degree); ++size) {
      Ranks prefix{candidates[a]};
      complete(candidates, a, size, may_repeat, prefix, list);
    }
  }
  return list;
}

inline std::vector<Ranks> all_conjunctions(std::uint64_t features, int degree, Basis basis) {
  Ranks candidates;
  for (std::uint64_t rank = 0; rank < features; ++rank) candidates.push_back(rank);
  return conjunctions(candidates, degree, basis);
}

// The number of a conjunction, found by counting its predecessors.
class Numbering {
 public:
  Numbering(std::uint64_t features, int degree, Basis basis)
      : features_(features), may_repeat_(basis == Basis::monomials ? 1 : 0) {
    counts_.emplace_back(features + 2, 1);
    for (int size = 1; size <= degree; ++size) {
      std::vector<Key> of_size{0};
      for (std::uint64_t a = 0; a <= features; ++a)
        of_size.push_back(of_size[a] + counts_.back()[a + may_repeat_]);
      counts_.push_back(std::move(of_size));
    }
  }

  Key operator()(const Ranks& ranks) const {
    if (ranks.empty()) return 0;
    Key before = count_of_first(ranks[0]);
    for (std::size_t size = 1; size < ranks.size(); ++size)
      before += counts_[size - 1][ranks[0] + may_repeat_];
    for (std::size_t i = 1; i < ranks.size(); ++i) before += counts_[ranks.size() - i][ranks[i]];
    return before;
  }
  Key count() const { return count_of_first(features_); }

 private:
  // Returns the number of conjunctions of the first n ranks.
  Key count_of_first(std::uint64_t n) const {
    Key total = 0;
    for (const auto& of_size : counts_) total += of_size[n];
    return total;
  }

  std::uint64_t features_;
  std::uint64_t may_repeat_;
  // [size][n]: conjunctions of exactly `size` features among the first n ranks.
  std::vector<std::vector<Key>> counts_;
};

inline double factorial(int n) { return n <= 1 ? 1.0 : n * factorial(n - 1); }

// Returns c^2 of a monomial with these exponents: its coefficient in (gamma x'z + r)^d, or 1 in the plain
// map.
inline double squared_constant(const FeatureMap& map, const std::vector<int>& exponents) {
  int order = 0;
  double repeats = 1.0;
  for (const int exponent : exponents) {
    order += exponent;
    repeats *= factorial(exponent);
  }
  if (order > map.degree) return 0.0;
  if (map.kind == FeatureMap::Kind::plain) return 1.0;
  double value =
      factorial(map.degree) / (factorial(order) * factorial(map.degree - order)) * factorial(order) / repeats;
  for (int i = 0; i < order; ++i) value *= map.gamma;
  for (int i = order; i < map.degree; ++i) value *= map.coef0;
  return value;
}

// Calls visit(exponents) for all exponents >= 1 of `size` features that sum to at most `degree`.
inline void for_each_exponents(int size, int degree,
                               const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> exponents(static_cast<std::size_t>(size), 1);
  const std::function<void(std::size_t, int)> fill = [&](std::size_t place, int remaining) {
    if (place == exponents.size()) return visit(exponents);
    const int min_others = size - static_cast<int>(place) - 1;
    for (exponents[place] = 1; exponents[place] + min_others <= remaining; ++exponents[place]) {
      fill(place + 1, remaining - exponents[place]);
    }
  };
  fill(0, degree);
}

// Returns c^2 of a monomial or, for sets, the sum of c^2 over all monomials with the same members.
inline double squared_constant(const FeatureMap& map, Basis basis, const Ranks& ranks) {
  if (basis == Basis::sets) {
    double sum = 0.0;
    for_each_exponents(static_cast<int>(ranks.size()), map.degree,
                       [&](const std::vector<int>& exponents) { sum += squared_constant(map, exponents); });
    return sum;
  }
  std::vector<int> exponents;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0 && ranks[i] == ranks[i - 1]) {
      ++exponents.back();
    } else {
      exponents.push_back(1);
    }
  }
  return squared_constant(map, exponents);
}

// Returns the factor of a conjunction whose members have these values: the product of the values or, for
// sets, the weighted mean over the monomials of the set.
inline double factor(const FeatureMap& map, Basis basis, const std::vector<double>& values) {
  double total = 0.0;
  double total_weight = 0.0;
  const auto add = [&](const std::vector<int>& exponents) {
    double product = 1.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (int power = 0; power < exponents[i]; ++power) product *= values[i];
    }
    const double weight = basis == Basis::sets ? squared_constant(map, exponents) : 1.0;
    total += weight * product;
    total_weight += weight;
  };
  if (basis == Basis::sets) {
    for_each_exponents(static_cast<int>(values.size()), map.degree, add);
  } else {
    add(std::vector<int>(values.size(), 1));
  }
  return total / total_weight;
}

}  // namespace brute_force
