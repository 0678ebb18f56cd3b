// Finds the conjunctions that correlate most with a vector of row weights. An l1-regularised model adds these
// conjunctions first.
//
// The column of a conjunction T is phi_T(x_i) = c_T m_T(x_i): a constant times the product of the features in
// T. Given a weight g_i for each row (the gradient of the loss in its score), the strength of T is |sum_i g_i
// phi_T(x_i)|. The search goes through all rarest features and, for each, through all second features. The
// sums for one feature fit into a small array, so nothing is stored per conjunction.
//
// Pruning  The rows that contain a conjunction also contain its prefix. So an extension of a prefix by k
//          features is at most as strong as
//          c * max(sum of positive g_i m_prefix(x_i), sum of negative g_i m_prefix(x_i)) * (largest |x|)^k.
//          If this bound is at most the threshold, the rows of the prefix are skipped. The result is exact.
//          Rows with g_i = 0 are not visited.
//
// With binary features, x^2 y and x y^2 equal x y, so several monomials give the same column up to a
// constant. With l1, only the monomial with the largest constant gets a weight, and c_T is its constant.
// Without l1, all monomials of the same features share the weight, and c_T^2 is the sum of their squared
// constants.
//
// Cost     at most one addition per non-zero of phi; memory 8 bytes per entry of x, and 16 per feature and
//          thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/kernels/feature_map.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/occurrences.hpp"

namespace unkernel::poly {

// Selects c_T for equal columns: the largest of their constants, or the root of the sum of their squares.
enum class EqualColumns { largest_counts, all_count };

class LinearConstants {
 public:
  LinearConstants(const kernels::FeatureMap& map, bool binary, EqualColumns equal);

  double of(const kernels::Conjunction& conjunction) const;

  double constant, single, pair, triple, square, square_times_other, cube;
};

struct Candidate {
  kernels::Key key;
  double strength;

  // Orders candidates by strength, the strongest first; equal strengths by key.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.strength != b.strength ? a.strength > b.strength : a.key < b.key;
  }
};

// Whether conjunctions of several features are visited, too.
enum class Extensions { visited, skipped };

struct SearchRequest {
  double threshold;         // only stronger conjunctions are returned
  std::size_t max_results;  // the largest number of conjunctions to return
  int threads;              // the result does not depend on the number of threads
  Extensions extensions = Extensions::visited;
};

class ConjunctionSearch {
 public:
  ConjunctionSearch(const DistinctRows& examples, const kernels::FeatureMap& map,
                    EqualColumns equal = EqualColumns::largest_counts);

  // Returns the strongest conjunctions above the threshold; the constant is not searched.
  std::vector<Candidate> strongest(std::span<const double> row_weights, const SearchRequest& request,
                                   const Monitor& monitor) const;

  class ColumnWriter;  // conjunction_columns.hpp
  // Returns the order of these conjunctions in which their columns are written fastest.
  std::vector<std::size_t> writing_order(std::span<const kernels::Key> keys) const;

  // Visits all conjunctions with one visitor per thread; see conjunction_visits.hpp.
  template <class Visitor>
  void visit_all(std::span<const double> row_weights, std::span<Visitor> visitors,
                 const Monitor& monitor) const;

  double constant_of(kernels::Key key) const { return constants_.of(index_.decode(key)); }
  // Returns a bound on the entries of a conjunction's column: the rows of its rarest feature.
  std::size_t most_rows_of(kernels::Key key) const;

 private:
  struct Buffers;

  double value_at(const Occurrences::Place& place) const;
  template <bool Binary, class Visitor>
  void visit(std::size_t rank, std::span<const double> row_weights, Buffers& buffers, Visitor& visitor) const;
  template <bool Binary, class Visitor>
  void visit_triples(std::size_t rank, Buffers& buffers, Visitor& visitor) const;

  const DistinctRows& examples_;
  kernels::ConjunctionIndex index_;
  LinearConstants constants_;
  Occurrences occurrences_;
  bool has_negative_values_ = false;
  std::vector<double> largest_value_;  // by rank: the largest |x| up to this rank, at least 1
};

}  // namespace unkernel::poly
