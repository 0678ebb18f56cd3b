// Which conjunctions correlate most with a vector of row weights: the ones an l1-regularised model lacks.
//
// For weights g_i (gradients of the loss by score) the strength of a conjunction T is |sum_i g_i phi_T(x_i)|,
// phi_T = c_T m_T. All are visited feature by feature (their rarest one), then by the second: the sums of one
// feature fit a small array, so that nothing is stored per conjunction, possible or not.
//
// Pruning  The rows of a longer conjunction are some of those of its prefix, so no strength below a prefix
// exceeds
//          c * max(sum of positive, sum of negative g_i m_prefix(x_i)) * (largest |x|)^more. Where that is
//          within the threshold, the prefix's rows are not walked: the answer is still that over all
//          conjunctions. Rows with g_i = 0 cost nothing.
//
// Over sets (binary data) all monomials with the same support are equal columns up to their constants, and l1
// gives weight to the one with the largest only: c_T is that constant.
//
// Cost     at most one addition per non-zero of phi; memory 8 bytes per entry of x, and 16 per feature and
// thread.
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

// c by what a conjunction looks like.
class LinearConstants {
 public:
  LinearConstants(const kernels::FeatureMap& map, bool binary);

  double of(const kernels::Conjunction& conjunction) const;

  double constant, single, pair, triple, square, square_times_other, cube;
};

struct Candidate {
  kernels::Key key;
  double strength;

  // Strongest first, ties by key.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.strength != b.strength ? a.strength > b.strength : a.key < b.key;
  }
};

struct SearchRequest {
  double threshold;  // strengths up to here do not matter
  std::size_t most;  // how many of the strongest are wanted
  int threads;       // the answer does not depend on them
};

class ConjunctionSearch {
 public:
  ConjunctionSearch(const DistinctRows& examples, const kernels::FeatureMap& map);

  // The strongest conjunctions beyond the threshold, the constant left out.
  std::vector<Candidate> strongest(std::span<const double> row_weights, const SearchRequest& request,
                                   const Monitor& monitor) const;

  // phi_T(x_i) for all rows.
  void append_column(kernels::Key key, solve::SparseColumns& columns) const;

  double constant_of(kernels::Key key) const { return constants_.of(index_.decode(key)); }

 private:
  struct Worker;
  // A row that holds all features of a conjunction looked at so far, where its first one is, and their
  // product.
  struct Held {
    Occurrences::Place place;
    double product;
  };

  double value_at(const Occurrences::Place& place) const;
  void keep_holders(std::size_t rank, std::vector<Held>& rows) const;
  template <bool Binary>
  void visit(std::size_t rank, std::span<const double> row_weights, Worker& worker) const;
  template <bool Binary>
  void visit_triples(std::size_t rank, Worker& worker) const;

  const DistinctRows& examples_;
  kernels::ConjunctionIndex index_;
  LinearConstants constants_;
  Occurrences occurrences_;
  bool signed_values_ = false;
  std::vector<double> largest_value_;  // |x| of any feature up to this rank, at least 1
};

}  // namespace unkernel::poly
