// Proximal Newton: minimises the quadratic model, for any representation of its Hessian.
//
// A Hessian keeps the gradient of the loss at the current steps up to date. It has the functions
//   gradient(j)                             returns the gradient in column j
//   move(j, step)                           updates the gradient after a step of column j
//   heavy_columns(support)                  returns how many columns of the support a preconditioner may use
//   fill_gram(gram, columns)                writes the Hessian of these columns to `gram`
//   multiply(support, direction, product)   computes H d, for the columns of the support
//   move_by_product()                       updates the gradient after steps along the last direction
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "unkernel/solve/heavy_columns.hpp"
#include "unkernel/solve/newton_model.hpp"

namespace unkernel::solve {

// Coordinate descent is slow if columns are nearly dependent. So after every few passes, all nonzero weights
// move together, to the minimum of the model for the current signs:
//
//   (H + r I) d = -slope   by preconditioned conjugate gradients (heavy_columns.hpp).
//
// Weights that would change their sign are fixed at 0, and the system is solved again for the other weights,
// a few times: merely clipping the path where signs change rarely lowers the model. The ridge r limits moves
// along dependent columns, where the model is flat. It decreases while full moves succeed, and increases when
// a move fails.
//
// If columns are not nearly dependent, a few directions with a diagonal preconditioner and without a ridge
// reach the same result in less time. So thorough moves (JointEffort::is_thorough) are made only after moves
// without a ridge have stagnated. They are never made for columns of real values, which are denser, so that
// more directions would cost more time than they save.
template <class Hessian>
class ProximalNewton::JointMoves {
 public:
  // `effort` persists from one model to the next.
  JointMoves(const Penalty& penalty, Model& model, Hessian& hessian, WeightedGram& gram, JointEffort& effort)
      : penalty_(penalty), model_(model), hessian_(hessian), gram_(gram), effort_(effort) {}

  void move_together() {
    const int most_solutions = effort_.is_thorough ? 3 : 1;
    list_support();
    std::vector<double> moves(support_.size(), 0.0), product(support_.size(), 0.0);
    for (int solution = 0; solution < most_solutions; ++solution) {
      solve(moves, product);
      if (!effort_.is_thorough || !fix_crossing(moves)) break;
      multiply(moves, product);
    }
    move_along_path(moves);
  }

 private:
  double weight(std::size_t j) const { return model_.weights[j] + model_.steps[j]; }
  double curvature(std::size_t j) const { return model_.curvature[j] + penalty_.l2 + tiny_ridge; }
  double slope(std::size_t j) const {
    return hessian_.gradient(j) + penalty_.l2 * weight(j) + tiny_ridge * model_.steps[j] +
           std::copysign(penalty_.l1, weight(j));
  }

  void list_support() {
    support_.clear();
    slopes_.clear();
    for (std::size_t j = 0; j < model_.columns.size(); ++j) {
      if (weight(j) == 0.0) continue;
      support_.push_back(j);
      slopes_.push_back(slope(j));
    }
    fixed_.assign(support_.size(), false);
  }

  // Multiplies by the Hessian restricted to the support, including the penalty.
  void multiply(std::span<const double> direction, std::span<double> product) {
    hessian_.multiply(support_, direction, product);
    for (std::size_t k = 0; k < support_.size(); ++k) product[k] += (penalty_.l2 + tiny_ridge) * direction[k];
  }

  void prepare_preconditioner() {
    if (preconditioner_) return;
    preconditioner_.emplace(support_, model_.columns, model_.curvature, hessian_.heavy_columns(support_));
    hessian_.fill_gram(gram_, preconditioner_->columns());
    preconditioner_->factor(gram_, effort_.ridge);
  }

  void divide(std::span<const double> residual, std::span<const double> diagonal,
              std::span<double> quotient) {
    if (preconditioner_) return preconditioner_->divide(support_, residual, diagonal, quotient);
    for (std::size_t k = 0; k < support_.size(); ++k) quotient[k] = residual[k] / diagonal[k];
  }

  // Improves the moves of the weights that are not fixed. `start` is the product of the Hessian and the
  // current moves.
  void solve(std::span<double> moves, std::span<const double> start) {
    const int most_rounds = effort_.is_thorough ? 30 : 20;
    const double extra_ridge = effort_.is_thorough ? effort_.ridge : 0.0;
    constexpr double accuracy = 1e-2;
    if (effort_.is_thorough) prepare_preconditioner();
    const std::size_t count = support_.size();
    std::vector<double> residual(count, 0.0), scaled(count), direction(count, 0.0), product(count);
    std::vector<double> diagonal(count);
    for (std::size_t k = 0; k < count; ++k) {
      diagonal[k] = curvature(support_[k]) + extra_ridge;
      if (!fixed_[k]) residual[k] = -slopes_[k] - start[k] - extra_ridge * moves[k];
    }
    double last_size = 0.0;
    double first_size = 0.0;
    for (int round = 0; round < most_rounds; ++round) {
      divide(residual, diagonal, scaled);
      double size = 0.0;
      for (std::size_t k = 0; k < count; ++k) size += residual[k] * scaled[k];
      if (round == 0) first_size = size;
      if (!(size > accuracy * accuracy * first_size)) break;
      for (std::size_t k = 0; k < count; ++k) {
        if (!fixed_[k]) direction[k] = scaled[k] + (round > 0 ? size / last_size : 0.0) * direction[k];
      }
      multiply(direction, product);
      double curvature_along = 0.0;
      for (std::size_t k = 0; k < count; ++k) {
        product[k] += extra_ridge * direction[k];
        curvature_along += direction[k] * product[k];
      }
      if (!(curvature_along > 0.0)) break;
      for (std::size_t k = 0; k < count; ++k) {
        if (fixed_[k]) continue;
        moves[k] += size / curvature_along * direction[k];
        residual[k] -= size / curvature_along * product[k];
      }
      last_size = size;
    }
  }

  // Fixes the weights that would change their sign, so that their moves end at 0. Returns whether any weight
  // was fixed.
  bool fix_crossing(std::span<double> moves) {
    bool any_fixed = false;
    for (std::size_t k = 0; k < support_.size(); ++k) {
      const double current = weight(support_[k]);
      if (fixed_[k] || current * (current + moves[k]) > 0.0) continue;
      moves[k] = -current;
      fixed_[k] = any_fixed = true;
    }
    return any_fixed;
  }

  // Moves along the path, which bends where weights reach zero, as far as the model decreases.
  void move_along_path(std::span<const double> solution) {
    constexpr double least_ridge = 1e-4;
    constexpr double largest_ridge = 1e3;
    std::vector<double> moves(support_.size()), product(support_.size());
    constexpr double min_length = 0.05;
    for (double length = 1.0; length > min_length; length *= 0.5) {
      double change = 0.0;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        const double current = weight(support_[k]);
        const double target = current + length * solution[k];
        moves[k] = current * target > 0.0 ? target - current : -current;
        change += moves[k] * slopes_[k];
      }
      multiply(moves, product);
      for (std::size_t k = 0; k < support_.size(); ++k) change += 0.5 * moves[k] * product[k];
      if (!(change < 0.0)) continue;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        const std::size_t j = support_[k];
        model_.steps[j] = moves[k] == -weight(j) ? -model_.weights[j] : model_.steps[j] + moves[k];
      }
      hessian_.move_by_product();
      if (effort_.is_thorough && length == 1.0) effort_.ridge = std::max(effort_.ridge / 3.0, least_ridge);
      return;
    }
    if (effort_.is_thorough) effort_.ridge = std::min(effort_.ridge * 5.0, largest_ridge);
  }

  const Penalty& penalty_;
  Model& model_;
  Hessian& hessian_;
  WeightedGram& gram_;
  JointEffort& effort_;
  std::optional<HeavyColumns> preconditioner_;
  std::vector<std::size_t> support_;  // columns with a weight
  std::vector<double> slopes_;        // of the support
  std::vector<bool> fixed_;           // by position in the support: whether the weight ends at 0
};

// Runs coordinate descent in random order, with joint moves between passes. Ends when the optimality
// conditions are violated much less than in the first pass.
template <class Hessian>
void ProximalNewton::descend_with(Hessian& hessian, Model& model, int most_passes) {
  constexpr int passes_between_moves = 3;
  constexpr double stagnation = 0.7;  // a larger ratio of violations counts as no progress
  JointMoves<Hessian> joint(penalty_, model, hessian, gram_, joint_effort_);
  std::vector<std::size_t> order(model.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double first_violations = 0.0;
  double violations_at_last_move = 0.0;  // in the pass before the last joint move
  double latest_violations = 0.0;
  int passes_since_move = 0;
  for (int pass = 0; pass < most_passes; ++pass) {
    monitor_.throw_if_stopped();
    if (passes_since_move++ == passes_between_moves) {
      const bool stagnates =
          violations_at_last_move > 0.0 && latest_violations > stagnation * violations_at_last_move;
      if (stagnates && columns_.uniform()) joint_effort_.is_thorough = true;
      violations_at_last_move = latest_violations;
      joint.move_together();
      passes_since_move = 1;
    }
    random_.shuffle(std::span(order));
    double violations = 0.0;
    for (const std::size_t j : order) {
      const double step = best_step(model, j, hessian.gradient(j));
      if (step == 0.0) continue;
      violations += (model.curvature[j] + penalty_.l2) * std::abs(step);
      apply_step(model, j, step);
      hessian.move(j, step);
    }
    latest_violations = violations;
    if (pass == 0) first_violations = violations;
    if (violations <= model_accuracy_ * first_violations) return;
  }
}

}  // namespace unkernel::solve
