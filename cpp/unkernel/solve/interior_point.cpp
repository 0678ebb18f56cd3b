#include "unkernel/solve/interior_point.hpp"

#include <algorithm>
#include <cmath>

namespace unkernel::solve {

InteriorPoint::InteriorPoint(const Loss& loss, std::span<const Costs> costs, std::span<const double> targets,
                             NormalSystem& system, const Monitor& monitor)
    : loss_(loss),
      has_box_(!loss.squared),
      costs_(costs),
      system_(system),
      monitor_(monitor),
      targets_(targets) {
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].positive > 0.0) add_variable(i, 1.0, loss.low, costs[i].positive);
    if (costs[i].negative > 0.0) add_variable(i, -1.0, -loss.high, costs[i].negative);
  }
  compute_residuals();
}

void InteriorPoint::compute_residuals() {
  residuals_ = system_.scores(duals());
  for (std::size_t i = 0; i < targets_.size(); ++i) residuals_[i] -= targets_[i];
}

bool InteriorPoint::run(double tolerance) {
  constexpr int most_iterations = 100;
  for (int iteration = 0; iteration < most_iterations; ++iteration) {
    if (is_converged(tolerance)) return true;
    monitor_.throw_if_stopped();
    if (!iterate()) return false;
  }
  return false;
}

std::vector<double> InteriorPoint::duals() const {
  std::vector<double> u(costs_.size(), 0.0);
  for (const Variable& v : variables_) u[v.row] += v.sign * v.a;
  return u;
}

void InteriorPoint::add_variable(std::size_t row, double sign, double margin, double cost) {
  const double start = has_box_ ? 0.5 * cost : cost;
  variables_.push_back({row, sign, margin, cost, start, 1.0, has_box_ ? 1.0 : 0.0});
}

bool InteriorPoint::is_converged(double tolerance) const {
  const std::vector<double> u = duals();
  double gap = 0.0, loss = 0.0, squared_weights = 0.0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    const double row_loss = loss_of(loss_, costs_[i], residuals_[i]);
    const double score = residuals_[i] + (targets_.empty() ? 0.0 : targets_[i]);
    loss += row_loss;
    gap += row_loss - dual_of(loss_, costs_[i], u[i]) + u[i] * residuals_[i];
    squared_weights += u[i] * score;
  }
  return gap <= tolerance * (0.5 * squared_weights + loss);
}

double InteriorPoint::mu() const {
  double sum = 0.0;
  std::size_t count = 0;
  for (const Variable& v : variables_) {
    sum += v.s * v.a + (has_box_ ? v.t * slack(v) : 0.0);
    count += has_box_ ? 2 : 1;
  }
  return sum / static_cast<double>(count);
}

double InteriorPoint::curvature(const Variable& v) const {
  return diagonal(v) + v.s / v.a + (has_box_ ? v.t / slack(v) : 0.0);
}

bool InteriorPoint::iterate() {
  std::vector<double> E(costs_.size(), 0.0);
  for (const Variable& v : variables_) E[v.row] += 1.0 / curvature(v);
  system_.factor(E);
  const double mu_before = mu();
  const std::vector<Move> predictor = solve_for(0.0, {});
  const double predictor_length = longest_move(predictor);
  const double mu_after_predictor = mu_after(predictor, predictor_length);
  const double centre = mu_before * std::pow(mu_after_predictor / mu_before, 3);
  const std::vector<Move> corrector = solve_for(centre, predictor);
  constexpr double share_of_longest = 0.995;  // keeps all variables away from 0
  constexpr double min_length = 1e-12;
  const double length = std::min(1.0, share_of_longest * longest_move(corrector));
  if (!(length > min_length) || !std::isfinite(mu_after(corrector, length))) return false;
  for (std::size_t j = 0; j < variables_.size(); ++j) {
    variables_[j].a += length * corrector[j].a;
    variables_[j].s += length * corrector[j].s;
    variables_[j].t += length * corrector[j].t;
  }
  compute_residuals();  // adding changes would accumulate rounding errors
  return true;
}

// Returns the Newton step towards s a = t (c - a) = centre, corrected by the second-order terms of the
// predictor.
std::vector<InteriorPoint::Move> InteriorPoint::solve_for(double centre,
                                                          const std::vector<Move>& predictor) const {
  std::vector<double> right_side(variables_.size());
  std::vector<double> e(costs_.size(), 0.0);
  for (std::size_t j = 0; j < variables_.size(); ++j) {
    const Variable& v = variables_[j];
    const double residual = v.sign * residuals_[v.row] - v.margin + diagonal(v) * v.a - v.s + v.t;
    right_side[j] = -residual + target_s(j, centre, predictor) / v.a;
    if (has_box_) right_side[j] -= target_t(j, centre, predictor) / slack(v);
    e[v.row] += v.sign * right_side[j] / curvature(v);
  }
  const Change change = system_.solve(e);
  std::vector<Move> moves(variables_.size());
  for (std::size_t j = 0; j < variables_.size(); ++j) {
    const Variable& v = variables_[j];
    Move& move = moves[j];
    move.a = change_of(j, right_side, change);
    move.s = (target_s(j, centre, predictor) - v.s * move.a) / v.a;
    move.t = has_box_ ? (target_t(j, centre, predictor) + v.t * move.a) / slack(v) : 0.0;
  }
  return moves;
}

// Returns the change of variable j. If the change of u is known and the row has one label, the label's
// variable gets the whole change. If the row has two labels, the variable with the larger curvature gets a
// change computed from the scores, with little cancellation; the other variable gets the remainder.
double InteriorPoint::change_of(std::size_t j, const std::vector<double>& right_side,
                                const Change& change) const {
  const auto from_scores = [&](std::size_t k) {
    const Variable& w = variables_[k];
    return (right_side[k] - w.sign * change.scores[w.row]) / curvature(w);
  };
  if (change.u.empty()) return from_scores(j);
  const Variable& v = variables_[j];
  const std::size_t other = v.sign > 0.0 ? j + 1 : j - 1;  // the positive label comes first
  const bool has_one_label = other >= variables_.size() || variables_[other].row != v.row;
  if (has_one_label) return v.sign * change.u[v.row];
  if (curvature(v) >= curvature(variables_[other])) return from_scores(j);
  return v.sign * (change.u[v.row] - variables_[other].sign * from_scores(other));
}

double InteriorPoint::target_s(std::size_t j, double centre, const std::vector<Move>& predictor) const {
  const Variable& v = variables_[j];
  return centre - v.s * v.a - (predictor.empty() ? 0.0 : predictor[j].a * predictor[j].s);
}
double InteriorPoint::target_t(std::size_t j, double centre, const std::vector<Move>& predictor) const {
  const Variable& v = variables_[j];
  return centre - v.t * slack(v) + (predictor.empty() ? 0.0 : predictor[j].a * predictor[j].t);
}

// Returns the largest step, up to 1, that keeps all positive variables positive.
double InteriorPoint::longest_move(const std::vector<Move>& moves) const {
  double longest = 1.0;
  const auto limit = [&](double value, double slope) {
    if (slope < 0.0) longest = std::min(longest, -value / slope);
  };
  for (std::size_t j = 0; j < moves.size(); ++j) {
    limit(variables_[j].a, moves[j].a);
    limit(variables_[j].s, moves[j].s);
    if (has_box_) {
      limit(slack(variables_[j]), -moves[j].a);
      limit(variables_[j].t, moves[j].t);
    }
  }
  return longest;
}

double InteriorPoint::mu_after(const std::vector<Move>& moves, double length) const {
  double sum = 0.0;
  std::size_t count = 0;
  for (std::size_t j = 0; j < moves.size(); ++j) {
    const Variable& v = variables_[j];
    sum += (v.s + length * moves[j].s) * (v.a + length * moves[j].a);
    if (has_box_) sum += (v.t + length * moves[j].t) * (slack(v) - length * moves[j].a);
    count += has_box_ ? 2 : 1;
  }
  return sum / static_cast<double>(count);
}

}  // namespace unkernel::solve
