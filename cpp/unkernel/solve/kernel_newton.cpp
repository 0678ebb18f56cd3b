#include "unkernel/solve/kernel_newton.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "unkernel/solve/system_plan.hpp"

namespace unkernel::solve {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

KernelNewton::KernelNewton(const RowPasses& rows, const ScoreLoss& loss, std::vector<double> coefficients,
                           std::size_t dimension, const MatrixLimits& limits, Monitor& monitor)
    : rows_(rows), loss_(loss), monitor_(monitor), u_(std::move(coefficients)), buffer_(dimension) {
  if (loss.outputs() == 1 && rows.has_kernel()) limits_ = limits;
  f_ = kernel_times(u_);
  g_.resize(u_.size());
}

KernelNewton::KernelNewton(const RowPasses& rows, const ScoreLoss& loss, Pull pull, std::size_t dimension,
                           Monitor& monitor)
    : rows_(rows),
      loss_(loss),
      monitor_(monitor),
      pull_(std::move(pull)),
      u_(loss.rows() * loss.outputs(), 0.0),
      f_(pull_.offsets),
      buffer_(dimension) {
  g_.resize(u_.size());
}

double KernelNewton::offset_times(const std::vector<double>& a) const {
  return pull_.offsets.empty() ? 0.0 : dot(a, pull_.offsets);
}

Outcome KernelNewton::run(double tolerance, std::int64_t most_steps, Progress progress) {
  Outcome outcome;
  while (true) {
    for (std::size_t k = 0; k < loss_.outputs(); ++k) {
      curvature_.resize(loss_.rows());
      loss_.derivatives(f_, k, std::span(g_).subspan(k * loss_.rows(), loss_.rows()), curvature_);
    }
    if (loss_.outputs() > 1) {
      joint_.resize(u_.size());
      loss_.joint_curvatures(f_, joint_);
    }
    std::vector<double> r(u_.size());
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = -(u_[i] + g_[i]);
    std::vector<double> Kr = kernel_times(r);
    outcome.objective = pull_.constant + 0.5 * (dot(u_, f_) - offset_times(u_)) + loss_.value(f_);
    double squared = offset_times(g_);  // g'Kg, where Kg = -(Kr + f - o)
    for (std::size_t i = 0; i < r.size(); ++i) squared -= g_[i] * (Kr[i] + f_[i]);
    outcome.dual_objective = std::max(
        outcome.dual_objective, pull_.constant + loss_.dual(g_, 1.0) + offset_times(g_) - 0.5 * squared);
    outcome.converged = outcome.objective - outcome.dual_objective <= tolerance * outcome.objective;
    progress.epoch = outcome.epochs;
    progress.active = rows_.size();
    progress.relative_gap = outcome.relative_gap();
    progress.objective = outcome.objective;
    progress.bound = outcome.dual_objective;
    monitor_.report(progress);
    outcome.history.note({outcome.epochs, outcome.objective, outcome.dual_objective});
    if (outcome.converged || outcome.epochs >= most_steps) return outcome;
    if (!step(std::move(r), std::move(Kr), outcome.objective))
      return outcome;  // rounding errors prevent further progress
    ++outcome.epochs;
  }
}

std::vector<double> KernelNewton::kernel_times(const std::vector<double>& a) {
  constexpr std::int64_t grain = 4096;  // rows between two checks of the monitor
  const auto count = static_cast<std::int64_t>(loss_.rows());
  std::vector<double> product(a.size());
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(loss_.outputs()); ++k) {
    std::fill_n(buffer_.data(), buffer_.size(), 0.0);
    for (std::int64_t i = 0; i < count; i += grain) {
      monitor_.throw_if_stopped();
      rows_.add(i, std::min(count, i + grain), a.data() + k * count, buffer_.data());
    }
    if (!pull_.factors.empty()) {
      const double* factors = pull_.factors.data() + static_cast<std::size_t>(k) * buffer_.size();
      for (std::size_t j = 0; j < buffer_.size(); ++j) buffer_.data()[j] *= factors[j];
    }
    for (std::int64_t i = 0; i < count; i += grain) {
      monitor_.throw_if_stopped();
      rows_.dots(i, std::min(count, i + grain), buffer_.data(), product.data() + k * count);
    }
  }
  return product;
}

// Returns D v, where D is the Hessian of the loss in the scores.
std::vector<double> KernelNewton::multiply_by_curvature(const std::vector<double>& v) const {
  const std::size_t count = loss_.rows();
  const std::size_t outputs = loss_.outputs();
  std::vector<double> result(v.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (outputs == 1) {
      result[i] = curvature_[i] * v[i];
      continue;
    }
    double total = 0.0;
    double weighted_sum = 0.0;
    for (std::size_t k = 0; k < outputs; ++k) {
      total += joint_[i * outputs + k];
      weighted_sum += joint_[i * outputs + k] * v[k * count + i];
    }
    const double mean = total > 0.0 ? weighted_sum / total : 0.0;
    for (std::size_t k = 0; k < outputs; ++k)
      result[k * count + i] = joint_[i * outputs + k] * (v[k * count + i] - mean);
  }
  return result;
}

// Makes a Newton step from the residual r = -(u + L'(f)) and its product K r. Returns whether the objective
// fell.
bool KernelNewton::step(std::vector<double> r, std::vector<double> Kr, double objective) {
  constexpr int most_rounds = 200;
  constexpr double accuracy = 0.1;
  if (system_) {
    if (step_by_factoring(r, objective)) return true;
    system_.reset();  // rounding errors of the matrix are too large
    limits_.reset();
  }
  const std::vector<double> first_residual = r;
  std::vector<double> d(r.size(), 0.0), Kd(r.size(), 0.0), p = r, Kp = Kr;
  double size = dot(r, Kr);
  const double target_size = accuracy * accuracy * size;
  int round = 0;
  for (; round < most_rounds && size > target_size; ++round) {
    std::vector<double> Ap = multiply_by_curvature(Kp);
    for (std::size_t i = 0; i < p.size(); ++i) Ap[i] += p[i];
    const double curvature_along = dot(Kp, Ap);
    if (!(curvature_along > 0.0)) break;
    const double length = size / curvature_along;
    for (std::size_t i = 0; i < p.size(); ++i) {
      d[i] += length * p[i];
      Kd[i] += length * Kp[i];
      r[i] -= length * Ap[i];
    }
    Kr = kernel_times(r);
    const double next = dot(r, Kr);
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] = r[i] + next / size * p[i];
      Kp[i] = Kr[i] + next / size * Kp[i];
    }
    size = next;
  }
  choose_system(round);
  return search_line(d, Kd, -dot(first_residual, Kd), objective);
}

// Makes the matrix for the next steps if factoring it takes less time than this number of rounds.
void KernelNewton::choose_system(int rounds) {
  if (!limits_) return;
  const double cost_of_round = 4.0 * static_cast<double>(rows_.size()) * rows_.mean_map_size();
  const SystemPlan plan = plan_system(rows_, {buffer_.data(), buffer_.size()}, limits_->memory);
  if (plan.cost <= rounds * cost_of_round) system_ = make_system(rows_, plan, limits_->threads);
}

// Makes a Newton step by factoring the matrix. Returns whether the objective fell.
bool KernelNewton::step_by_factoring(const std::vector<double>& r, double objective) {
  constexpr double least_curvature = 1e-200;  // the matrix over rows is divided by its root
  std::vector<double> E(curvature_);
  for (double& curvature : E) curvature = std::max(curvature, least_curvature);
  system_->factor(E);
  Change change = system_->solve(r);
  if (change.u.empty()) {
    change.u = r;
    for (std::size_t i = 0; i < r.size(); ++i) change.u[i] -= E[i] * change.scores[i];
  }
  const std::vector<double> Kd = kernel_times(change.u);
  return search_line(change.u, Kd, -dot(r, Kd), objective);
}

bool KernelNewton::search_line(const std::vector<double>& d, const std::vector<double>& Kd, double slope,
                               double objective) {
  constexpr double sufficient_decrease = 0.01;
  constexpr int most_halvings = 40;
  if (!(slope < 0.0)) return false;
  const double uKu = dot(u_, f_) - offset_times(u_), uKd = dot(u_, Kd), dKd = dot(d, Kd);
  double length = 1.0;
  for (int halving = 0; halving < most_halvings; ++halving, length *= 0.5) {
    const double penalty = 0.5 * (uKu + length * (2.0 * uKd + length * dKd));
    const double value = pull_.constant + penalty + loss_.value_along(f_, Kd, length);
    if (value > objective + sufficient_decrease * length * slope) continue;
    for (std::size_t i = 0; i < u_.size(); ++i) {
      u_[i] += length * d[i];
      f_[i] += length * Kd[i];
    }
    return true;
  }
  return false;
}

}  // namespace unkernel::solve
