#include "unkernel/solve/likelihood_descent.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "unkernel/base/elementary.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/solve/neighbour_order.hpp"

namespace unkernel::solve {
namespace {

constexpr std::int64_t rows_at_once = 4096;  // in passes over all rows

struct LikelihoodSums {
  double loss = 0.0;
  double dual = 0.0;             // sum of g_i(u_i)
  double squared_weights = 0.0;  // w'w = sum_i u_i f_i
};

}  // namespace

LikelihoodDescent::LikelihoodDescent(const RowPasses& rows, Likelihood likelihood,
                                     std::span<const Costs> costs, std::span<const double> start,
                                     std::span<double> weights, const LikelihoodOptions& options,
                                     Monitor& monitor)
    : rows_(rows),
      costs_(costs),
      options_(options),
      state_{likelihood, {}, weights, monitor, Random(options.seed)} {
  state_.coordinates.resize(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    LikelihoodCoordinate& c = state_.coordinates[i];
    c.costs = costs[i];
    c.u = nearest_feasible(likelihood, c.costs, start[i]);
    c.curvature = rows_.squared_norm(static_cast<std::int64_t>(i));
    if (!std::isfinite(c.curvature)) {
      throw std::invalid_argument(
          "the kernel of a row with itself is not finite: scale the features, or lower gamma or coef0");
    }
  }
  state_.order.resize(costs.size());
}

std::vector<double> LikelihoodDescent::duals() const {
  std::vector<double> duals;
  for (const LikelihoodCoordinate& c : state_.coordinates) duals.push_back(c.u);
  return duals;
}

void LikelihoodDescent::sum_weights() {
  std::ranges::fill(state_.weights, 0.0);
  const std::vector<double> u = duals();
  for (std::int64_t begin = 0; begin < rows_.size(); begin += rows_at_once) {
    state_.monitor.throw_if_stopped();
    rows_.add(begin, std::min(rows_.size(), begin + rows_at_once), u.data(), state_.weights.data());
  }
}

// Certifies the gap.
void LikelihoodDescent::certify(Outcome& outcome) {
  compute_objectives(outcome);
  if (!std::isfinite(outcome.objective) && start_again()) compute_objectives(outcome);
  if (!std::isfinite(outcome.objective)) {
    throw std::invalid_argument("the objective is not finite: lower C or the sample weights");
  }
  outcome.converged = outcome.objective - outcome.dual_objective <= options_.tolerance * outcome.objective;
  outcome.history.note({outcome.epochs, outcome.objective, outcome.dual_objective});
}

// Sets all variables to 0. Returns whether some variable was not 0.
bool LikelihoodDescent::start_again() {
  bool has_moved = false;
  for (LikelihoodCoordinate& c : state_.coordinates) {
    has_moved = has_moved || c.u != 0.0;
    c.u = 0.0;
  }
  return has_moved;
}

// Sums over all rows, in blocks of fixed size, so that the result does not depend on the number of threads.
void LikelihoodDescent::compute_objectives(Outcome& outcome) {
  sum_weights();
  std::vector<double> scores(state_.coordinates.size());
  std::vector<LikelihoodSums> parts(
      static_cast<std::size_t>((rows_.size() + rows_at_once - 1) / rows_at_once));
  parallel_ranges(options_.threads, rows_.size(), rows_at_once, [&](std::int64_t begin, std::int64_t end) {
    state_.monitor.throw_if_stopped();
    LikelihoodSums& sums = parts[static_cast<std::size_t>(begin / rows_at_once)];
    rows_.dots(begin, end, state_.weights.data(), scores.data());
    for (std::int64_t i = begin; i < end; ++i) {
      const LikelihoodCoordinate& c = state_.coordinates[static_cast<std::size_t>(i)];
      const double f = scores[static_cast<std::size_t>(i)];
      sums.loss += loss_of(state_.likelihood, c.costs, f);
      sums.dual += dual_of(state_.likelihood, c.costs, c.u);
      sums.squared_weights += c.u * f;
    }
  });
  LikelihoodSums total;
  for (const LikelihoodSums& part : parts) {
    total.loss += part.loss;
    total.dual += part.dual;
    total.squared_weights += part.squared_weights;
  }
  outcome.objective = options_.constant + 0.5 * total.squared_weights + total.loss;
  outcome.dual_objective = options_.constant + std::max(total.dual - 0.5 * total.squared_weights, 0.0);
  state_.squared_weights = total.squared_weights;
}

double LikelihoodDescent::dual_objective() const {
  double value = 0.0;
  for (const LikelihoodCoordinate& c : state_.coordinates) value += dual_of(state_.likelihood, c.costs, c.u);
  return options_.constant + value - 0.5 * state_.squared_weights;
}

void LikelihoodDescent::sweep() {
  std::iota(state_.order.begin(), state_.order.end(), 0);
  shuffle_neighbours(state_.random, state_.order, buffer_);
  rows_.sweep(state_);
}

void LikelihoodDescent::scale_costs(double scale) {
  for (std::size_t i = 0; i < costs_.size(); ++i) {
    state_.coordinates[i].costs = {scale * costs_[i].positive, scale * costs_[i].negative};
  }
}

// Makes epochs with growing costs. Does nothing for a warm start.
void LikelihoodDescent::grow_costs(Outcome& outcome, Progress& progress) {
  constexpr double largest_product = 64.0;  // largest mean of a row's costs times its kernel, at the start
  constexpr double growth = 4.0;            // factor of the costs in each epoch
  double products = 0.0;
  for (const LikelihoodCoordinate& c : state_.coordinates) {
    if (c.u != 0.0) return;
    products += (c.costs.positive + c.costs.negative) * c.curvature;
  }
  double scale = largest_product * static_cast<double>(state_.coordinates.size()) / products;
  if (!(scale > 0.0)) return;
  for (; scale < 1.0 && outcome.epochs < options_.max_epochs; scale *= growth) {
    scale_costs(scale);
    sweep();
    ++outcome.epochs;
    report(progress, outcome);
  }
  scale_costs(1.0);
}

// Returns whether the gap falls so slowly that Newton's method, which takes the time of about fifty epochs,
// is likely to be faster.
bool LikelihoodDescent::falls_too_slowly(double goal) const {
  constexpr std::size_t compared = 10;  // epochs
  constexpr double most_epochs = 50.0;
  if (gaps_.size() <= 2 * compared) return false;
  const double gap = gaps_.back();
  const double before = gaps_[gaps_.size() - 1 - compared];
  if (!(gap < before)) return true;
  return static_cast<double>(compared) * natural_logarithm(gap / goal) >
         most_epochs * natural_logarithm(before / gap);
}

void LikelihoodDescent::report(Progress& progress, const Outcome& outcome) {
  progress.epoch = outcome.epochs;
  progress.active = rows_.size();
  progress.relative_gap = outcome.relative_gap();
  progress.objective = outcome.objective;
  progress.bound = outcome.dual_objective;
  state_.monitor.report(progress);
}

Outcome LikelihoodDescent::run(Progress progress) {
  Outcome outcome;
  certify(outcome);
  if (outcome.converged) return outcome;
  grow_costs(outcome, progress);
  while (outcome.epochs < options_.max_epochs) {
    sweep();
    ++outcome.epochs;
    gaps_.push_back(state_.estimated_gap);
    outcome.dual_objective = dual_objective();
    outcome.objective = outcome.dual_objective + state_.estimated_gap;
    report(progress, outcome);
    outcome.history.note({outcome.epochs, outcome.objective, outcome.dual_objective});
    const double goal = options_.tolerance * outcome.objective;
    if (state_.estimated_gap <= goal) {
      certify(outcome);
      if (outcome.converged) return outcome;
    }
    if (falls_too_slowly(goal)) break;
  }
  certify(outcome);
  return outcome;
}

}  // namespace unkernel::solve
