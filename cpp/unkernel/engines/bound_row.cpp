#include "unkernel/engines/bound_row.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

namespace unkernel::engines {

BoundRow::BoundRow(const Engine& engine, Shared shared, std::int32_t width, Sharing sharing)
    : engine_(engine), worker_(engine.worker()), shared_(std::move(shared)), sharing_(sharing) {
  const std::vector<std::int32_t>& columns = shared_.columns;
  const bool is_ascending =
      std::adjacent_find(columns.begin(), columns.end(), std::greater_equal<>()) == columns.end();
  const bool is_in_range = columns.empty() || (columns.front() >= 0 && columns.back() < width);
  if (columns.size() != shared_.values.size() || !is_ascending || !is_in_range)
    throw std::invalid_argument(
        "the columns of the shared part must ascend and be below the number of features");
  if (sharing_ == Sharing::nothing) return;
  scores_of_shared_ = compute_scores({shared_.columns, shared_.values.data()});
  scores_of_empty_ = compute_scores({});
  if (sharing_ == Sharing::pairs) pair_rows_.assign(static_cast<std::size_t>(std::max(width, 0)), -1);
}

void BoundRow::score(const SparseRow<std::int32_t>& row, double* out) {
  if (sharing_ == Sharing::nothing) return score_merged(row, out);
  engine_.score(row, *worker_, out);
  const std::size_t scores = engine_.scores();
  for (std::size_t s = 0; s < scores; ++s) out[s] += scores_of_shared_[s] - scores_of_empty_[s];
  if (sharing_ == Sharing::linear) return;
  for (std::size_t k = 0; k < row.columns.size(); ++k) {
    const double value = row.values == nullptr ? 1.0 : row.values[k];
    const double* pairs = pairs_with(row.columns[k]);
    for (std::size_t s = 0; s < scores; ++s) out[s] += value * pairs[s];
  }
}

void BoundRow::score_merged(const SparseRow<std::int32_t>& row, double* out) {
  merged_.columns.clear();
  merged_.values.clear();
  std::size_t next = 0;
  const auto add_shared = [&] {
    merged_.columns.push_back(shared_.columns[next]);
    merged_.values.push_back(shared_.values[next++]);
  };
  for (std::size_t k = 0; k < row.columns.size(); ++k) {
    while (next < shared_.columns.size() && shared_.columns[next] < row.columns[k]) add_shared();
    merged_.columns.push_back(row.columns[k]);
    merged_.values.push_back(row.values == nullptr ? 1.0 : row.values[k]);
  }
  while (next < shared_.columns.size()) add_shared();
  engine_.score(SparseRow<std::int32_t>{merged_.columns, merged_.values.data()}, *worker_, out);
}

std::vector<double> BoundRow::compute_scores(const SparseRow<std::int32_t>& row) {
  std::vector<double> scores(engine_.scores());
  engine_.score(row, *worker_, scores.data());
  return scores;
}

const double* BoundRow::pairs_with(std::int32_t column) {
  std::int32_t& pair_row = pair_rows_[static_cast<std::size_t>(column)];
  const std::size_t scores = engine_.scores();
  if (pair_row < 0) {
    const double one = 1.0;
    const SparseRow<std::int32_t> single{{&column, 1}, &one};
    std::vector<double> with_shared(scores);
    score_merged(single, with_shared.data());
    const std::vector<double> without = compute_scores(single);
    pair_row = static_cast<std::int32_t>(pairs_.size() / scores);
    for (std::size_t s = 0; s < scores; ++s)
      pairs_.push_back(with_shared[s] - scores_of_shared_[s] - without[s] + scores_of_empty_[s]);
  }
  return pairs_.data() + static_cast<std::size_t>(pair_row) * scores;
}

}  // namespace unkernel::engines
