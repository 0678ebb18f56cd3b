// A primal-dual interior-point method for the same problem as dual coordinate descent, for the
// cases that one finds hard: badly scaled features, large C. About thirty iterations whatever the
// conditioning, each the price of one dense factorisation (normal_system.hpp); so only where the
// conjunctions, or the rows, are few. (Ferris & Munson 2002; Mehrotra's predictor and corrector.)
//
// Each label of a row is a variable a_j with cost c_j and sign y_j; u_i = sum of y_j a_j over row i.
//   min 1/2 |w|^2 + 1/2 sum d_j a_j^2 - sum a_j,  w = sum_j y_j a_j phi,  0 <= a_j (<= c_j)
//   hinge: d = 0, bounded above;   squared hinge: d = 1/(2c), not bounded
// With multipliers s of a >= 0 and t of a <= c:
//   y f - 1 + d a - s + t = 0,   s a = mu,   t (c - a) = mu,   mu -> 0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/loss.hpp"
#include "unkernel/solve/normal_system.hpp"

namespace unkernel::solve {

template <class LossKind>
class InteriorPoint {
 public:
  InteriorPoint(std::span<const Costs> costs, NormalSystem& system, const Monitor& monitor)
      : costs_(costs), system_(system), monitor_(monitor) {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (costs[i].positive > 0.0) add_variable(i, 1.0, costs[i].positive);
      if (costs[i].negative > 0.0) add_variable(i, -1.0, costs[i].negative);
    }
    scores_ = system_.scores(duals());
  }

  // Iterates until the gap is at most tolerance times the objective; false if rounding forbids it.
  bool run(double tolerance) {
    constexpr int most_iterations = 100;
    for (int iteration = 0; iteration < most_iterations; ++iteration) {
      if (close_enough(tolerance)) return true;
      monitor_.throw_if_stopped();
      if (!iterate()) return false;
    }
    return false;
  }

  std::vector<double> duals() const {
    std::vector<double> u(costs_.size(), 0.0);
    for (const Variable& v : variables_) u[v.row] += v.sign * v.a;
    return u;
  }

 private:
  struct Variable {
    std::size_t row;
    double sign;
    double cost;
    double a;
    double s;
    double t;  // stays 0 where there is no upper bound
  };
  struct Step {
    double a, s, t;
  };

  static double diagonal(const Variable& v) { return LossKind::boxed ? 0.0 : 0.5 / v.cost; }
  static double room(const Variable& v) { return v.cost - v.a; }

  void add_variable(std::size_t row, double sign, double cost) {
    const double start = LossKind::boxed ? 0.5 * cost : cost;
    variables_.push_back({row, sign, cost, start, 1.0, LossKind::boxed ? 1.0 : 0.0});
  }

  bool close_enough(double tolerance) const {
    const std::vector<double> u = duals();
    double gap = 0.0, loss = 0.0, squared_weights = 0.0;
    for (std::size_t i = 0; i < u.size(); ++i) {
      loss += LossKind::loss(costs_[i], scores_[i]);
      gap += LossKind::loss(costs_[i], scores_[i]) - LossKind::dual(costs_[i], u[i]) + u[i] * scores_[i];
      squared_weights += u[i] * scores_[i];
    }
    return gap <= tolerance * (0.5 * squared_weights + loss);
  }

  double mu() const {
    double sum = 0.0;
    std::size_t count = 0;
    for (const Variable& v : variables_) {
      sum += v.s * v.a + (LossKind::boxed ? v.t * room(v) : 0.0);
      count += LossKind::boxed ? 2 : 1;
    }
    return sum / static_cast<double>(count);
  }

  double curvature(const Variable& v) const {
    return diagonal(v) + v.s / v.a + (LossKind::boxed ? v.t / room(v) : 0.0);
  }

  bool iterate() {
    std::vector<double> E(costs_.size(), 0.0);
    for (const Variable& v : variables_) E[v.row] += 1.0 / curvature(v);
    system_.factor(E);
    const double before = mu();
    const std::vector<Step> predictor = solve_for(0.0, {});
    const double reach = longest_step(predictor);
    const double after = mu_after(predictor, reach);
    const double centre = before * std::pow(after / before, 3);
    const std::vector<Step> corrector = solve_for(centre, predictor);
    const double length = std::min(1.0, 0.995 * longest_step(corrector));
    if (!(length > 1e-12) || !std::isfinite(mu_after(corrector, length))) return false;
    for (std::size_t j = 0; j < variables_.size(); ++j) {
      variables_[j].a += length * corrector[j].a;
      variables_[j].s += length * corrector[j].s;
      variables_[j].t += length * corrector[j].t;
    }
    scores_ = system_.scores(duals());  // not by adding up changes: rounding would gather
    return true;
  }

  // Newton's step towards s a = t (c - a) = centre, less the second-order terms of the predictor.
  std::vector<Step> solve_for(double centre, const std::vector<Step>& predictor) const {
    std::vector<double> right(variables_.size());
    std::vector<double> e(costs_.size(), 0.0);
    for (std::size_t j = 0; j < variables_.size(); ++j) {
      const Variable& v = variables_[j];
      const double residual = v.sign * scores_[v.row] - 1.0 + diagonal(v) * v.a - v.s + v.t;
      right[j] = -residual + target_s(j, centre, predictor) / v.a;
      if (LossKind::boxed) right[j] -= target_t(j, centre, predictor) / room(v);
      e[v.row] += v.sign * right[j] / curvature(v);
    }
    const Change change = system_.solve(e);
    std::vector<Step> steps(variables_.size());
    for (std::size_t j = 0; j < variables_.size(); ++j) {
      const Variable& v = variables_[j];
      Step& step = steps[j];
      step.a = step_of(j, right, change);
      step.s = (target_s(j, centre, predictor) - v.s * step.a) / v.a;
      step.t = LossKind::boxed ? (target_t(j, centre, predictor) + v.t * step.a) / room(v) : 0.0;
    }
    return steps;
  }

  // Where the row's change is known, its only label takes all of it. Of two, the stiffer one follows
  // from the scores, where little cancels, and the other takes the rest.
  double step_of(std::size_t j, const std::vector<double>& right, const Change& change) const {
    const auto from_scores = [&](std::size_t k) {
      const Variable& w = variables_[k];
      return (right[k] - w.sign * change.scores[w.row]) / curvature(w);
    };
    if (change.u.empty()) return from_scores(j);
    const Variable& v = variables_[j];
    const std::size_t other = v.sign > 0.0 ? j + 1 : j - 1;  // the positive label stands first
    const bool alone = other >= variables_.size() || variables_[other].row != v.row;
    if (alone) return v.sign * change.u[v.row];
    if (curvature(v) >= curvature(variables_[other])) return from_scores(j);
    return v.sign * (change.u[v.row] - variables_[other].sign * from_scores(other));
  }

  double target_s(std::size_t j, double centre, const std::vector<Step>& predictor) const {
    const Variable& v = variables_[j];
    return centre - v.s * v.a - (predictor.empty() ? 0.0 : predictor[j].a * predictor[j].s);
  }
  double target_t(std::size_t j, double centre, const std::vector<Step>& predictor) const {
    const Variable& v = variables_[j];
    return centre - v.t * room(v) + (predictor.empty() ? 0.0 : predictor[j].a * predictor[j].t);
  }

  // How far one can go before something that must stay positive reaches zero; at most 1.
  double longest_step(const std::vector<Step>& steps) const {
    double longest = 1.0;
    const auto limit = [&](double value, double slope) {
      if (slope < 0.0) longest = std::min(longest, -value / slope);
    };
    for (std::size_t j = 0; j < steps.size(); ++j) {
      limit(variables_[j].a, steps[j].a);
      limit(variables_[j].s, steps[j].s);
      if (LossKind::boxed) {
        limit(room(variables_[j]), -steps[j].a);
        limit(variables_[j].t, steps[j].t);
      }
    }
    return longest;
  }

  double mu_after(const std::vector<Step>& steps, double length) const {
    double sum = 0.0;
    std::size_t count = 0;
    for (std::size_t j = 0; j < steps.size(); ++j) {
      const Variable& v = variables_[j];
      sum += (v.s + length * steps[j].s) * (v.a + length * steps[j].a);
      if (LossKind::boxed) sum += (v.t + length * steps[j].t) * (room(v) - length * steps[j].a);
      count += LossKind::boxed ? 2 : 1;
    }
    return sum / static_cast<double>(count);
  }

  std::span<const Costs> costs_;
  NormalSystem& system_;
  const Monitor& monitor_;
  std::vector<Variable> variables_;
  std::vector<double> scores_;
};

}  // namespace unkernel::solve
