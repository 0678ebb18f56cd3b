// Trains on one part of the rows in distributed training: computes the part's share of the objective,
// proposes better weights, and sums conjunctions that are not in use yet.
//
// All parts number their features in the same way (`renumbered`), so keys identify the conjunctions in use.
// The weights w multiply phi_T = c_T m_T, and the penalty applies to w. Weights are output-major: the weight
// of output k and conjunction j is [k * keys + j].
//
// Every result is a sum over the part's rows, so the results of all parts add up to the result for all rows.
// solve/anchored_loss.hpp explains proposals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/poly/conjunction_search.hpp"
#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/poly/partial_sums.hpp"
#include "unkernel/poly/sparse_train.hpp"
#include "unkernel/solve/anchored_loss.hpp"
#include "unkernel/solve/sparse_columns.hpp"

namespace unkernel::poly {

// Returns the constants c_T of conjunctions: sets of binary features, or monomials.
std::vector<double> conjunction_constants(const kernels::FeatureMap& map, bool binary, EqualColumns equal,
                                          std::span<const kernels::Key> keys);

class SparsePart {
 public:
  // With the squared hinge, `problem` is the class that is trained against the rest; the logistic loss covers
  // all classes. The examples must outlive the part.
  SparsePart(const DistinctRows& examples, const SparseOptions& options, std::int64_t problem);

  std::size_t outputs() const { return loss_.outputs(); }
  std::size_t columns() const { return keys_.size(); }

  // Sets the conjunctions in use, and resets their weights to 0. If `keys` begins with the conjunctions
  // already in use, their columns are kept. Throws NotEnoughMemory.
  void use(std::span<const kernels::Key> keys);
  void move_to(std::span<const double> weights);

  // These functions return values at the current weights.
  double loss() const;
  std::vector<double> gradients() const;                            // by weight
  std::vector<double> curvatures() const;                           // by weight
  std::vector<double> duals(std::span<const double> scales) const;  // sum_i g_i(-scale dL_i/df)
  std::vector<double> losses_along(std::span<const double> direction, std::span<const double> steps) const;

  // Returns the product of a direction and the Hessian of the loss in the weights.
  std::vector<double> hessian_product(std::span<const double> direction) const;

  // Proposes weights that lower the part's model of the total objective, after this number of Newton steps.
  // The model adds to the curvature of each weight in this part the missing curvature of the other parts, and
  // at least `damping` times the curvature of the loss of all rows.
  struct TotalLoss {
    std::span<const double> gradients;   // by weight, of the loss of all rows
    std::span<const double> curvatures;  // by weight, of the loss of all rows
    double damping;
  };
  std::vector<double> propose(const TotalLoss& total, std::int64_t steps, Monitor& monitor);

  // These functions run the steps of partial_sums.hpp for the gradients of one output.
  FeatureBounds feature_bounds(std::size_t output, const Monitor& monitor) const;
  BucketBounds bucket_bounds(std::size_t output, const LiveConjunctions& live, std::size_t buckets,
                             const Monitor& monitor) const;
  ConjunctionSums sums_in_buckets(std::size_t output, const LiveConjunctions& live,
                                  std::span<const std::uint8_t> requested_buckets,
                                  const Monitor& monitor) const;

  // Returns the conjunctions of two or more features that occur in the rows, ascending.
  std::vector<kernels::Key> occurring(const Monitor& monitor) const;

 private:
  std::span<const double> row_gradients(std::size_t output) const;
  std::span<const double> check_weights_size(std::span<const double> weights) const;
  void check_live(std::size_t output, const LiveConjunctions& live) const;
  void remove_anchors();
  std::vector<double> scores_of(std::span<const double> weights) const;
  std::vector<double> sum_by_weight(std::span<const double> row_gradients) const;
  void multiply_by_curvatures(std::span<double> changes) const;

  const DistinctRows& examples_;
  SparseOptions options_;
  ConjunctionSearch search_;
  solve::AnchoredLoss loss_;
  solve::SparseColumns columns_;  // the last entry of each column is its anchor
  std::vector<kernels::Key> keys_;
  std::vector<double> weights_;
  std::vector<double> scores_, gradients_, curvatures_;  // of rows and anchors, output-major
};

}  // namespace unkernel::poly
