#include "unkernel/parsing/online/row_training.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace unkernel::parsing {
namespace {

void check_rows(const LabelledRows& rows, std::size_t classes) {
  bool consistent = rows.offsets.size() == rows.classes.size() + 1 && rows.offsets.front() == 0 &&
                    rows.offsets.back() == static_cast<std::int64_t>(rows.columns.size()) &&
                    std::ranges::is_sorted(rows.offsets);
  for (const std::int32_t gold : rows.classes)
    consistent = consistent && gold >= 0 && static_cast<std::size_t>(gold) < classes;
  for (const std::int32_t column : rows.columns)
    consistent = consistent && column >= 0 && column < AveragedWeights::most_columns;
  if (!consistent)
    throw std::invalid_argument("the offsets, columns or classes of the rows are out of range");
}

std::span<const std::int32_t> row_of(const LabelledRows& rows, std::size_t row) {
  const auto begin = static_cast<std::size_t>(rows.offsets[row]);
  return rows.columns.subspan(begin, static_cast<std::size_t>(rows.offsets[row + 1]) - begin);
}

}  // namespace

RowTrainer::RowTrainer(const RowOptions& options)
    : random_(options.seed),
      weights_(options.degree, options.classes, options.min_updates,
               std::numeric_limits<std::int32_t>::max()) {
  if (options.classes < 2) throw std::invalid_argument("a classifier needs at least two classes");
}

std::int64_t RowTrainer::run_epoch(const LabelledRows& rows, const Monitor& monitor) {
  check_rows(rows, weights_.classes());
  std::vector<std::size_t> order(rows.classes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random_.shuffle(std::span(order));
  std::int64_t mistakes = 0;
  for (const std::size_t row : order) {
    monitor.throw_if_stopped();
    const std::span<const float> scores = weights_.score(row_of(rows, row));
    weights_.next_example();
    const auto correct = static_cast<std::size_t>(rows.classes[row]);
    const std::size_t wrong = best_except(scores, correct);
    if (scores[wrong] < scores[correct]) continue;
    ++mistakes;
    weights_.update(correct, wrong);
  }
  return mistakes;
}

std::int64_t RowTrainer::count_wrong(const LabelledRows& rows, const Monitor& monitor) {
  check_rows(rows, weights_.classes());
  weights_.update_rounding_unit();
  std::int64_t mistakes = 0;
  for (std::size_t row = 0; row < rows.classes.size(); ++row) {
    monitor.throw_if_stopped();
    const std::span<const double> scores = weights_.averaged_score(row_of(rows, row));
    const auto correct = static_cast<std::size_t>(rows.classes[row]);
    mistakes += scores[best_except(scores, correct)] >= scores[correct];
  }
  return mistakes;
}

}  // namespace unkernel::parsing
