// Losses as functions of scores, with the functions that the primal solvers need.
//
// Row i has a score f_ik for each output k; two classes have one output. A loss is a sum over rows of convex
// functions L_i(f_i). Let u_i = -L_i'(f_i) and g_i(u) = min_t [L_i(t) + u't], so that -g_i is the conjugate
// of L_i at -u. Then the dual of
//
//   min_w  penalty(w) + sum_i L_i(w'phi_i)      is      max_u  sum_i g_i(u_i) - penalty*(sum_i u_i phi_i).
//
//   squared error   p max(|f-t|-e, 0)^2                      g(u) = u t - e |u| - u^2 / (4p)
//   squared hinge   p max(1-f, 0)^2 + q max(1+f, 0)^2        g in loss.hpp
//   logistic        p log(1+exp(-f)) + q log(1+exp(f))       g(u) = -(p-u) log s - (q+u) log(1-s),
//                                                            s = (p-u)/(p+q)
//   Poisson         q exp(f) - p f                           g(u) = r - r log(r/q),  r = p-u >= 0
//   softmax         sum_k c_k (log sum_l exp(f_l) - f_k)     g(u) = -n sum_k s_k log s_k,
//                                                            s_k = (c_k-u_k)/n, n = sum_k c_k
//
// t is a target, and errors up to e cost nothing. p, q and c_k are costs: p of an error or of the positive
// class, q of the negative class, c_k of class k. With the Poisson loss, q is the cost of a row, and p is its
// cost times its target; the minimum of the loss is subtracted (poisson_term.hpp). A row represents all equal
// rows of any class, so it may have several costs. Scores, gradients and curvatures are output-major: the
// number of row i and output k is [k * rows + i].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/solve/loss.hpp"

namespace unkernel::solve {

class ScoreLoss {
 public:
  virtual ~ScoreLoss() = default;

  virtual std::size_t rows() const = 0;
  virtual std::size_t outputs() const { return 1; }

  virtual double value(std::span<const double> scores) const = 0;
  // Computes the first and second derivatives of the loss in the scores of one output, one per row. With
  // several outputs, joint_curvatures gives the whole Hessian.
  virtual void derivatives(std::span<const double> scores, std::size_t output, std::span<double> gradient,
                           std::span<double> curvature) const = 0;
  // Computes, for each row, the curvature of the parabola that touches the loss at the score f of one output
  // and meets it at -f. Unlike the second derivative, it does not vanish if a row is far on the right side.
  virtual void wide_curvatures(std::span<const double> scores, std::size_t output,
                               std::span<double> curvature) const = 0;
  // Computes an upper bound on the second derivative of each row. The Poisson loss has none; its curvature is
  // large enough for steps that are not too long.
  virtual void largest_curvatures(std::span<double> curvature) const = 0;
  // Computes the vectors a_i of all rows, row-major. The Hessian of row i in its scores is diag(a_i) - a_i
  // a_i' / n_i, where n_i is the sum of a_i.
  virtual void joint_curvatures(std::span<const double> scores, std::span<double> a) const = 0;
  // Returns the first row whose Hessian, like that of all later rows, is just diag(a_i).
  virtual std::size_t coupled_rows() const { return rows(); }
  // Returns the loss after adding `step` times `direction` to the scores.
  virtual double value_along(std::span<const double> scores, std::span<const double> direction,
                             double step) const = 0;
  // Returns sum_i g_i(-scale dL_i/df) for a scale in [0, 1]; `gradients` holds dL/df for all outputs.
  virtual double dual(std::span<const double> gradients, double scale) const = 0;
};

struct CostOfError {
  double cost;
  double target;
  double epsilon;  // the largest error without a loss
};
std::unique_ptr<ScoreLoss> squared_error_loss(std::vector<CostOfError> rows);
// Return the losses of rows with one pair of costs each.
std::unique_ptr<ScoreLoss> squared_hinge_loss(std::vector<Costs> costs);
std::unique_ptr<ScoreLoss> logistic_loss(std::vector<Costs> costs);

// Returns the Poisson loss of rows with one pair of costs each, plus a constant.
std::unique_ptr<ScoreLoss> poisson_loss(std::vector<Costs> costs, double constant);

struct ClassCost {
  std::int32_t code;
  double cost;
};
// Returns the softmax loss. Row i has the costs from offsets[i] to offsets[i + 1].
std::unique_ptr<ScoreLoss> softmax_loss(std::vector<std::int64_t> offsets, std::vector<ClassCost> costs,
                                        std::size_t classes);

}  // namespace unkernel::solve
