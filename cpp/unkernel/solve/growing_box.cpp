// Dual coordinate descent: solves roughly for small costs first, then lets the bounds of u grow to full size.
#include <algorithm>
#include <vector>

#include "unkernel/solve/dual_coordinate_descent.hpp"

namespace unkernel::solve {

// Grows the box of u step by step. Does nothing if the box is only a few steps wide, because the two epochs
// per doubling would cost more than they save.
void DualCoordinateDescent::grow_box(Progress& progress) {
  if (loss_.squared || state_.coordinates.empty()) return;
  std::vector<Costs> costs;
  double cost = 0.0, loss = 0.0;  // sum of the costs; loss of w = 0
  double widths = 0.0;            // sum over rows of box width times curvature
  for (std::int64_t i = 0; i < rows_.size(); ++i) {
    const Coordinate& c = coordinate(i);
    costs.push_back(c.costs);
    cost += c.costs.positive + c.costs.negative;
    loss += loss_of(loss_, c.costs, -target(i));
    widths += (c.costs.positive + c.costs.negative) * c.curvature;
  }
  // Start with the box, relative to the full box, in which a row reaches its bound with its first step: the
  // step that moves its score to the target.
  double scale = static_cast<double>(state_.coordinates.size()) * (loss / cost) / widths;
  constexpr double largest_first_scale = 1.0 / 8.0;
  if (!(scale > 0.0 && scale < largest_first_scale)) return;
  scale_costs(costs, scale);
  while (scale < 1.0 && state_.epoch + 2 < options_.max_epochs) {
    state_.dual_objective = dual_value() - 0.5 * squared_weights_;
    sweep();
    sweep();
    report_progress(progress);
    scale_solution(std::min(2.0, 1.0 / scale));
    scale = scale < 0.5 ? 2.0 * scale : 1.0;
    scale_costs(costs, scale);
    wake_all_rows();
  }
  scale_costs(costs, 1.0);
  state_.dual_objective = dual_value() - 0.5 * squared_weights_;
}

void DualCoordinateDescent::scale_costs(std::span<const Costs> costs, double scale) {
  for (std::size_t i = 0; i < costs.size(); ++i) {
    state_.coordinates[i].costs = {costs[i].positive * scale, costs[i].negative * scale};
  }
}

// Scales u by the s between 1 and `limit` that maximises the dual, s sum(g) - s^2/2 w'w, for costs scaled
// alike.
void DualCoordinateDescent::scale_solution(double limit) {
  const double value = dual_value();
  squared_weights_ = 2.0 * (value - state_.dual_objective);
  if (!(squared_weights_ > 0.0)) return;
  const double factor = std::clamp(value / squared_weights_, 1.0, limit);
  for (Coordinate& c : state_.coordinates) c.u *= factor;
  for (double& w : state_.weights) w *= factor;
  squared_weights_ *= factor * factor;
}

}  // namespace unkernel::solve
