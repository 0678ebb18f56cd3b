#include "unkernel/poly/costs.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "unkernel/base/elementary.hpp"
#include "unkernel/solve/poisson_term.hpp"

namespace unkernel::poly {

double require_valid_cost(double cost) {
  // With larger costs, the rounding error of a zero loss would exceed the penalty.
  constexpr double largest_cost = 1e20;
  if (!(cost > 0.0 && cost <= largest_cost))
    throw std::invalid_argument("C times the weights must be positive, and at most 1e20");
  return cost;
}

double CostFactors::of(const Label& label) const {
  return require_valid_cost(C * class_weights[static_cast<std::size_t>(label.code)] * label.weight);
}

std::vector<solve::Costs> costs_of_residuals(const DistinctRows& examples, double C, double below,
                                             double above) {
  std::vector<solve::Costs> costs;
  for (const Label& label : examples.labels) {
    const double cost = require_valid_cost(C * label.weight);
    costs.push_back({cost * below, cost * above});
  }
  return costs;
}

std::unique_ptr<solve::ScoreLoss> squared_error_loss_of(const DistinctRows& examples, double C,
                                                        const std::vector<double>& targets, double epsilon) {
  std::vector<solve::CostOfError> rows;
  for (const Label& label : examples.labels) {
    const double target = targets.at(static_cast<std::size_t>(label.code));
    rows.push_back({require_valid_cost(C * label.weight), target, epsilon});
  }
  return solve::squared_error_loss(std::move(rows));
}

PoissonCosts poisson_costs(const DistinctRows& examples, double C, std::span<const double> targets) {
  PoissonCosts costs{std::vector<solve::Costs>(static_cast<std::size_t>(examples.rows())), 0.0};
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    solve::Costs& row = costs.rows[static_cast<std::size_t>(i)];
    const auto costs_of_label = [&](const Label& label) {
      const double cost = require_valid_cost(C * label.weight);
      return solve::Costs{cost * targets[static_cast<std::size_t>(label.code)], cost};
    };
    for (const Label& label : examples.labels_of(i)) {
      const solve::Costs of_label = costs_of_label(label);
      row.positive += of_label.positive;
      row.negative += of_label.negative;
    }
    if (!std::isfinite(row.positive / row.negative))
      throw std::invalid_argument("the targets are too large for their mean: divide them by a number");
    if (row.positive == 0.0 || examples.labels_of(i).size() == 1) continue;
    const double best_score = natural_logarithm(row.positive / row.negative);
    for (const Label& label : examples.labels_of(i))
      costs.constant += std::max(solve::PoissonTerm::value(costs_of_label(label), best_score), 0.0);
  }
  return costs;
}

std::vector<solve::Costs> costs_against_rest(const DistinctRows& examples, const CostFactors& factors,
                                             std::int64_t problem) {
  const std::int32_t positive = factors.class_weights.size() == 2 ? 1 : static_cast<std::int32_t>(problem);
  std::vector<solve::Costs> costs(static_cast<std::size_t>(examples.rows()));
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    solve::Costs& row = costs[static_cast<std::size_t>(i)];
    for (const Label& label : examples.labels_of(i)) {
      (label.code == positive ? row.positive : row.negative) += factors.of(label);
    }
  }
  return costs;
}

std::unique_ptr<solve::ScoreLoss> logistic_loss_of(const DistinctRows& examples, const CostFactors& factors) {
  if (factors.class_weights.size() == 2)
    return solve::logistic_loss(costs_against_rest(examples, factors, 0));
  std::vector<solve::ClassCost> costs;
  for (const Label& label : examples.labels) costs.push_back({label.code, factors.of(label)});
  return solve::softmax_loss(examples.label_offsets, std::move(costs), factors.class_weights.size());
}

}  // namespace unkernel::poly
