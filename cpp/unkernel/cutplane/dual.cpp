#include "unkernel/cutplane/dual.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "unkernel/cutplane/linear_rows.hpp"
#include "unkernel/solve/dual_coordinate_descent.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace unkernel::cutplane {
namespace {

solve::Costs costs_of(double signed_cost) {
  return {std::max(signed_cost, 0.0), std::max(-signed_cost, 0.0)};
}

}  // namespace

solve::Outcome train_dual(const data::PackedRows& rows, double intercept, solve::Loss loss,
                          std::span<const double> signed_costs, const solve::DescentOptions& options,
                          std::vector<double>& duals, std::span<double> weights, const Progress& progress,
                          Monitor& monitor) {
  const LinearRows view(rows, intercept);
  const std::size_t count = signed_costs.size();
  if (count != static_cast<std::size_t>(rows.rows()) || (!duals.empty() && duals.size() != count) ||
      weights.size() != view.dimension()) {
    throw std::invalid_argument("there must be one label and one weight per row");
  }
  std::ranges::fill(weights, 0.0);
  solve::Coordinates coordinates(count);
  for (std::size_t i = 0; i < count; ++i) {
    const solve::Costs& costs = coordinates[i].costs = costs_of(signed_costs[i]);
    if (duals.empty() || duals[i] == 0.0) continue;
    coordinates[i].u = std::clamp(duals[i], solve::low_of(loss, costs), solve::high_of(loss, costs));
    view.axpy(static_cast<std::int64_t>(i), coordinates[i].u, weights.data());
  }
  const solve::PassesOver<LinearRows> passes(view);
  solve::DualCoordinateDescent solver(passes, loss, std::move(coordinates), weights, options, monitor);
  const solve::Outcome outcome = solver.run(progress);
  duals.resize(count);
  for (std::size_t i = 0; i < count; ++i) duals[i] = solver.coordinates()[i].u;
  return outcome;
}

}  // namespace unkernel::cutplane
