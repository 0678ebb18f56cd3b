// A primal-dual interior-point method for the problem of dual coordinate descent. It is for problems on which
// that solver is slow: badly scaled features, large C. It takes about thirty iterations, however badly scaled
// the problem is. Each iteration costs one dense factorisation (normal_system.hpp), so the method is used
// only if conjunctions or rows are few. (Ferris & Munson 2002; Mehrotra's predictor and corrector.)
//
// Each label of a row with a positive cost is a variable a_j, with cost c_j, sign y_j and margin m_j. The
// margin is the loss's `low` for the positive label, and -`high` for the negative label. u_i is the sum of
// y_j a_j over the labels of row i, and r is the residual of the row: its score minus its target.
//   min 1/2 |w|^2 + 1/2 sum d_j a_j^2 - sum (m_j + y_j target) a_j,    w = sum_j y_j a_j phi
//   linear loss: d = 0, 0 <= a_j <= c_j;    squared loss: d = 1 / (2 c), 0 <= a_j
// With multipliers s of a >= 0 and t of a <= c, the optimality conditions, approached as mu goes to 0, are
//   y r - m + d a - s + t = 0,   s a = mu,   t (c - a) = mu
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/loss.hpp"
#include "unkernel/solve/normal_system.hpp"

namespace unkernel::solve {

class InteriorPoint {
 public:
  // `targets` has one number per row, or none if all are 0.
  InteriorPoint(const Loss& loss, std::span<const Costs> costs, std::span<const double> targets,
                NormalSystem& system, const Monitor& monitor);

  // Iterates until the gap is at most tolerance times the objective. Returns whether it got there; rounding
  // errors may prevent it.
  bool run(double tolerance);

  std::vector<double> duals() const;

 private:
  struct Variable {
    std::size_t row;
    double sign;
    double margin;
    double cost;
    double a;
    double s;
    double t;  // 0 if there is no upper bound
  };
  struct Move {
    double a, s, t;
  };

  double diagonal(const Variable& v) const { return has_box_ ? 0.0 : 0.5 / v.cost; }
  static double slack(const Variable& v) { return v.cost - v.a; }
  double curvature(const Variable& v) const;

  void add_variable(std::size_t row, double sign, double margin, double cost);
  void compute_residuals();
  bool is_converged(double tolerance) const;
  double mu() const;
  double mu_after(const std::vector<Move>& moves, double length) const;
  bool iterate();
  std::vector<Move> solve_for(double centre, const std::vector<Move>& predictor) const;
  double change_of(std::size_t j, const std::vector<double>& right_side, const Change& change) const;
  double target_s(std::size_t j, double centre, const std::vector<Move>& predictor) const;
  double target_t(std::size_t j, double centre, const std::vector<Move>& predictor) const;
  double longest_move(const std::vector<Move>& moves) const;

  Loss loss_;
  bool has_box_;
  std::span<const Costs> costs_;
  NormalSystem& system_;
  const Monitor& monitor_;
  std::vector<Variable> variables_;
  std::span<const double> targets_;
  std::vector<double> residuals_;  // scores minus targets
};

}  // namespace unkernel::solve
