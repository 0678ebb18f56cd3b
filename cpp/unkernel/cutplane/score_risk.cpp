#include "unkernel/cutplane/score_risk.hpp"

#include <stdexcept>

namespace unkernel::cutplane {

ScoreRisk::ScoreRisk(std::size_t rows, Oracle& oracle, Threads threads)
    : oracle_(oracle),
      threads_(threads),
      current_scores_(rows, 0.0),
      proposed_scores_(rows, 0.0),
      coefficients_(rows, 0.0) {
  if (oracle.rows() != static_cast<std::int64_t>(rows))
    throw std::invalid_argument("there must be one label per row");
  face();
}

void ScoreRisk::along(std::span<const double> steps, std::span<solve::LinePoint> points) {
  for (std::size_t k = 0; k < steps.size(); ++k) {
    threads_.monitor->throw_if_stopped();
    points[k] = oracle_.along(steps[k], threads_.count);
  }
}

void ScoreRisk::move(double step) {
  for (std::size_t i = 0; i < current_scores_.size(); ++i)
    current_scores_[i] += step * (proposed_scores_[i] - current_scores_[i]);
  face();
}

bool RowSum::is_update_faster(std::span<const double> coefficients) const {
  constexpr int most_updates = 32;  // each update adds rounding errors
  if (sum_.empty() || updates_ == most_updates) return false;
  std::size_t changed = 0;
  std::size_t used = 0;
  for (std::size_t i = 0; i < coefficients.size(); ++i) {
    changed += coefficients[i] != last_coefficients_[i];
    used += coefficients[i] != 0.0;
  }
  return changed < used;
}

}  // namespace unkernel::cutplane
