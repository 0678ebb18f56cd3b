#include "unkernel/cutplane/row_risk.hpp"

#include <algorithm>
#include <optional>

#include "unkernel/cutplane/local_descent.hpp"

namespace unkernel::cutplane {

RowRisk::RowRisk(const data::RowStore& store, double intercept, Oracle& oracle, Threads threads)
    : ScoreRisk(static_cast<std::size_t>(store.rows()), oracle, threads),
      store_(store),
      intercept_(intercept),
      passes_(store, intercept, threads) {}

void RowRisk::aim(std::span<const double> weights) {
  passes_.scores(weights, proposed_scores_);
  face();
}

double RowRisk::cut(double step, std::span<double> gradient) {
  const double offset = oracle_.cut(step, coefficients_, threads_.count);
  const auto add = [&](std::span<const double> c, std::span<double> sum) { passes_.add_transposed(c, sum); };
  std::ranges::copy(sum_.of(coefficients_, dimension(), add), gradient.begin());
  return offset;
}

int RowRisk::first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset) {
  // Fewer rows need no guess, and the guess depends on the order of rows.
  constexpr std::int64_t fewest_rows = 5000;
  const std::optional<RowLosses> losses = oracle_.row_losses();
  if (!losses || store_.rows() < fewest_rows) return 0;
  offset = descend_locally(store_, intercept_, *losses, C, threads_, weights, gradient);
  return local_passes;
}

}  // namespace unkernel::cutplane
