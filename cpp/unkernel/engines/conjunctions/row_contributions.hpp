// Divides the scores of a row among its conjunctions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/engines/conjunctions/layout.hpp"
#include "unkernel/engines/ranking.hpp"

namespace unkernel::engines {

struct RowContributions {
  std::size_t degree;                 // columns per conjunction
  std::vector<std::int64_t> columns;  // conjunctions x degree, padded with -1
  std::vector<double> values;         // conjunctions x scores
  std::vector<double> intercept;      // scores

  std::size_t scores() const { return intercept.size(); }
  std::size_t size() const { return degree == 0 ? 0 : columns.size() / degree; }
  std::span<const double> values_of(std::size_t conjunction) const {
    return std::span(values).subspan(conjunction * scores(), scores());
  }
  std::span<const std::int64_t> columns_of(std::size_t conjunction) const {
    return std::span(columns).subspan(conjunction * degree, degree);
  }
  // Returns the scores of the row.
  std::vector<double> total() const;
};

struct LargestContributions {
  std::vector<std::size_t> conjunctions;  // largest effect first
  std::size_t count = 0;                  // conjunctions with a contribution other than 0
  std::vector<double> rest;               // the sum over all conjunctions that are not listed, by score
};

// Lists the `top` conjunctions with the largest effect. The effect is the absolute contribution to the score
// `shown.front()`, or to the difference of two shown scores. Equal effects are ordered by the largest
// contribution to any score.
LargestContributions find_largest(const RowContributions& contributions, std::span<const std::size_t> shown,
                                  std::size_t top);

// Looks up all conjunctions of a row in a model, whose arrays must outlive this object.
//
// Memory   a Ranking of the model's columns
// Cost     of a row: one binary search per conjunction, within the keys of its rarest feature
class ConjunctionLookup {
 public:
  explicit ConjunctionLookup(const ConjunctionWeights& model);

  // Takes distinct columns and their values. Conjunctions are ordered by size. Throws std::invalid_argument
  // if
  //  the row has more than five million conjunctions.
  RowContributions find(std::span<const std::int64_t> columns, std::span<const double> values) const;

 private:
  struct Entries {
    std::vector<Rank> ranks;  // descending
    std::vector<double> values;
    bool is_binary = true;
  };
  struct Keys {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  Entries rank_row(std::span<const std::int64_t> columns, std::span<const double> values) const;
  std::vector<Keys> find_blocks(const Entries& row) const;
  class Collector;

  ConjunctionWeights model_;
  ConjunctionIndex index_;
  SetFactors factors_;
  Ranking ranking_;
};

}  // namespace unkernel::engines
