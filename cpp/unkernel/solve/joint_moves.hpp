// Proximal Newton: how the quadratic model is minimised, whatever form its Hessian has.
//
// A Hessian keeps the gradient of the loss at the current steps. It has
//   gradient(j)                             of one column
//   move(j, step)                           after a step of one column
//   multiply(support, direction, product)   H d, for the columns of the support
//   move_by_product()                       after steps along the last direction that was multiplied
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "unkernel/solve/newton_model.hpp"

namespace unkernel::solve {

// Coordinate descent is slow if columns are nearly dependent. So from time to time all nonzero weights move
// together, along a few conjugate gradient directions; a weight that would change its sign stops at 0.
template <class Hessian>
class ProximalNewton::JointMoves {
 public:
  JointMoves(const Penalty& penalty, Model& model, Hessian& hessian)
      : penalty_(penalty), model_(model), hessian_(hessian) {}

  void move_together() {
    constexpr int most_rounds = 20;
    support_.clear();
    for (std::size_t j = 0; j < model_.columns.size(); ++j) {
      if (weight(j) != 0.0) support_.push_back(j);
    }
    slopes_.resize(support_.size());
    for (std::size_t k = 0; k < support_.size(); ++k) slopes_[k] = slope(support_[k]);
    std::vector<double> residual(slopes_), scaled(support_.size()), product(support_.size());
    for (double& value : residual) value = -value;
    std::vector<double> solution(support_.size(), 0.0), direction(support_.size(), 0.0);
    double before = 0.0;
    double first = 0.0;
    for (int round = 0; round < most_rounds; ++round) {
      double size = 0.0;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        scaled[k] = residual[k] / curvature(support_[k]);
        size += residual[k] * scaled[k];
      }
      if (round == 0) first = size;
      if (!(size > 1e-4 * first)) break;
      for (std::size_t k = 0; k < support_.size(); ++k)
        direction[k] = scaled[k] + (round > 0 ? size / before : 0.0) * direction[k];
      multiply(direction, product);
      double along = 0.0;
      for (std::size_t k = 0; k < support_.size(); ++k) along += direction[k] * product[k];
      if (!(along > 0.0)) break;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        solution[k] += size / along * direction[k];
        residual[k] -= size / along * product[k];
      }
      before = size;
    }
    go(solution);
  }

 private:
  double weight(std::size_t j) const { return model_.weights[j] + model_.steps[j]; }
  double curvature(std::size_t j) const { return model_.curvature[j] + penalty_.l2 + ridge; }
  double slope(std::size_t j) const {
    return hessian_.gradient(j) + penalty_.l2 * weight(j) + ridge * model_.steps[j] +
           std::copysign(penalty_.l1, weight(j));
  }

  // Multiplies by the Hessian restricted to the support, including the penalty.
  void multiply(std::span<const double> direction, std::span<double> product) {
    hessian_.multiply(support_, direction, product);
    for (std::size_t k = 0; k < support_.size(); ++k) product[k] += (penalty_.l2 + ridge) * direction[k];
  }

  // Moves along the path that bends where weights reach zero, as far as the model decreases.
  void go(std::span<const double> solution) {
    std::vector<double> moves(support_.size()), product(support_.size());
    for (double length = 1.0; length > 0.05; length *= 0.5) {
      double change = 0.0;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        const double old = weight(support_[k]);
        const double target = old + length * solution[k];
        moves[k] = old * target > 0.0 ? target - old : -old;
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
      return;
    }
  }

  const Penalty& penalty_;
  Model& model_;
  Hessian& hessian_;
  std::vector<std::size_t> support_;  // columns with a weight
  std::vector<double> slopes_;        // of these
};

// Coordinate descent in random order, until a pass violates the optimality conditions much less than the
// first one, with joint moves between passes.
template <class Hessian>
void ProximalNewton::descend_with(Hessian& hessian, Model& model, int most_passes) {
  constexpr int alone = 5;  // passes between joint moves
  JointMoves<Hessian> joint(penalty_, model, hessian);
  std::vector<std::size_t> order(model.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double first = 0.0;
  for (int pass = 0; pass < most_passes; ++pass) {
    monitor_.throw_if_stopped();
    if (pass > 0 && pass % alone == 0) joint.move_together();
    random_.shuffle(std::span(order));
    double violations = 0.0;
    for (const std::size_t j : order) {
      const double step = best_step(model, j, hessian.gradient(j));
      if (step == 0.0) continue;
      violations += (model.curvature[j] + penalty_.l2) * std::abs(step);
      take(model, j, step);
      hessian.move(j, step);
    }
    if (pass == 0) first = violations;
    if (violations <= model_accuracy * first) return;
  }
}

}  // namespace unkernel::solve
