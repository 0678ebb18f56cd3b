#include "unkernel/cutplane/row_risk.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "unkernel/cutplane/local_descent.hpp"

namespace unkernel::cutplane {

RowRisk::RowRisk(const data::RowStore& store, double intercept, Oracle& oracle, Threads threads)
    : store_(store),
      intercept_(intercept),
      passes_(store, intercept, threads),
      oracle_(oracle),
      threads_(threads) {
  if (oracle.rows() != store.rows()) throw std::invalid_argument("there must be one label per row");
  const auto rows = static_cast<std::size_t>(store.rows());
  here_.resize(rows);
  there_.resize(rows);
  coefficients_.resize(rows);
  before_.resize(rows);
  oracle_.face(here_, there_);
}

void RowRisk::aim(std::span<const double> weights) {
  passes_.scores(weights, there_);
  oracle_.face(here_, there_);
}

void RowRisk::along(std::span<const double> steps, std::span<solve::LinePoint> points) {
  for (std::size_t k = 0; k < steps.size(); ++k) {
    threads_.monitor->throw_if_stopped();
    points[k] = oracle_.along(steps[k], threads_.count);
  }
}

double RowRisk::cut(double step, std::span<double> gradient) {
  const double offset = oracle_.cut(step, coefficients_, threads_.count);
  if (update_pays()) {
    for (std::size_t i = 0; i < before_.size(); ++i) before_[i] = coefficients_[i] - before_[i];
    passes_.add_transposed(before_, gradient_);
    ++updates_;
  } else {
    gradient_.assign(dimension(), 0.0);
    passes_.add_transposed(coefficients_, gradient_);
    updates_ = 0;
  }
  before_ = coefficients_;
  std::ranges::copy(gradient_, gradient.begin());
  return offset;
}

bool RowRisk::update_pays() {
  constexpr int most_updates = 32;  // each adds rounding errors
  if (gradient_.empty() || updates_ == most_updates) return false;
  std::size_t changed = 0;
  std::size_t used = 0;
  for (std::size_t i = 0; i < coefficients_.size(); ++i) {
    changed += coefficients_[i] != before_[i];
    used += coefficients_[i] != 0.0;
  }
  return changed < used;
}

int RowRisk::first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset) {
  constexpr std::int64_t fewest_rows =
      5000;  // fewer are solved at once, and do not depend on the order of rows
  const std::optional<RowLosses> losses = oracle_.row_losses();
  if (!losses || store_.rows() < fewest_rows) return 0;
  offset = descend_locally(store_, intercept_, *losses, C, threads_, weights, gradient);
  return local_passes;
}

void RowRisk::move(double step) {
  for (std::size_t i = 0; i < here_.size(); ++i) here_[i] += step * (there_[i] - here_[i]);
  oracle_.face(here_, there_);
}

}  // namespace unkernel::cutplane
