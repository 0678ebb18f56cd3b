#include "unkernel/solve/smo.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "unkernel/solve/smo_passes.hpp"
#include "unkernel/solve/square_rows.hpp"

// The code merges the label into the variable: u_i = y_i a_i lies between 0 and y_i C_i, and its pull
//   e_i = -y_i g_i = y_i - sum_j K_ij u_j
// is the slope of the dual along u_i. A pair moves by (+t, -t), so the loops need no labels.
namespace unkernel::solve {
namespace {

constexpr std::int64_t shrink_period = 1000;
constexpr double max_remaining_share = 0.75;

// Computes pull -= sum_j changes_j K_j for all variables, where K_j is row j of the kernel matrix.
void subtract_rows(const SmoProblem& problem, std::span<const double> changes, std::span<double> pull) {
  const KernelSquare& kernel = problem.kernel;
  const std::size_t size = pull.size();
  std::vector<std::size_t> places(size);
  for (std::size_t i = 0; i < size; ++i) places[i] = place_of(kernel, i);
  const bool contiguous = are_contiguous(places);
  for (std::size_t j = 0; j < size; ++j) {
    const double change = changes[j];
    if (change == 0.0) continue;
    const float* row = kernel.values + places[j] * kernel.stride;
    const double pull_of_j = pull[j];
    if (contiguous) {
      subtract_row({row + places[0], change}, pull.data(), size);
    } else {
      for (std::size_t k = 0; k < size; ++k) pull[k] -= change * static_cast<double>(row[places[k]]);
    }
    pull[j] = pull_of_j - change * problem.diagonal[j];
  }
}

class Smo {
 public:
  Smo(const SmoProblem& problem, const SmoOptions& options, std::span<const double> alpha,
      std::span<const double> gradient, const Monitor& monitor)
      : problem_(problem), options_(options), monitor_(monitor), rows_(problem.kernel, {}) {
    for (std::size_t i = 0; i < alpha.size(); ++i) {
      all_u_.push_back(label(i) * alpha[i]);
      saved_pull_.push_back(-label(i) * gradient[i]);
    }
    saved_u_ = all_u_;
    activate_all();
  }

  PairOutcome run() {
    shrink(infinity, -infinity);  // removes variables without cost
    choose();
    std::int64_t until_shrink = period();
    while (true) {
      if (choice_.violation <= options_.tolerance || choice_.place == active()) {
        if (all_are_active()) break;
        activate_all();
        choose();
        until_shrink = 1;
        continue;
      }
      if (steps_ >= options_.max_steps) break;
      if ((steps_ & 255) == 0) monitor_.throw_if_stopped();
      if (--until_shrink <= 0) {
        until_shrink = period();
        if (shrink_by_choice()) {
          choose();
          continue;
        }
      }
      ++steps_;
      if (step()) continue;
      if (all_are_active()) break;  // rounding errors prevent further progress
      activate_all();
      choose();
    }
    return outcome();
  }

  void write_solution(std::span<double> alpha, std::span<double> gradient) const {
    for (std::size_t i = 0; i < alpha.size(); ++i) {
      alpha[i] = std::abs(all_u_[i]);
      gradient[i] = -label(i) * saved_pull_[i];
    }
  }

 private:
  struct Extent {
    double highest_pull = -infinity;  // m(a): the largest pull of the variables that can rise
    double lowest_pull = infinity;    // M(a): the smallest pull of the variables that can fall
  };

  std::size_t size() const { return all_u_.size(); }
  std::size_t active() const { return variable_.size(); }
  bool all_are_active() const { return active() == size(); }
  double label(std::size_t i) const { return static_cast<double>(problem_.labels[i]); }
  double low(std::size_t i) const { return problem_.labels[i] > 0 ? 0.0 : -problem_.costs[i]; }
  double high(std::size_t i) const { return problem_.labels[i] > 0 ? problem_.costs[i] : 0.0; }
  std::int64_t period() const {
    return std::min<std::int64_t>(static_cast<std::int64_t>(active()), shrink_period);
  }

  // --- Active variables -------------------------------------------------------------------------

  void activate_all() {
    update_saved_pulls();
    std::vector<std::size_t> all(size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    pull_ = saved_pull_;
    activate(std::move(all));
  }

  // Makes `variables` the active ones; `pull_` must already hold their pulls.
  void activate(std::vector<std::size_t> variables) {
    variable_ = std::move(variables);
    std::vector<std::size_t> places;
    diagonal_.clear();
    for (const std::size_t i : variable_) {
      places.push_back(place_of(problem_.kernel, i));
      diagonal_.push_back(static_cast<float>(problem_.diagonal[i]));
    }
    rows_ = SquareRows(problem_.kernel, std::move(places));
    rise_barrier_.resize(active());
    fall_barrier_.resize(active());
    for (std::size_t k = 0; k < active(); ++k) set_barriers(k);
  }

  void set_barriers(std::size_t k) {
    const std::size_t i = variable_[k];
    rise_barrier_[k] = all_u_[i] < high(i) ? 0.0 : -infinity;
    fall_barrier_[k] = all_u_[i] > low(i) ? 0.0 : infinity;
  }

  // Computes the pulls of all variables from the saved pulls and the moves made since then. If all variables
  // are active, pull_ is already up to date.
  void update_saved_pulls() {
    if (!variable_.empty() && all_are_active()) {
      saved_pull_ = pull_;
    } else {
      std::vector<double> changes(size());
      for (std::size_t i = 0; i < size(); ++i) changes[i] = all_u_[i] - saved_u_[i];
      subtract_rows(problem_, changes, saved_pull_);
    }
    saved_u_ = all_u_;
  }

  bool shrink_by_choice() {
    if (!options_.bias) return shrink(choice_.violation, -choice_.violation);
    return shrink(pull_[riser_], pull_[riser_] - choice_.violation);
  }

  // Removes the variables that cannot be part of any pair: variables at a bound with a pull beyond m(a) or
  // M(a), and variables that cannot move. Kernel rows can be read in place only while all variables are
  // active, so this function removes either many variables or none. Returns whether it removed any.
  bool shrink(double highest_pull, double lowest_pull) {
    if (all_are_active()) update_saved_pulls();
    const auto can_be_in_pair = [&](std::size_t k) {
      const bool rises = rise_barrier_[k] == 0.0, falls = fall_barrier_[k] == 0.0;
      return (rises && pull_[k] >= lowest_pull) || (falls && pull_[k] <= highest_pull);
    };
    std::vector<std::size_t> remaining;
    for (std::size_t k = 0; k < active(); ++k) {
      if (can_be_in_pair(k)) remaining.push_back(k);
    }
    if (static_cast<double>(remaining.size()) > max_remaining_share * static_cast<double>(active()))
      return false;
    for (std::size_t& k : remaining) {
      pull_[static_cast<std::size_t>(&k - remaining.data())] = pull_[k];
      k = variable_[k];
    }
    pull_.resize(remaining.size());
    activate(std::move(remaining));
    return true;
  }

  // --- Steps -----------------------------------------------------------------------------------

  const float* row(std::size_t k) { return rows_.row(k, k); }

  // Chooses the next variables to move, for the current pulls.
  void choose() {
    choice_ = {active(), 0.0};
    if (active() == 0) return;
    const KernelStep no_change{row(0), 0.0};
    options_.bias ? move(no_change, no_change) : move(no_change);
  }

  void move(KernelStep step) {
    choice_ =
        move_one(step, pull_.data(), rise_barrier_.data(), fall_barrier_.data(), diagonal_.data(), active());
  }

  void move(KernelStep rise, KernelStep fall) {
    riser_ = move_pair(rise, fall, pull_.data(), rise_barrier_.data(), active());
    choice_ = {active(), 0.0};
    if (riser_ == active()) return;
    const PairLeader leader{pull_[riser_], diagonal_[riser_], row(riser_)};
    choice_ = find_partner(leader, pull_.data(), fall_barrier_.data(), diagonal_.data(), active());
  }

  // Moves the chosen variables; returns whether any moved.
  bool step() { return options_.bias ? pair_step(riser_, choice_.place) : single_step(choice_.place); }

  bool single_step(std::size_t k) {
    const std::size_t i = variable_[k];
    const double target = all_u_[i] + pull_[k] / std::max(problem_.diagonal[i], least_curvature);
    const KernelStep move_of_k{row(k), set(k, std::clamp(target, low(i), high(i)))};
    correct_diagonal(k, move_of_k);
    move(move_of_k);
    return move_of_k.change != 0.0;
  }

  bool pair_step(std::size_t riser, std::size_t faller) {
    const std::size_t i = variable_[riser], j = variable_[faller];
    const float* row_i = row(riser);
    const float* row_j = rows_.row(faller, riser);
    const double curvature =
        problem_.diagonal[i] + problem_.diagonal[j] - 2.0 * static_cast<double>(row_i[faller]);
    const double unclipped_step = (pull_[riser] - pull_[faller]) / std::max(curvature, least_curvature);
    const double max_rise = high(i) - all_u_[i], max_fall = all_u_[j] - low(j);
    const double t = std::min({unclipped_step, max_rise, max_fall});
    const KernelStep rise{row_i, set(riser, t == max_rise ? high(i) : std::min(all_u_[i] + t, high(i)))};
    const KernelStep fall{row_j, set(faller, t == max_fall ? low(j) : std::max(all_u_[j] - t, low(j)))};
    correct_diagonal(riser, rise);
    correct_diagonal(faller, fall);
    move(rise, fall);
    return rise.change != 0.0 || fall.change != 0.0;
  }

  // Sets u_k and returns its change.
  double set(std::size_t k, double u) {
    double& current = all_u_[variable_[k]];
    const double change = u - current;
    current = u;
    set_barriers(k);
    return change;
  }

  // Replaces K_kk of the matrix, which has single precision, by the double-precision diagonal that curvatures
  // use. Pulls and curvatures must belong to the same quadratic function.
  void correct_diagonal(std::size_t k, KernelStep step) {
    pull_[k] += step.change * (static_cast<double>(step.row[k]) - problem_.diagonal[variable_[k]]);
  }

  // --- Outcome ---------------------------------------------------------------------------------

  PairOutcome outcome() {
    update_saved_pulls();
    PairOutcome result;
    for (std::size_t i = 0; i < size(); ++i)
      result.dual_objective += 0.5 * all_u_[i] * (label(i) + saved_pull_[i]);
    const Extent extent = find_extent();
    const bool pairs = extent.highest_pull > -infinity && extent.lowest_pull < infinity;
    if (options_.bias) {
      result.bias = bias(extent);
      result.violation = pairs ? std::max(extent.highest_pull - extent.lowest_pull, 0.0) : 0.0;
    } else {
      result.violation = std::max({extent.highest_pull, -extent.lowest_pull, 0.0});
    }
    result.steps = steps_;
    result.converged = choice_.violation <= options_.tolerance && std::isfinite(result.dual_objective);
    return result;
  }

  Extent find_extent() const {
    Extent extent;
    for (std::size_t i = 0; i < size(); ++i) {
      if (all_u_[i] < high(i)) extent.highest_pull = std::max(extent.highest_pull, saved_pull_[i]);
      if (all_u_[i] > low(i)) extent.lowest_pull = std::min(extent.lowest_pull, saved_pull_[i]);
    }
    return extent;
  }

  double bias(const Extent& extent) const {
    double sum = 0.0, free = 0.0;
    for (std::size_t i = 0; i < size(); ++i) {
      if (all_u_[i] <= low(i) || all_u_[i] >= high(i)) continue;
      sum += saved_pull_[i];
      free += 1.0;
    }
    if (free > 0.0) return sum / free;
    const bool can_rise = extent.highest_pull > -infinity, can_fall = extent.lowest_pull < infinity;
    if (can_rise && can_fall) return 0.5 * (extent.highest_pull + extent.lowest_pull);
    // There is a single class; the bias alone gives it the margin 1.
    if (can_rise) return extent.highest_pull;
    return can_fall ? extent.lowest_pull : 0.0;
  }

  const SmoProblem& problem_;
  const SmoOptions& options_;
  const Monitor& monitor_;
  std::vector<double> all_u_;                 // by variable
  std::vector<double> saved_u_, saved_pull_;  // by variable, at the last call of update_saved_pulls
  std::vector<std::size_t> variable_;         // the active variables, in order
  std::vector<double> pull_, rise_barrier_, fall_barrier_;  // by active variable
  std::vector<float> diagonal_;
  SquareRows rows_;
  std::size_t riser_ = 0;  // the variable that rises; unused without a bias
  PairChoice choice_{0};   // the variable that falls; without a bias, the one that moves
  std::int64_t steps_ = 0;
};

void check_problem(const SmoProblem& problem, std::size_t alphas, std::size_t gradients) {
  const std::size_t size = problem.labels.size();
  if (problem.diagonal.size() != size || problem.costs.size() != size || alphas != size ||
      gradients != size) {
    throw std::invalid_argument("diagonal, labels, costs, alpha and gradient must have the same length");
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (problem.labels[i] != 1 && problem.labels[i] != -1)
      throw std::invalid_argument("labels must be -1 or +1");
    if (!(problem.costs[i] >= 0.0 && problem.costs[i] < infinity))
      throw std::invalid_argument("costs must be finite and not negative");
  }
}

void check_start(const SmoProblem& problem, std::span<const double> alpha) {
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    if (!(alpha[i] >= 0.0 && alpha[i] <= problem.costs[i]))
      throw std::invalid_argument("the initial alpha must be between 0 and its cost");
  }
}

}  // namespace

PairOutcome minimise_pairs(const SmoProblem& problem, const SmoOptions& options, std::span<double> alpha,
                           std::span<double> gradient, const Monitor& monitor) {
  check_problem(problem, alpha.size(), gradient.size());
  check_start(problem, alpha);
  Smo solver(problem, options, alpha, gradient, monitor);
  const PairOutcome outcome = solver.run();
  solver.write_solution(alpha, gradient);
  return outcome;
}

}  // namespace unkernel::solve
