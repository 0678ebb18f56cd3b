#include "unkernel/solve/system_plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace unkernel::solve {

SystemPlan plan_system(const RowPasses& passes, std::span<const double> weights, double memory) {
  constexpr double max_rows_of_small_matrix = 512.0;
  constexpr double max_matrix_side = 2048.0;
  const auto rows = static_cast<double>(passes.size());
  SystemPlan plan;
  double size = rows;
  double fill_cost = rows * rows;
  plan.bytes = 2.0 * sizeof(double) * rows * rows;
  if (passes.has_map() && rows > max_rows_of_small_matrix) {
    const double columns =
        static_cast<double>(weights.size()) - static_cast<double>(std::ranges::count(weights, 0.0));
    plan.over_columns = columns < rows;
    if (plan.over_columns) {
      size = columns;
      const double by_blocks = 0.5 * rows * columns * columns / block_speed;
      fill_cost = std::min(by_blocks, 0.5 * rows * passes.mean_map_size() * passes.mean_map_size());
      plan.bytes = sizeof(double) * columns * (columns + 256.0) + 12.0 * rows * passes.mean_map_size() +
                   20.0 * static_cast<double>(weights.size());
    }
  }
  plan.cost = size * size * size / (3.0 * block_speed) + fill_cost;
  if (size > max_matrix_side || (memory > 0.0 && plan.bytes > memory))
    plan.cost = std::numeric_limits<double>::infinity();
  return plan;
}

std::unique_ptr<NormalSystem> make_system(const RowPasses& rows, const SystemPlan& plan, int threads) {
  if (plan.over_columns) return std::make_unique<ColumnSystem>(rows.mapped(), threads);
  std::vector<std::int32_t> all_rows(static_cast<std::size_t>(rows.size()));
  std::iota(all_rows.begin(), all_rows.end(), 0);
  return std::make_unique<RowSystem>(rows.gram(all_rows, threads), all_rows.size());
}

}  // namespace unkernel::solve
