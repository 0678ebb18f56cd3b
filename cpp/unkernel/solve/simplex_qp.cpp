#include "unkernel/solve/simplex_qp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace unkernel::solve {
namespace {

constexpr std::size_t no_cut = std::numeric_limits<std::size_t>::max();
// The least pivot of a cut, as a fraction of the largest curvature. A smaller pivot means that the cut
// depends on others.
constexpr double least_pivot = 1e-11;

// Solves Gx = b for a subset of the cuts, with the Cholesky factor L of G = LL'.
class Cholesky {
 public:
  void factorise(const SimplexProblem& problem, std::span<const std::size_t> cuts) {
    size_ = cuts.size();
    lower_.resize(size_ * size_);
    double largest = 0.0;
    for (const std::size_t k : cuts) largest = std::max(largest, problem.gram[k * problem.stride + k]);
    const double min_pivot = largest > 0.0 ? least_pivot * largest : 1.0;
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = problem.gram[cuts[i] * problem.stride + cuts[j]];
        for (std::size_t k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
        at(i, j) = i == j ? std::sqrt(std::max(sum, min_pivot)) : sum / at(j, j);
      }
    }
  }

  void solve(std::span<double> x) {
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t k = 0; k < i; ++k) x[i] -= at(i, k) * x[k];
      x[i] /= at(i, i);
    }
    for (std::size_t i = size_; i-- > 0;) {
      for (std::size_t k = i + 1; k < size_; ++k) x[i] -= at(k, i) * x[k];
      x[i] /= at(i, i);
    }
  }

 private:
  double& at(std::size_t i, std::size_t j) { return lower_[i * size_ + j]; }

  std::size_t size_ = 0;
  std::vector<double> lower_;
};

// Holds cuts 0 .. K-1 and the slack K: a zero cut that takes the mass that no other cut uses.
class SimplexSolver {
 public:
  SimplexSolver(const SimplexProblem& problem, std::span<double> a)
      : problem_(problem), a_(a), gradient_(problem.size + 1, 0.0) {
    make_feasible();
    update_gradient();
  }

  void run(double accuracy) {
    const std::size_t most_rounds = 100 + 10 * problem_.size;
    for (std::size_t round = 0; round < most_rounds; ++round) {
      const std::size_t steepest = steepest_cut();
      const double gain_left = remaining_gain(steepest);
      // Rounding errors may prevent smaller gaps.
      const double target = std::max(accuracy, 0.1 * rounding_error());
      if (gain_left <= target) return;
      const double before = value();
      take_newton_steps(steepest);
      if (value() - before > 0.01 * gain_left) continue;
      if (!shift_between_pairs(target)) return;
    }
  }

  double value() const {
    double sum = 0.0;
    for (std::size_t k = 0; k < problem_.size; ++k) sum += 0.5 * a_[k] * (problem_.linear[k] + gradient_[k]);
    return sum;
  }

  // Returns the value minus a bound on its rounding error: for a huge C, large terms cancel.
  double certain_value() const { return value() - rounding_error(); }

 private:
  double rounding_error() const {
    constexpr double rounding = 1e-15;
    double terms = 0.0;
    for (std::size_t k = 0; k < problem_.size; ++k) {
      if (a_[k] == 0.0) continue;
      terms += a_[k] * std::abs(problem_.linear[k]);
      for (std::size_t j = 0; j < problem_.size; ++j) terms += 0.5 * a_[k] * std::abs(gram(k, j)) * a_[j];
    }
    return rounding * terms;
  }

  double gram(std::size_t i, std::size_t j) const {
    return i < problem_.size && j < problem_.size ? problem_.gram[i * problem_.stride + j] : 0.0;
  }
  double& mass(std::size_t k) { return k < problem_.size ? a_[k] : slack_; }

  // Corrects rounding errors and infeasible input: removes negative masses, and limits their sum to C.
  void make_feasible() {
    double sum = 0.0;
    for (double& mass : a_) {
      mass = std::max(mass, 0.0);
      sum += mass;
    }
    constexpr double rounding = 1e-12;
    const bool is_used_up = sum >= (1.0 - rounding) * problem_.mass;
    for (double& mass : a_) mass *= is_used_up ? problem_.mass / sum : 1.0;
    slack_ = is_used_up ? 0.0 : problem_.mass - sum;
  }

  void update_gradient() {
    for (std::size_t k = 0; k < problem_.size; ++k) {
      double sum = problem_.linear[k];
      for (std::size_t j = 0; j < problem_.size; ++j) {
        if (a_[j] > 0.0) sum -= gram(k, j) * a_[j];
      }
      gradient_[k] = sum;
    }
  }

  std::size_t steepest_cut() const {
    return static_cast<std::size_t>(std::ranges::max_element(gradient_) - gradient_.begin());
  }

  double remaining_gain(std::size_t steepest) const {
    double gain_left = problem_.mass * gradient_[steepest];
    for (std::size_t k = 0; k < problem_.size; ++k) gain_left -= a_[k] * gradient_[k];
    return gain_left;
  }

  // --- Newton steps ------------------------------------------------------------------------

  void take_newton_steps(std::size_t new_cut) {
    active_.clear();
    for (std::size_t k = 0; k < problem_.size; ++k) {
      if (a_[k] > 0.0 || k == new_cut) active_.push_back(k);
    }
    is_mass_used_up_ = slack_ <= 0.0;
    // Every step except the last removes a cut or uses up the slack.
    for (std::size_t step = 0; step < problem_.size + 2 && !active_.empty(); ++step) {
      const bool reached_optimum = newton_step();
      make_feasible();
      update_gradient();
      if (reached_optimum) return;
    }
  }

  // Moves the active masses towards the optimum that they would have if they could be negative. Stops where a
  // mass or the slack becomes zero. Returns whether it reached the optimum.
  bool newton_step() {
    find_direction();
    double step = 1.0, sum = 0.0;
    std::size_t emptied_cut = no_cut;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      sum += direction_[i];
      if (direction_[i] < 0.0 && a_[active_[i]] < -step * direction_[i]) {
        step = -a_[active_[i]] / direction_[i];
        emptied_cut = i;
      }
    }
    const bool uses_up_slack = !is_mass_used_up_ && slack_ < step * sum;
    if (uses_up_slack) step = slack_ / sum;
    for (std::size_t i = 0; i < active_.size(); ++i) a_[active_[i]] += step * direction_[i];
    if (uses_up_slack) {
      is_mass_used_up_ = true;
      return false;
    }
    if (emptied_cut == no_cut) return true;
    a_[active_[emptied_cut]] = 0.0;
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(emptied_cut));
    return false;
  }

  // Finds the direction d with Gd = gradient if there is slack. If all mass is assigned, Gd = gradient -
  // price and sum(d) = 0; a negative price means that less mass would be better.
  void find_direction() {
    factors_.factorise(problem_, active_);
    direction_.clear();
    for (const std::size_t k : active_) direction_.push_back(gradient_[k]);
    factors_.solve(direction_);
    if (!is_mass_used_up_) return;
    ones_.assign(active_.size(), 1.0);
    factors_.solve(ones_);
    double sum = 0.0, sum_of_ones = 0.0;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      sum += direction_[i];
      sum_of_ones += ones_[i];
    }
    const double price = sum / sum_of_ones;
    is_mass_used_up_ = price >= 0.0;
    for (std::size_t i = 0; is_mass_used_up_ && i < active_.size(); ++i) direction_[i] -= price * ones_[i];
  }

  // --- Pairs -------------------------------------------------------------------------------

  // Moves mass between pairs of cuts; returns whether the objective increased.
  bool shift_between_pairs(double accuracy) {
    const double before = value();
    const std::size_t most_steps = 50 * (problem_.size + 1);
    for (std::size_t step = 0; step < most_steps; ++step) {
      const std::size_t to = steepest_cut();
      if (remaining_gain(to) <= accuracy) break;
      const std::size_t from = best_partner(to);
      if (from == no_cut) break;
      shift(from, to);
    }
    make_feasible();
    update_gradient();
    return value() > before;
  }

  double curvature(std::size_t i, std::size_t j) const {
    return std::max(gram(i, i) + gram(j, j) - 2.0 * gram(i, j), 1e-12 * (gram(i, i) + gram(j, j)) + 1e-300);
  }

  std::size_t best_partner(std::size_t to) {
    std::size_t best = no_cut;
    double largest_gain = 0.0;
    for (std::size_t k = 0; k <= problem_.size; ++k) {
      const double rise = gradient_[to] - gradient_[k];
      if (rise <= 0.0 || mass(k) <= 0.0) continue;
      const double step = std::min(rise / curvature(to, k), mass(k));
      const double gain = step * (rise - 0.5 * step * curvature(to, k));
      if (gain > largest_gain) {
        largest_gain = gain;
        best = k;
      }
    }
    return best;
  }

  void shift(std::size_t from, std::size_t to) {
    const double step = std::min((gradient_[to] - gradient_[from]) / curvature(to, from), mass(from));
    mass(from) -= step;
    mass(to) += step;
    for (std::size_t k = 0; k < problem_.size; ++k) gradient_[k] += step * (gram(k, from) - gram(k, to));
  }

  const SimplexProblem& problem_;
  std::span<double> a_;
  double slack_ = 0.0;
  std::vector<double> gradient_;  // 0 for the slack
  std::vector<std::size_t> active_;
  bool is_mass_used_up_ = false;  // there is no slack, and slack would not help
  Cholesky factors_;
  std::vector<double> direction_;
  std::vector<double> ones_;
};

}  // namespace

double maximise_on_simplex(const SimplexProblem& problem, std::span<double> a, double accuracy) {
  if (problem.size == 0) return 0.0;
  SimplexSolver solver(problem, a);
  solver.run(accuracy);
  return solver.certain_value();
}

}  // namespace unkernel::solve
