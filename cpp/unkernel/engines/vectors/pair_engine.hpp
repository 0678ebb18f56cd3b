// The engine for linear machines of many classes, one against one: f_ij(x) = sum over features w of x_w
// W_w[i, j] + b_ij.
//
// A support vector of class i contributes to the k - 1 pairs of i, out of k (k - 1) / 2 for k classes. Hence
// a feature has one block of k - 1 weights for each class whose vectors contain the feature. A feature that
// occurs in nearly all classes has one weight per pair instead.
//
// Bytes   8 (k - 1) per feature and class, or 8 per feature and pair.
// Query   one multiplication per weight of the row's features, in memory order, then two additions per pair.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {

struct PairTables {
  std::span<const std::int64_t> columns;  // rank -> column; features with one weight per pair come first
  std::span<const double> intercept;      // k (k - 1) / 2
  std::span<const double> whole;          // ranks with one weight per pair x pairs
  std::span<const std::uint32_t> block_begins;   // ranks with blocks + 1
  std::span<const std::uint32_t> block_classes;  // ascending within a rank
  std::span<const double> blocks;                // blocks x (k - 1): one weight per opposing class
  std::size_t classes;
};

// Checks the tables, which must outlive the engine; throws std::invalid_argument.
std::unique_ptr<Engine> make_pair_engine(const PairTables& tables);

}  // namespace unkernel::engines
