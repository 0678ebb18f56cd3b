#include "unkernel/solve/heavy_columns.hpp"

#include <algorithm>

namespace unkernel::solve {

HeavyColumns::HeavyColumns(std::span<const std::size_t> support, std::span<const std::int32_t> columns,
                           std::span<const double> diagonal, std::size_t max_heavy)
    : places_(columns.size(), -1), matrix_(std::min(max_heavy, support.size())), values_(matrix_.size()) {
  std::vector<std::size_t> order(support.begin(), support.end());
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(matrix_.size()), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     return diagonal[a] != diagonal[b] ? diagonal[a] > diagonal[b] : a < b;
                   });
  order.resize(matrix_.size());
  std::sort(order.begin(), order.end());
  for (const std::size_t j : order) {
    places_[j] = static_cast<std::int32_t>(heavy_.size());
    heavy_.push_back(columns[j]);
  }
}

void HeavyColumns::factor(const WeightedGram& gram, double ridge) {
  for (std::size_t a = 0; a < heavy_.size(); ++a) {
    const double* from = gram.row(gram.member(heavy_[a]));
    for (std::size_t b = 0; b <= a; ++b) matrix_.row(a)[b] = from[gram.member(heavy_[b])];
    matrix_.row(a)[a] += ridge;
  }
  matrix_.factor(ridge);
}

void HeavyColumns::divide(std::span<const std::size_t> support, std::span<const double> residual,
                          std::span<const double> diagonal, std::span<double> quotient) {
  std::fill(values_.begin(), values_.end(), 0.0);
  for (std::size_t k = 0; k < support.size(); ++k) {
    const std::int32_t place = places_[support[k]];
    if (place >= 0) values_[static_cast<std::size_t>(place)] = residual[k];
  }
  matrix_.solve(values_);
  for (std::size_t k = 0; k < support.size(); ++k) {
    const std::int32_t place = places_[support[k]];
    quotient[k] = place >= 0 ? values_[static_cast<std::size_t>(place)] : residual[k] / diagonal[k];
  }
}

}  // namespace unkernel::solve
