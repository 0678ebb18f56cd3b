#include "unkernel/cutplane/mapped_risk.hpp"

#include <algorithm>
#include <stdexcept>

#include "unkernel/solve/row_sums.hpp"

namespace unkernel::cutplane {
MappedRisk::MappedRisk(const MappedExamples& examples, Oracle& oracle, Threads threads)
    : ScoreRisk(examples.place.size(), oracle, threads),
      examples_(examples),
      count_(static_cast<std::size_t>(examples.rows.size())) {
  const auto is_valid_place = [&](std::int32_t place) { return place >= -1 && place < examples.rows.size(); };
  if (!std::ranges::all_of(examples.place, is_valid_place))
    throw std::invalid_argument("a row's place is not among the mapped rows");
}

void MappedRisk::aim(std::span<const double> weights) {
  const auto scores = weights.subspan(count_);
  for (std::size_t i = 0; i < proposed_scores_.size(); ++i) {
    const std::int32_t place = examples_.place[i];
    proposed_scores_[i] = place >= 0 ? scores[static_cast<std::size_t>(place)] : 0.0;
  }
  face();
}

double MappedRisk::cut(double step, std::span<double> gradient) {
  const double offset = oracle_.cut(step, coefficients_, threads_.count);
  const auto sums = gradient.first(count_);
  sum_by_mapped_row(sums);
  const auto add = [&](std::span<const double> c, std::span<double> sum) {
    solve::sum_rows(examples_.rows, c, sum, threads_);
  };
  solve::score_rows(examples_.rows, sum_.of(sums, examples_.dimension, add), gradient.subspan(count_),
                    threads_);
  return offset;
}

void MappedRisk::sum_by_mapped_row(std::span<double> sums) const {
  std::ranges::fill(sums, 0.0);
  for (std::size_t i = 0; i < coefficients_.size(); ++i) {
    const std::int32_t place = examples_.place[i];
    if (place >= 0) sums[static_cast<std::size_t>(place)] += coefficients_[i];
  }
}

}  // namespace unkernel::cutplane
