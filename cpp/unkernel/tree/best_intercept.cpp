#include "unkernel/tree/best_intercept.hpp"

#include <algorithm>
#include <vector>

namespace unkernel::tree {

double hinge_loss(std::span<const double> scores, std::span<const signed char> labels,
                  std::span<const double> costs, double intercept) {
  double loss = 0.0;
  for (std::size_t i = 0; i < scores.size(); ++i)
    loss += costs[i] * std::max(0.0, 1.0 - labels[i] * (scores[i] + intercept));
  return loss;
}

BestIntercept best_intercept(std::span<const double> scores, std::span<const signed char> labels,
                             std::span<const double> costs) {
  struct Corner {
    double intercept;
    double cost;
  };
  std::vector<Corner> corners;
  double slope = 0.0;  // for b = -infinity: every positive example has a loss
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (costs[i] <= 0.0) continue;
    corners.push_back({labels[i] - scores[i], costs[i]});
    if (labels[i] > 0) slope -= costs[i];
  }
  if (corners.empty()) return {};
  std::ranges::sort(corners, {}, &Corner::intercept);
  // At its corner, the loss of a positive example ends, or the loss of a negative example begins: in both
  // cases the slope increases by its cost.
  std::size_t k = 0;
  while (k + 1 < corners.size() && slope + corners[k].cost < 0.0) slope += corners[k++].cost;
  const double intercept = corners[k].intercept;
  return {intercept, hinge_loss(scores, labels, costs, intercept)};
}

}  // namespace unkernel::tree
