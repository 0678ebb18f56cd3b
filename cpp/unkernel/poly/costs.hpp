// Computes the costs of training rows: C times the weights, by class.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/poly/distinct_rows.hpp"
#include "unkernel/solve/score_loss.hpp"

namespace unkernel::poly {

// Returns the cost; throws std::invalid_argument unless it is positive and at most 1e20.
double require_valid_cost(double cost);

struct CostFactors {
  double C;
  const std::vector<double>& class_weights;

  double of(const Label& label) const;
};

// Returns the costs of one class against the rest. If there are two classes, class 1 is positive.
std::vector<solve::Costs> costs_against_rest(const DistinctRows& examples, const CostFactors& factors,
                                             std::int64_t problem);

// Returns the costs of regression: C times the row's weight, times `below` or `above` for scores on that side
// of the target.
std::vector<solve::Costs> costs_of_residuals(const DistinctRows& examples, double C, double below,
                                             double above);

// Returns the squared error of regression; errors up to `epsilon` cost nothing.
std::unique_ptr<solve::ScoreLoss> squared_error_loss_of(const DistinctRows& examples, double C,
                                                        const std::vector<double>& targets, double epsilon);

// The costs of Poisson regression (solve/poisson_term.hpp) by row. A row has any number of targets.
struct PoissonCosts {
  std::vector<solve::Costs> rows;
  double constant;  // the loss of the best score of each row
};
PoissonCosts poisson_costs(const DistinctRows& examples, double C, std::span<const double> targets);

// Returns the logistic loss for two classes, and the softmax loss for more.
std::unique_ptr<solve::ScoreLoss> logistic_loss_of(const DistinctRows& examples, const CostFactors& factors);

}  // namespace unkernel::poly
