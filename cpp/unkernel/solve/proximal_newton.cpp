#include "unkernel/solve/proximal_newton.hpp"

#include <algorithm>
#include <cmath>

#include "unkernel/base/parallel.hpp"
#include "unkernel/solve/newton_model.hpp"

namespace unkernel::solve {
namespace {

// Returns the largest value of a concave function on [0, high].
template <class Function>
double largest_value(const Function& value, double high) {
  constexpr double golden = 0.6180339887498949;
  double low = 0.0;
  double best = value(high);
  for (int round = 0; round < 24; ++round) {
    const double left_point = high - golden * (high - low);
    const double right_point = low + golden * (high - low);
    const double left_value = value(left_point);
    const double right_value = value(right_point);
    best = std::max({best, left_value, right_value});
    if (left_value > right_value) {
      high = right_point;
    } else {
      low = left_point;
    }
  }
  return best;
}

}  // namespace

double best_dual(const ScoreLoss& loss, std::span<const double> gradients, const Penalty& penalty,
                 std::span<const double> strengths, double largest) {
  if (penalty.l2 <= 0.0) return loss.dual(gradients, largest > penalty.l1 ? penalty.l1 / largest : 1.0);
  const auto value = [&](double scale) {
    double excess = 0.0;
    for (const double strength : strengths) {
      const double violation = std::max(scale * strength - penalty.l1, 0.0);
      excess += violation * violation;
    }
    return loss.dual(gradients, scale) - excess / (2.0 * penalty.l2);
  };
  return largest > penalty.l1 ? largest_value(value, 1.0) : value(1.0);
}

ProximalNewton::ProximalNewton(const SparseColumns& columns, const ScoreLoss& loss, const Penalty& penalty,
                               std::uint64_t seed, int threads, Monitor& monitor)
    : columns_(columns),
      loss_(loss),
      penalty_(penalty),
      random_(seed),
      threads_(threads),
      monitor_(monitor),
      rows_(loss.rows()),
      gram_(columns, rows_),
      weights_(loss.outputs()),
      scores_(rows_ * loss.outputs(), 0.0),
      gradients_(scores_.size()),
      curvature_(rows_),
      largest_curvature_(rows_),
      column_gradients_(loss.outputs()) {
  loss.largest_curvatures(largest_curvature_);
}

void ProximalNewton::resize_to_columns() {
  for (auto& weights : weights_) weights.resize(columns_.size(), 0.0);
  for (auto& gradients : column_gradients_) gradients.resize(columns_.size());
}

void ProximalNewton::add_weight(std::size_t column, std::size_t output, double weight) {
  resize_to_columns();
  columns_.axpy(column, weight, scores_.data() + output * rows_);
  weights_[output][column] += weight;
}

double ProximalNewton::penalty_of(double weight) const {
  return penalty_.l1 * std::abs(weight) + 0.5 * penalty_.l2 * weight * weight;
}

double ProximalNewton::penalty_total() const {
  double total = 0.0;
  for (const auto& weights : weights_) {
    for (const double weight : weights) total += penalty_of(weight);
  }
  return total;
}

void ProximalNewton::evaluate() {
  constexpr std::int64_t columns_per_task = 256;
  resize_to_columns();
  std::vector<double> strengths;
  double largest = 0.0;
  for (std::size_t output = 0; output < weights_.size(); ++output) {
    double* gradients = gradients_.data() + output * rows_;
    loss_.derivatives(scores_, output, {gradients, rows_}, curvature_);
    std::vector<double>& column_gradients = column_gradients_[output];
    parallel_ranges(threads_, static_cast<std::int64_t>(columns_.size()), columns_per_task,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (auto j = static_cast<std::size_t>(begin); j < static_cast<std::size_t>(end); ++j)
                        column_gradients[j] = columns_.dot(j, gradients);
                    });
    for (const double gradient : column_gradients) {
      const double strength = std::abs(gradient);
      largest = std::max(largest, strength);
      if (penalty_.l2 > 0.0 && strength > penalty_.l1) strengths.push_back(strength);
    }
  }
  objective_ = penalty_total() + loss_.value(scores_);
  dual_objective_ = best_dual(loss_, gradients_, penalty_, strengths, largest);
}

// Returns by how much a column violates its optimality condition.
double ProximalNewton::violation(std::size_t j, std::size_t output) const {
  const double weight = weights_[output][j];
  const double gradient = column_gradients_[output][j] + penalty_.l2 * weight;
  if (weight > 0.0) return std::abs(gradient + penalty_.l1);
  if (weight < 0.0) return std::abs(gradient - penalty_.l1);
  return std::max(std::abs(gradient) - penalty_.l1, 0.0);
}

bool ProximalNewton::run(double gap, std::int64_t most_steps, int most_passes) {
  evaluate();
  for (std::int64_t steps_made = 0; objective_ - dual_objective_ > gap; ++steps_made) {
    if (steps_made == most_steps) return false;
    monitor_.throw_if_stopped();
    choose_accuracy(gap);
    const bool moved = step(most_passes);
    ++steps_;
    evaluate();
    if (!moved) return objective_ - dual_objective_ <= gap;  // rounding errors prevent further progress
  }
  return true;
}

// Sets the factor by which the model's violation must fall. The gap falls by about the same factor.
void ProximalNewton::choose_accuracy(double gap) {
  model_accuracy_ = std::clamp(0.3 * gap / (objective_ - dual_objective_), 0.1, 0.3);
}

double ProximalNewton::largest_violation() const {
  double largest = 0.0;
  for (std::size_t output = 0; output < weights_.size(); ++output) {
    for (std::size_t j = 0; j < columns_.size(); ++j) largest = std::max(largest, violation(j, output));
  }
  return largest;
}

void ProximalNewton::choose_columns(Model& model) const {
  const double min_gradient = penalty_.l1 - largest_violation();
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    for (std::size_t output = 0; output < weights_.size(); ++output) {
      const double weight = weights_[output][j];
      const double gradient = column_gradients_[output][j];
      if (weight == 0.0 && std::abs(gradient) < min_gradient) continue;
      model.columns.push_back(static_cast<std::int32_t>(j));
      model.outputs.push_back(output);
      model.gradient.push_back(gradient);
      model.weights.push_back(weight);
    }
  }
  model.steps.assign(model.columns.size(), 0.0);
  model.curvature.assign(model.columns.size(), 0.0);
}

void ProximalNewton::damp() {
  if (damping_ == 0.0) return;
  for (std::size_t i = 0; i < rows_; ++i) curvature_[i] += damping_ * (largest_curvature_[i] - curvature_[i]);
}

void ProximalNewton::adapt_damping(double length) {
  constexpr double min_damping = 1e-4;
  constexpr double factor = 4.0;
  if (length >= 1.0) {
    damping_ = damping_ > min_damping ? damping_ / factor : 0.0;
  } else if (length < 0.5) {
    damping_ = std::min(1.0, std::max(damping_, min_damping) * factor);
  }
}

double ProximalNewton::search_line(const Model& model) {
  constexpr double sufficient_decrease = 0.01;
  constexpr int most_halvings = 40;
  std::vector<double> direction(scores_.size(), 0.0);
  double slope = 0.0;
  double penalty_before = 0.0;
  for (std::size_t k = 0; k < model.columns.size(); ++k) {
    const double d = model.steps[k];
    if (d == 0.0) continue;
    columns_.axpy(static_cast<std::size_t>(model.columns[k]), d, direction.data() + model.outputs[k] * rows_);
    slope += model.gradient[k] * d + penalty_of(model.weights[k] + d) - penalty_of(model.weights[k]);
    penalty_before += penalty_of(model.weights[k]);
  }
  if (!(slope < 0.0)) return 0.0;
  const double loss_before = loss_.value(scores_);
  const double rounding = 0x1p-50 * objective_;  // about that of the differences below
  double length = 1.0;
  for (int halving = 0; halving < most_halvings; ++halving, length *= 0.5) {
    double penalty = 0.0;
    for (std::size_t k = 0; k < model.columns.size(); ++k) {
      if (model.steps[k] != 0.0) penalty += penalty_of(model.weights[k] + length * model.steps[k]);
    }
    const double change =
        penalty - penalty_before + loss_.value_along(scores_, direction, length) - loss_before;
    if (change > sufficient_decrease * length * slope + rounding) continue;
    for (std::size_t k = 0; k < model.columns.size(); ++k) {
      weights_[model.outputs[k]][static_cast<std::size_t>(model.columns[k])] =
          model.weights[k] + length * model.steps[k];
    }
    for (std::size_t i = 0; i < scores_.size(); ++i) scores_[i] += length * direction[i];
    return length;
  }
  return 0.0;
}

bool ProximalNewton::step(int most_passes) {
  constexpr int most_passes_over_entries = 100;  // these take longer than passes over the Hessian
  Model model;
  choose_columns(model);
  if (weights_.size() > 1) {
    descend_jointly(model);
  } else {
    damp();
    if (is_gram_cheaper(model, most_passes)) {
      descend_on_gram(model, most_passes);
    } else {
      descend(model, std::min(most_passes, most_passes_over_entries));
    }
  }
  const double length = search_line(model);
  adapt_damping(length);
  return length > 0.0 || damping_ < 1.0;
}

}  // namespace unkernel::solve
