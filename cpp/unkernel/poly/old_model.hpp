// The rows that a model was trained on, as an update knows them: by weights and curvatures of the loss.
//
// A model stores v = c w for the weight w of phi_T = c m_T, so the penalty of v is l1 |v|/c + l2/2 (v/c)^2.
// The loss of the old rows is approximated at the old weights v0, without mixed second derivatives:
//
//   kept * sum_T [ slope_T (v_T - v0_T) + curvature_T/2 (v_T - v0_T)^2 ].
//
// v0 is optimal for the old rows, so the slope balances that of the penalty. Under an l1 penalty, most
// conjunctions of the old rows have no weight. Those of one feature have stored slopes and curvatures. The
// slope of others counts as 0, and their curvature is estimated from those of their features, as if features
// occurred independently.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unkernel/kernels/conjunction_index.hpp"
#include "unkernel/solve/anchored_loss.hpp"
#include "unkernel/solve/proximal_newton.hpp"

namespace unkernel::poly {

struct OldModel {
  std::span<const kernels::Key> keys;  // ascending
  std::span<const double> weights;     // keys x scores
  std::span<const double> intercept;
  std::span<const double> intercept_curvatures;
  std::span<const double> feature_curvatures;      // ranks x scores; new features have higher ranks
  std::span<const double> conjunction_curvatures;  // like the weights
  std::span<const double> feature_slopes;          // ranks x scores
  double kept;                                     // factor of the loss of the old rows, from 0 to 1

  std::size_t scores() const { return intercept.size(); }
};

class OldRows {
 public:
  static constexpr std::size_t no_place = static_cast<std::size_t>(-1);  // of a conjunction without weight

  // Describes one score. The arguments must outlive this object.
  OldRows(const OldModel& model, const solve::Penalty& penalty, const kernels::ConjunctionIndex& index,
          std::size_t score)
      : model_(model), penalty_(penalty), index_(index), score_(score) {}

  // These functions take the place of a conjunction among the old keys, or no_place. The constant has key 0.
  double weight(kernels::Key key, std::size_t place) const;
  double curvature(kernels::Key key, std::size_t place) const;
  double slope(kernels::Key key, std::size_t place, double constant) const;
  // Returns the loss of the old rows in a weight, given the constant c of its conjunction.
  solve::Anchor anchor(kernels::Key key, std::size_t place, double constant) const;

  // Returns the best weight for the old rows and the penalty alone.
  double best_alone(kernels::Key key, std::size_t place, double constant) const;
  // Returns the penalty of a weight plus the loss of the old rows in it.
  double value(kernels::Key key, std::size_t place, double constant, double weight) const;

 private:
  double estimated_curvature(kernels::Key key) const;

  const OldModel& model_;
  const solve::Penalty& penalty_;
  const kernels::ConjunctionIndex& index_;
  std::size_t score_;
};

}  // namespace unkernel::poly
