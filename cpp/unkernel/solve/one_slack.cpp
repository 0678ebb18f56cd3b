#include "unkernel/solve/one_slack.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace unkernel::solve {
namespace {

// Where a new cut is taken on the line from the best point (0) to the proposal (1); called mu in OCAS.
constexpr double towards_proposal = 0.1;
constexpr double dual_accuracy = 0.05;  // accuracy of the dual, relative to the remaining gap
constexpr int most_bisections = 12;
constexpr double longest_step = 64.0;
// Largest ratio of a term of the dual to the objective at w = 0. For larger terms, cancellation leaves only
// rounding errors.
constexpr double largest_dual_term = 1e19;

// The penalty on the line from the best weights w to the proposal w + d: 1/2 |w + t d|^2 at step t.
struct Parabola {
  double constant;  // 1/2 w'w
  double linear;    // w'd
  double square;    // d'd

  double value(double t) const { return constant + t * (linear + 0.5 * t * square); }
  double slope(double t) const { return linear + t * square; }
};

struct LineMinimum {
  double step = 0.0;
  double value = std::numeric_limits<double>::infinity();
};

// Minimises a convex function on t >= 0 by its slopes. Shrinks the bracket by the secant rule, which is exact
// for parabolas, with bisection as a safeguard. If each evaluation involves communication, evaluates a grid
// of steps in the bracket instead.
class LineSearch {
 public:
  LineSearch(Risk& risk, const Parabola& parabola, double C) : risk_(risk), parabola_(parabola), C_(C) {}

  LineMinimum run() {
    evaluate(risk_.first_steps());
    const double first_slope = parabola_.slope(0.0) + C_ * points_.front().slope;
    while (!bracketed_ && low_.step < longest_step) evaluate({2.0 * low_.step});
    const double target_slope = risk_.line_accuracy() * std::abs(first_slope);
    const double first_width = high_.step - low_.step;
    for (int k = 0; k < most_bisections && bracketed_ && low_.slope < 0.0; ++k) {
      const double smallest_slope = std::min(-low_.slope, high_.slope);
      if (smallest_slope <= target_slope || high_.step - low_.step <= 1e-3 * first_width) break;
      evaluate(steps_in_bracket(k));
    }
    return best_minimum_;
  }

 private:
  struct Point {
    double step;
    double slope;
  };

  std::vector<double> steps_in_bracket(int round) const {
    const double width = high_.step - low_.step;
    std::vector<double> steps;
    if (const std::size_t count = risk_.steps_at_once(); count > 1) {
      for (std::size_t k = 1; k <= count; ++k)
        steps.push_back(low_.step + width * static_cast<double>(k) / static_cast<double>(count + 1));
      return steps;
    }
    const double secant = -low_.slope / (high_.slope - low_.slope);
    const double share = round % 3 == 2 ? 0.5 : std::clamp(secant, 0.02, 0.98);
    return {low_.step + share * width};
  }

  void evaluate(const std::vector<double>& steps) {
    points_.resize(steps.size());
    risk_.along(steps, points_);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const double step = steps[k];
      const double value = parabola_.value(step) + C_ * points_[k].value;
      const double slope = parabola_.slope(step) + C_ * points_[k].slope;
      if (value < best_minimum_.value) best_minimum_ = {step, value};
      if (slope < 0.0) {
        if (step >= low_.step) low_ = {step, slope};
      } else if (!bracketed_ || step < high_.step) {
        high_ = {step, slope};
        bracketed_ = true;
      }
    }
  }

  Risk& risk_;
  Parabola parabola_;
  double C_;
  Point low_{0.0, 0.0};   // the largest step at which the objective falls
  Point high_{0.0, 0.0};  // if bracketed_: the smallest step at which the objective does not fall
  bool bracketed_ = false;
  LineMinimum best_minimum_;
  std::vector<LinePoint> points_;
};

class OneSlack {
 public:
  OneSlack(Risk& risk, const OneSlackOptions& options, Bundle& bundle, std::span<double> weights,
           Monitor& monitor)
      : risk_(risk),
        options_(options),
        bundle_(bundle),
        best_weights_(weights),
        proposal_(weights.size(), 0.0),
        monitor_(monitor) {}

  OneSlackOutcome run(Progress progress, const RoundObserver& observe) {
    start();
    solve_dual();
    report(progress);
    while ((!outcome_.converged || has_not_moved()) && outcome_.rounds < options_.max_rounds) {
      monitor_.throw_if_stopped();
      bundle_.weights(proposal_, options_.threads);
      search_towards_proposal();
      ++outcome_.rounds;
      if (observe) observe(bundle_, best_weights_, outcome_);
      solve_dual();
      report(progress);
    }
    return outcome_;
  }

 private:
  void start() {
    const bool starts_at_zero = std::ranges::all_of(best_weights_, [](double w) { return w == 0.0; });
    if (!starts_at_zero) {
      risk_.aim(best_weights_);
      risk_.move(1.0);
    }
    const double step = 0.0;
    LinePoint point;
    risk_.along({&step, 1}, {&point, 1});
    outcome_.objective = 0.5 * bundle_.product(best_weights_, best_weights_) + options_.C * point.value;
    check_finite();
    if (starts_at_zero) objective_at_zero_ = outcome_.objective;
    if (!starts_at_zero || bundle_.size() > 0 || !follow_first_guess()) add_cut(0.0);
  }

  // Adds the cut at the risk's first guess, which gives a better lower bound than the cut at w = 0. Returns
  // whether the risk made a guess.
  bool follow_first_guess() {
    LargeVector<double> gradient(best_weights_.size());
    double offset = 0.0;
    const int passes = risk_.first_guess(options_.C, proposal_, gradient, offset);
    if (passes == 0) return false;
    bundle_.add(std::move(gradient), offset, options_.threads);
    search_towards_proposal();
    outcome_.rounds = passes + 1;
    return true;
  }

  // Returns whether w is still 0. For a tiny C, w = 0 is within the tolerance, but cannot rank rows, so the
  // solver makes one round.
  bool has_not_moved() const {
    return outcome_.rounds == 0 && outcome_.objective > 0.0 &&
           std::ranges::all_of(best_weights_, [](double w) { return w == 0.0; });
  }

  void add_cut(double step) {
    LargeVector<double> gradient(best_weights_.size());
    const double offset = risk_.cut(step, gradient);
    check_scale(gradient);
    bundle_.add(std::move(gradient), offset, options_.threads);
  }

  void check_finite() const {
    if (!std::isfinite(outcome_.objective)) {
      throw std::invalid_argument(
          "the objective is not finite: scale the features, or lower C or the sample weights");
    }
  }

  // Throws std::invalid_argument if double precision cannot bound the optimum, because the dual's terms
  // differ too much in size.
  void check_scale(std::span<const double> gradient) const {
    const double term = 0.5 * options_.C * options_.C * bundle_.product(gradient, gradient);
    if (term > largest_dual_term * objective_at_zero_) {
      throw std::invalid_argument(
          "the values times C are too large to train with double precision: scale the features, or lower C "
          "or the sample weights");
    }
  }

  // Computes the weights that the cuts propose, and the lower bound.
  void solve_dual() {
    const double gap = std::max(outcome_.objective - outcome_.dual_objective, 0.0);
    const double target_gap = options_.tolerance * outcome_.objective;
    const double accuracy = dual_accuracy * std::clamp(gap, 0.0, 10.0 * target_gap);
    outcome_.dual_objective = std::max(outcome_.dual_objective, bundle_.solve(options_.C, accuracy));
    outcome_.converged =
        outcome_.objective - outcome_.dual_objective <= options_.tolerance * outcome_.objective;
  }

  // Searches the line from the best weights to the proposal, adds a cut, and moves to the best point.
  void search_towards_proposal() {
    risk_.aim(proposal_);
    const LineMinimum best = LineSearch(risk_, parabola(), options_.C).run();
    add_cut(best.step + towards_proposal * (1.0 - best.step));
    if (best.value < outcome_.objective) {
      for (std::size_t k = 0; k < best_weights_.size(); ++k)
        best_weights_[k] += best.step * (proposal_[k] - best_weights_[k]);
      risk_.move(best.step);
      outcome_.objective = best.value;
    }
    check_finite();
  }

  Parabola parabola() const {
    std::vector<double> direction(proposal_);
    for (std::size_t k = 0; k < best_weights_.size(); ++k) direction[k] -= best_weights_[k];
    return {0.5 * bundle_.product(best_weights_, best_weights_), bundle_.product(best_weights_, direction),
            bundle_.product(direction, direction)};
  }

  void report(Progress& progress) {
    progress.epoch = outcome_.rounds;
    progress.active = static_cast<std::int64_t>(bundle_.size());
    progress.objective = outcome_.objective;
    progress.bound = outcome_.dual_objective;
    progress.relative_gap =
        outcome_.objective > 0.0 ? (outcome_.objective - outcome_.dual_objective) / outcome_.objective : 0.0;
    monitor_.report(progress);
    outcome_.history.note({outcome_.rounds, outcome_.objective, outcome_.dual_objective});
  }

  Risk& risk_;
  OneSlackOptions options_;
  Bundle& bundle_;
  std::span<double> best_weights_;
  std::vector<double> proposal_;
  Monitor& monitor_;
  OneSlackOutcome outcome_;
  double objective_at_zero_ = std::numeric_limits<double>::infinity();  // unknown after a warm start
};

}  // namespace

OneSlackOutcome minimise_one_slack(Risk& risk, const OneSlackOptions& options, Bundle& bundle,
                                   std::span<double> weights, Progress progress, Monitor& monitor,
                                   const RoundObserver& observe) {
  if (weights.size() != risk.dimension() || bundle.dimension() != risk.dimension()) {
    throw std::invalid_argument("the weights, the cuts and the risk differ in dimension");
  }
  return OneSlack(risk, options, bundle, weights, monitor).run(progress, observe);
}

}  // namespace unkernel::solve
