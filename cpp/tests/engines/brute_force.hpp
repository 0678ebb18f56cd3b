// Conjunctions the slow, obvious way: listed by plain loops, weighed by the formula of the kernel's expansion.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "unkernel/engines/conjunction_index.hpp"
#include "unkernel/engines/feature_map.hpp"

namespace brute_force {

using unkernel::engines::Basis;
using unkernel::engines::FeatureMap;
using unkernel::engines::Key;

using Ranks = std::vector<std::uint64_t>;  // descending

// All conjunctions of `candidates` (ascending) that have at most `degree` members, in the order of
// their numbers.
inline std::vector<Ranks> conjunctions(const Ranks& candidates, int degree, Basis basis) {
  const std::size_t own = basis == Basis::monomials ? 1 : 0;
  std::vector<Ranks> list{{}};
  for (std::size_t a = 0; a < candidates.size(); ++a) {
    list.push_back({candidates[a]});
    for (std::size_t b = 0; degree >= 2 && b < a + own; ++b) list.push_back({candidates[a], candidates[b]});
    for (std::size_t b = 0; degree >= 3 && b < a + own; ++b) {
      for (std::size_t c = 0; c < b + own; ++c) list.push_back({candidates[a], candidates[b], candidates[c]});
    }
  }
  return list;
}

inline std::vector<Ranks> all_conjunctions(std::uint64_t features, int degree, Basis basis) {
  Ranks candidates;
  for (std::uint64_t rank = 0; rank < features; ++rank) candidates.push_back(rank);
  return conjunctions(candidates, degree, basis);
}

// The number of a conjunction, by counting what stands before it.
class Numbering {
 public:
  Numbering(std::uint64_t features, int degree, Basis basis) : own_(basis == Basis::monomials ? 1 : 0) {
    std::uint64_t pairs_below = 0;
    blocks_.push_back(1);
    for (std::uint64_t a = 0; a < features; ++a) {
      triangles_.push_back(pairs_below);
      pairs_below += a + own_;
      blocks_.push_back(blocks_.back() + 1 + (degree >= 2 ? a + own_ : 0) + (degree >= 3 ? pairs_below_with(a) : 0));
    }
  }

  Key operator()(const Ranks& ranks) const {
    if (ranks.empty()) return 0;
    const std::uint64_t a = ranks[0];
    if (ranks.size() == 1) return blocks_[a];
    if (ranks.size() == 2) return blocks_[a] + 1 + ranks[1];
    return blocks_[a] + 1 + a + own_ + triangles_[ranks[1]] + ranks[2];
  }
  Key count() const { return blocks_.back(); }

 private:
  // Pairs of the ranks that may stand beside a.
  std::uint64_t pairs_below_with(std::uint64_t a) const { return triangles_[a] + (own_ > 0 ? a + 1 : 0); }

  std::uint64_t own_;
  std::vector<Key> blocks_;
  std::vector<std::uint64_t> triangles_;
};

inline double factorial(int n) { return n <= 1 ? 1.0 : n * factorial(n - 1); }

// c^2 of a monomial with these exponents: its share of (gamma x'z + r)^d, or 1 under the plain map.
inline double squared_constant(const FeatureMap& map, const std::vector<int>& exponents) {
  int order = 0;
  double repeats = 1.0;
  for (const int exponent : exponents) {
    order += exponent;
    repeats *= factorial(exponent);
  }
  if (order > map.degree) return 0.0;
  if (map.kind == FeatureMap::Kind::plain) return 1.0;
  double value = factorial(map.degree) / (factorial(order) * factorial(map.degree - order)) * factorial(order) / repeats;
  for (int i = 0; i < order; ++i) value *= map.gamma;
  for (int i = order; i < map.degree; ++i) value *= map.coef0;
  return value;
}

// Calls visit(exponents) for all exponents >= 1 of `size` features that sum to at most `degree`.
inline void for_each_exponents(int size, int degree, const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> exponents(static_cast<std::size_t>(size), 1);
  const std::function<void(std::size_t, int)> fill = [&](std::size_t place, int left) {
    if (place == exponents.size()) return visit(exponents);
    const int others = size - static_cast<int>(place) - 1;
    for (exponents[place] = 1; exponents[place] + others <= left; ++exponents[place]) {
      fill(place + 1, left - exponents[place]);
    }
  };
  fill(0, degree);
}

// c^2 of a conjunction: of its monomial or, over sets, of all monomials with its members.
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

// What a conjunction of these values counts: their product or, over sets, the mean over its monomials.
inline double factor(const FeatureMap& map, Basis basis, const std::vector<double>& values) {
  double total = 0.0;
  double share = 0.0;
  const auto add = [&](const std::vector<int>& exponents) {
    double product = 1.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (int power = 0; power < exponents[i]; ++power) product *= values[i];
    }
    const double weight = basis == Basis::sets ? squared_constant(map, exponents) : 1.0;
    total += weight * product;
    share += weight;
  };
  if (basis == Basis::sets) {
    for_each_exponents(static_cast<int>(values.size()), map.degree, add);
  } else {
    add(std::vector<int>(values.size(), 1));
  }
  return total / share;
}

}  // namespace brute_force
