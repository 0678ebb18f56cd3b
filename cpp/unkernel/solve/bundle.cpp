#include "unkernel/solve/bundle.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "unkernel/base/gather.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/solve/simplex_qp.hpp"

namespace unkernel::solve {
namespace {

constexpr int max_idle_rounds = 25;
constexpr std::int64_t coordinates_per_task = 1 << 15;

}  // namespace

Bundle::Bundle(std::size_t dimension, std::size_t most_cuts, Vectors vectors)
    : dimension_(dimension),
      vectors_(vectors),
      capacity_(std::max<std::size_t>(most_cuts, 4)),
      gram_(capacity_ * capacity_, 0.0) {}

double Bundle::product(std::span<const double> a, std::span<const double> b) const {
  const bool has_scores = vectors_ == Vectors::coefficients_and_scores;
  const std::size_t size = has_scores ? a.size() / 2 : a.size();
  const double* const factors = b.data() + (has_scores ? size : 0);
  return sum_of_terms(size, [&](std::size_t k) { return a[k] * factors[k]; });
}

void Bundle::add(LargeVector<double> gradient, double offset, int threads) {
  if (gradient.size() != dimension_)
    throw std::invalid_argument("a cut must have one coefficient per weight");
  if (cuts_.size() == capacity_) drop_idle_cuts();
  if (cuts_.size() == capacity_) merge_lightest();
  cuts_.push_back({std::move(gradient), next_number_++});
  offsets_.push_back(offset);
  masses_.push_back(0.0);
  const std::size_t last = cuts_.size() - 1;
  const std::span<const double> newest = cuts_[last].gradient;
  constexpr std::size_t min_parallel_work = 1'000'000;  // multiplications
  parallel_for(dimension_ * last > min_parallel_work ? threads : 1, static_cast<std::int64_t>(last + 1),
               [&](std::int64_t k) {
                 const auto i = static_cast<std::size_t>(k);
                 gram(i, last) = product(cuts_[i].gradient, newest);
               });
  for (std::size_t i = 0; i < last; ++i) gram(last, i) = gram(i, last);
}

double Bundle::solve(double C, double accuracy) {
  scale_masses(C);
  const SimplexProblem problem{size(), gram_.data(), capacity_, offsets_.data(), C};
  const double value = maximise_on_simplex(problem, masses_, accuracy);
  for (std::size_t k = 0; k < size(); ++k) cuts_[k].idle = masses_[k] > 0.0 ? 0 : cuts_[k].idle + 1;
  return value;
}

// Scales the masses of the last solution to a feasible start for C, because that solution may be for a larger
// C.
void Bundle::scale_masses(double C) {
  const double sum = std::accumulate(masses_.begin(), masses_.end(), 0.0);
  if (sum <= C) return;
  for (double& mass : masses_) mass *= C / sum;
}

void Bundle::weights(std::span<double> result, int threads) const {
  parallel_ranges(threads, static_cast<std::int64_t>(dimension_), coordinates_per_task,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::fill(result.begin() + begin, result.begin() + end, 0.0);
                    for (std::size_t k = 0; k < size(); ++k) {
                      if (masses_[k] == 0.0) continue;
                      const double* const gradient = cuts_[k].gradient.data();
                      for (auto j = static_cast<std::size_t>(begin); j < static_cast<std::size_t>(end); ++j)
                        result[j] += masses_[k] * gradient[j];
                    }
                  });
}

void Bundle::set_masses(std::span<const double> masses) {
  const bool is_valid =
      masses.size() == size() && std::ranges::all_of(masses, [](double mass) { return mass >= 0.0; });
  if (!is_valid) throw std::invalid_argument("there must be one mass per cut, none of them negative");
  masses_.assign(masses.begin(), masses.end());
}

void Bundle::drop_idle_cuts() {
  for (std::size_t k = size(); k-- > 0;) {
    if (cuts_[k].idle > max_idle_rounds) remove(k);
  }
}

// Merges the half of the cuts that has the smallest masses into their mass-weighted mean, whose mass is the
// sum of theirs. The masses stay feasible; the weights and the bound do not change.
void Bundle::merge_lightest() {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return masses_[k]; });
  order.resize(size() / 2);
  double sum = 0.0;
  for (const std::size_t k : order) sum += masses_[k];
  if (sum > 0.0) {
    LargeVector<double> mean(dimension_, 0.0);
    double offset = 0.0;
    for (const std::size_t k : order) {
      const double share = masses_[k] / sum;
      offset += share * offsets_[k];
      for (std::size_t j = 0; share > 0.0 && j < dimension_; ++j) mean[j] += share * cuts_[k].gradient[j];
    }
    std::ranges::sort(order, std::greater<>());
    for (const std::size_t k : order) remove(k);
    add(std::move(mean), offset, 1);
    masses_.back() = sum;
    return;
  }
  std::ranges::sort(order, std::greater<>());
  for (const std::size_t k : order) remove(k);
}

void Bundle::remove(std::size_t k) {
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t j = k; j + 1 < size(); ++j) gram(i, j) = gram(i, j + 1);
  }
  for (std::size_t i = k; i + 1 < size(); ++i) {
    for (std::size_t j = 0; j + 1 < size(); ++j) gram(i, j) = gram(i + 1, j);
  }
  const auto place = static_cast<std::ptrdiff_t>(k);
  cuts_.erase(cuts_.begin() + place);
  offsets_.erase(offsets_.begin() + place);
  masses_.erase(masses_.begin() + place);
}

}  // namespace unkernel::solve
