#include "unkernel/cutplane/dual.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "unkernel/cutplane/linear_rows.hpp"

namespace unkernel::cutplane {
namespace {

solve::Costs costs_of(double signed_cost) {
  return {std::max(signed_cost, 0.0), std::max(-signed_cost, 0.0)};
}

template <class LossKind>
solve::Outcome solve_with(const LinearRows& rows, std::span<const double> signed_costs,
                          const solve::Options& options, std::vector<double>& duals,
                          std::span<double> weights, const Progress& progress, Monitor& monitor) {
  solve::Coordinates coordinates(signed_costs.size());
  for (std::size_t i = 0; i < signed_costs.size(); ++i) {
    coordinates[i].costs = costs_of(signed_costs[i]);
    if (duals.empty() || duals[i] == 0.0) continue;
    coordinates[i].u =
        std::clamp(duals[i], LossKind::low(coordinates[i].costs), LossKind::high(coordinates[i].costs));
    rows.axpy(static_cast<std::int64_t>(i), coordinates[i].u, weights.data());
  }
  solve::DualCoordinateDescent<LinearRows, LossKind> solver(rows, std::move(coordinates), weights, options,
                                                            monitor);
  const solve::Outcome outcome = solver.run(progress);
  duals.resize(signed_costs.size());
  for (std::size_t i = 0; i < duals.size(); ++i) duals[i] = solver.coordinates()[i].u;
  return outcome;
}

}  // namespace

solve::Outcome train_dual(const PackedRows& rows, double intercept, solve::Loss loss,
                          std::span<const double> signed_costs, const solve::Options& options,
                          std::vector<double>& duals, std::span<double> weights, const Progress& progress,
                          Monitor& monitor) {
  const LinearRows view(rows, intercept);
  const std::size_t count = signed_costs.size();
  if (count != static_cast<std::size_t>(rows.rows()) || (!duals.empty() && duals.size() != count) ||
      weights.size() != view.dimension()) {
    throw std::invalid_argument("labels, rows and weights differ in number");
  }
  std::ranges::fill(weights, 0.0);
  return loss == solve::Loss::hinge
             ? solve_with<solve::Hinge>(view, signed_costs, options, duals, weights, progress, monitor)
             : solve_with<solve::SquaredHinge>(view, signed_costs, options, duals, weights, progress,
                                               monitor);
}

}  // namespace unkernel::cutplane
