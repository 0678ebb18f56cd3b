// Finds the conjunctions that correlate most with a vector of row weights. These are the conjunctions that
// should be added to an l1-regularised model.
//
// For weights g_i (gradients of the loss in the scores), conjunction T has the strength |sum_i g_i
// phi_T(x_i)|, phi_T = c_T m_T. Conjunctions are visited by their rarest feature, then by their second
// feature. The sums of one feature fit into a small array, so nothing is stored per conjunction.
//
// Pruning  The rows of a conjunction are a subset of the rows of its prefix. So an extension of a prefix by k
//          features is at most as strong as
//          c * max(sum of positive g_i m_prefix(x_i), sum of negative g_i m_prefix(x_i)) * (largest |x|)^k.
//          If this bound is at most the threshold, the rows of the prefix are skipped. The result is exact.
//          Rows with g_i = 0 are not visited.
//
// Over sets (binary data), all monomials with the same support are equal columns up to their constants. With
// l1, only the monomial with the largest constant gets weight, and c_T is its constant. Without l1, all
// monomials with the same support share the weight, and c_T^2 is the sum of their squared constants.
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
#include "unkernel/solve/sparse_columns.hpp"

namespace unkernel::poly {

// Whether c_T is the largest constant of equal columns, or covers all of their constants.
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

struct SearchRequest {
  double threshold;         // weaker conjunctions are ignored
  std::size_t max_results;  // number of conjunctions to return
  int threads;              // the result does not depend on the number of threads
};

class ConjunctionSearch {
 public:
  ConjunctionSearch(const DistinctRows& examples, const kernels::FeatureMap& map,
                    EqualColumns equal = EqualColumns::largest_counts);

  // Returns the strongest conjunctions above the threshold, without the constant.
  std::vector<Candidate> strongest(std::span<const double> row_weights, const SearchRequest& request,
                                   const Monitor& monitor) const;

  // Appends the column phi_T(x_i) over all rows.
  void append_column(kernels::Key key, solve::SparseColumns& columns) const;
  // Appends the entries of the column without its constant; the caller finishes the column.
  void append_entries(kernels::Key key, solve::SparseColumns& columns) const;

  // Visits all conjunctions with one visitor per thread; see conjunction_visits.hpp.
  template <class Visitor>
  void visit_all(std::span<const double> row_weights, std::span<Visitor> visitors,
                 const Monitor& monitor) const;

  double constant_of(kernels::Key key) const { return constants_.of(index_.decode(key)); }

 private:
  struct Buffers;
  // A row that contains all features of the current conjunction, with the position of the first feature and
  // the product of the values of all features.
  struct MatchingRow {
    Occurrences::Place place;
    double product;
  };

  double value_at(const Occurrences::Place& place) const;
  void keep_rows_with(std::size_t rank, std::vector<MatchingRow>& rows) const;
  template <bool Binary, class Visitor>
  void visit(std::size_t rank, std::span<const double> row_weights, Buffers& buffers, Visitor& visitor) const;
  template <bool Binary, class Visitor>
  void visit_triples(std::size_t rank, Buffers& buffers, Visitor& visitor) const;

  const DistinctRows& examples_;
  kernels::ConjunctionIndex index_;
  LinearConstants constants_;
  Occurrences occurrences_;
  bool has_negative_values_ = false;
  std::vector<double> largest_value_;  // |x| of any feature up to this rank, at least 1
};

}  // namespace unkernel::poly
