// A random conjunction model, and its scores by a loop over all conjunctions of a row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engines/brute_force.hpp"
#include "engines/scoring.hpp"
#include "random_rows.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/layout.hpp"

struct ModelShape {
  unkernel::kernels::Basis basis;
  unkernel::kernels::FeatureMap map;
  std::uint64_t used;
  std::int64_t features;
  std::size_t scores;
};

struct RandomModel {
  using Ranks = brute_force::Ranks;
  using Key = unkernel::kernels::Key;
  using Random = unkernel::Random;

  ModelShape shape;
  std::vector<std::int64_t> columns;
  std::vector<Key> keys;
  std::vector<double> weights;
  std::vector<double> intercept;
  std::map<Ranks, std::size_t> weight_rows;       // row of weights of each conjunction
  std::map<std::int64_t, std::uint64_t> rank_of;  // by column

  // Makes distinct columns in random order. Weights are added by add().
  RandomModel(const ModelShape& model_shape, Random& random) : shape(model_shape) {
    const auto stride = static_cast<std::uint64_t>(shape.features) / shape.used;
    for (std::uint64_t rank = 0; rank < shape.used; ++rank)
      columns.push_back(static_cast<std::int64_t>(rank * stride));
    random.shuffle(std::span(columns));
    for (std::uint64_t rank = 0; rank < shape.used; ++rank) rank_of[columns[rank]] = rank;
    for (std::size_t s = 0; s < shape.scores; ++s) intercept.push_back(uniform(random));
  }

  // Gives weights to the chosen conjunctions, which may contain duplicates.
  void add(std::vector<Ranks> chosen, Random& random) {
    const brute_force::Numbering number(shape.used, shape.map.degree, shape.basis);
    std::map<Key, Ranks> by_key;
    for (Ranks& ranks : chosen) {
      if (!ranks.empty()) by_key.emplace(number(ranks), std::move(ranks));
    }
    for (auto& [key, ranks] : by_key) {
      weight_rows.emplace(std::move(ranks), keys.size());
      keys.push_back(key);
      for (std::size_t s = 0; s < shape.scores; ++s) weights.push_back(uniform(random));
    }
  }

  unkernel::engines::ConjunctionWeights view() const {
    return {shape.basis, shape.map, shape.features, columns, keys, weights, intercept};
  }

  // Returns a column without a rank.
  std::int64_t unknown_column() const {
    std::int64_t column = shape.features;
    while (rank_of.contains(column)) ++column;
    return column;
  }

  scoring::Sums slow_scores(const scoring::Row& row) const {
    std::map<std::uint64_t, double> present;  // by rank
    for (const auto& [column, value] : row) {
      const auto known_rank = rank_of.find(column);
      if (known_rank != rank_of.end() && value != 0.0) present[known_rank->second] = value;
    }
    Ranks candidates;
    for (const auto& entry : present) candidates.push_back(entry.first);
    scoring::Sums sums(shape.scores);
    for (std::size_t s = 0; s < shape.scores; ++s) sums[s].add(intercept[s]);
    for (const Ranks& ranks : brute_force::conjunctions(candidates, shape.map.degree, shape.basis)) {
      const auto weight_row = weight_rows.find(ranks);
      if (weight_row != weight_rows.end()) add_conjunction(ranks, weight_row->second, present, sums);
    }
    return sums;
  }

 private:
  void add_conjunction(const Ranks& ranks, std::size_t weight_row,
                       const std::map<std::uint64_t, double>& present, scoring::Sums& sums) const {
    std::vector<double> values, sizes;
    for (const auto rank : ranks) {
      values.push_back(present.at(rank));
      sizes.push_back(std::abs(values.back()));
    }
    const double factor = brute_force::factor(shape.map, shape.basis, values);
    const double factor_size = brute_force::factor(shape.map, shape.basis, sizes);
    for (std::size_t s = 0; s < sums.size(); ++s) {
      const double weight = weights[weight_row * shape.scores + s];
      sums[s].add(factor * weight, factor_size * std::abs(weight));
    }
  }
};

inline brute_force::Ranks draw_ranks(std::uint64_t used, std::size_t size, unkernel::Random& random) {
  std::set<std::uint64_t> ranks;
  while (ranks.size() < std::min<std::uint64_t>(size, used)) {
    ranks.insert(random.below(static_cast<std::uint32_t>(used)));
  }
  return {ranks.begin(), ranks.end()};
}

enum class Values { ones, mixed };

// Makes a row with these ranks; with mixed values, some of them are explicit zeros.
inline scoring::Entries entries_of(const RandomModel& model, const brute_force::Ranks& ranks, Values values,
                                   unkernel::Random& random) {
  scoring::Entries entries;
  for (const auto rank : ranks) {
    const double value = values == Values::ones ? 1.0 : random.below(5) == 0 ? 0.0 : uniform(random);
    entries.emplace_back(model.columns[rank], value);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Adds random rows, with ones and with other values; returns the ranks of each row.
template <class Index>
std::vector<brute_force::Ranks> add_rows(const RandomModel& model, std::size_t row_size, bool unordered,
                                         unkernel::Random& random, Rows<Index>& rows) {
  std::vector<brute_force::Ranks> all;
  rows.features = model.shape.features;
  for (int row = 0; row < 10; ++row) {
    all.push_back(row == 5 ? brute_force::Ranks{} : draw_ranks(model.shape.used, row_size, random));
    const Values values = row % 2 == 0 ? Values::ones : Values::mixed;
    scoring::Entries entries = entries_of(model, all.back(), values, random);
    if (unordered) {
      scoring::add_unordered_row(std::move(entries), model.unknown_column(), random, rows);
    } else {
      entries.insert(entries.begin(), {-2, 1.0});
      entries.emplace_back(model.unknown_column(), 1.0);
      scoring::add_entries(entries, rows);
    }
  }
  return all;
}
