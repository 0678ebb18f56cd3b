// Proximal Newton: coordinate descent on the quadratic model with its Hessian in memory.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "unkernel/solve/newton_model.hpp"

namespace unkernel::solve {

// Coordinate descent is slow if columns are nearly dependent. So from time to time all nonzero weights move
// together, along a few conjugate gradient directions; a weight that would change its sign stops at 0.
class ProximalNewton::GramDescent {
 public:
  GramDescent(const ProximalNewton& owner, Model& model)
      : owner_(owner),
        model_(model),
        gram_(owner.gram_),
        gradient_(gram_.size(), 0.0),
        place_(model.columns.size()) {
    for (std::size_t j = 0; j < place_.size(); ++j) {
      place_[j] = gram_.member(model.columns[j]);
      gradient_[place_[j]] = model.gradient[j];
      model.curvature[j] = std::max(gram_.row(place_[j])[place_[j]], 0.0);
    }
  }

  // Returns the violation of the optimality conditions during the pass.
  double pass(std::span<const std::size_t> order) {
    double violations = 0.0;
    for (const std::size_t j : order) {
      const double step = owner_.best_step(model_, j, gradient_[place_[j]]);
      if (step == 0.0) continue;
      violations += (model_.curvature[j] + owner_.penalty_.l2) * std::abs(step);
      model_.steps[j] += step;
      add(step, gram_.row(place_[j]), gradient_);
    }
    return violations;
  }

  void move_together() {
    constexpr int most_rounds = 20;
    support_.clear();
    for (std::size_t j = 0; j < place_.size(); ++j) {
      if (weight(j) != 0.0) support_.push_back(j);
    }
    std::vector<double> residual(support_.size()), scaled(support_.size()), product(support_.size());
    std::vector<double> solution(support_.size(), 0.0);
    for (std::size_t k = 0; k < support_.size(); ++k) residual[k] = -slope(support_[k]);
    std::vector<double> direction(support_.size(), 0.0);
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
  double curvature(std::size_t j) const { return model_.curvature[j] + owner_.penalty_.l2 + ridge; }
  double slope(std::size_t j) const {
    return gradient_[place_[j]] + owner_.penalty_.l2 * weight(j) + ridge * model_.steps[j] +
           std::copysign(owner_.penalty_.l1, weight(j));
  }

  static void add(double step, const double* row, std::vector<double>& sums) {
    for (std::size_t m = 0; m < sums.size(); ++m) sums[m] += step * row[m];
  }

  // Multiplies by the Hessian restricted to the support, including the penalty.
  void multiply(const std::vector<double>& direction, std::vector<double>& product) {
    spread_.assign(gram_.size(), 0.0);
    for (std::size_t k = 0; k < support_.size(); ++k)
      add(direction[k], gram_.row(place_[support_[k]]), spread_);
    for (std::size_t k = 0; k < support_.size(); ++k) {
      product[k] = spread_[place_[support_[k]]] + (owner_.penalty_.l2 + ridge) * direction[k];
    }
  }

  // Moves along the path that bends where weights reach zero, as far as the model decreases.
  void go(const std::vector<double>& solution) {
    std::vector<double> moves(support_.size()), product(support_.size());
    for (double length = 1.0; length > 0.05; length *= 0.5) {
      double change = 0.0;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        const double old = weight(support_[k]);
        const double target = old + length * solution[k];
        moves[k] = old * target > 0.0 ? target - old : -old;
        change += moves[k] * slope(support_[k]);
      }
      multiply(moves, product);
      for (std::size_t k = 0; k < support_.size(); ++k) change += 0.5 * moves[k] * product[k];
      if (!(change < 0.0)) continue;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        const std::size_t j = support_[k];
        model_.steps[j] = moves[k] == -weight(j) ? -model_.weights[j] : model_.steps[j] + moves[k];
      }
      for (std::size_t m = 0; m < gradient_.size(); ++m) gradient_[m] += spread_[m];
      return;
    }
  }

  const ProximalNewton& owner_;
  Model& model_;
  const WeightedGram& gram_;
  std::vector<double> gradient_;      // of the loss, by member
  std::vector<std::size_t> place_;    // the member of each column
  std::vector<std::size_t> support_;  // columns with a weight
  std::vector<double> spread_;        // the last product, for all members
};

void ProximalNewton::descend_on_gram(Model& model) {
  // Far from the optimum, the model itself is the larger source of error.
  const int most_passes = hurried_ && objective_ - dual_objective_ > 0.1 * objective_ ? 50 : 500;
  constexpr int alone = 5;       // passes between joint moves
  constexpr double slack = 0.2;  // slightly outdated curvatures give a nearly equal model
  gram_.update(model.columns, curvature_, slack);
  GramDescent descent(*this, model);
  std::vector<std::size_t> order(model.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double first = 0.0;
  for (int pass = 0; pass < most_passes; ++pass) {
    monitor_.throw_if_stopped();
    if (pass > 0 && pass % alone == 0) descent.move_together();
    random_.shuffle(std::span(order));
    const double violations = descent.pass(order);
    if (pass == 0) first = violations;
    if (violations <= model_accuracy * first) return;
  }
}

}  // namespace unkernel::solve
