#include "unkernel/solve/simplex_qp.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace unkernel::solve {
namespace {

constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

// Cuts 0 .. K-1, and the slack K, whose gradient, row and column of G are zero.
class Smo {
 public:
  Smo(const SimplexProblem& problem, std::span<double> a) : problem_(problem), a_(a), gradient_(problem.size + 1, 0.0) {
    slack_ = problem.mass;
    for (const double mass : a_) slack_ -= mass;
    if (slack_ < 0.0) take_back(-slack_);
    for (std::size_t k = 0; k < problem_.size; ++k) {
      double sum = problem_.linear[k];
      for (std::size_t j = 0; j < problem_.size; ++j) sum -= gram(k, j) * a_[j];
      gradient_[k] = sum;
    }
  }

  void run(double accuracy, std::int64_t most_steps) {
    for (std::int64_t step = 0; step < most_steps; ++step) {
      const std::size_t to = steepest();
      if (what_is_left(to) <= accuracy) return;
      const std::size_t from = best_partner(to);
      if (from == nobody) return;
      shift(from, to);
    }
  }

  double value() const {
    double sum = 0.0;
    for (std::size_t k = 0; k < problem_.size; ++k) sum += 0.5 * a_[k] * (problem_.linear[k] + gradient_[k]);
    return sum;
  }

 private:
  double gram(std::size_t i, std::size_t j) const {
    return i < problem_.size && j < problem_.size ? problem_.gram[i * problem_.stride + j] : 0.0;
  }
  double& mass(std::size_t k) { return k < problem_.size ? a_[k] : slack_; }

  // Rounding can leave the given masses a little above their sum.
  void take_back(double excess) {
    for (double& mass : a_) {
      const double less = std::min(mass, excess);
      mass -= less;
      excess -= less;
    }
    slack_ = 0.0;
  }

  std::size_t steepest() const {
    return static_cast<std::size_t>(std::max_element(gradient_.begin(), gradient_.end()) - gradient_.begin());
  }

  double what_is_left(std::size_t to) const {
    double left = problem_.mass * gradient_[to];
    for (std::size_t k = 0; k < problem_.size; ++k) left -= a_[k] * gradient_[k];
    return left;
  }

  double curvature(std::size_t i, std::size_t j) const {
    return std::max(gram(i, i) + gram(j, j) - 2.0 * gram(i, j), 1e-12 * (gram(i, i) + gram(j, j)) + 1e-300);
  }

  std::size_t best_partner(std::size_t to) {
    std::size_t best = nobody;
    double most = 0.0;
    for (std::size_t k = 0; k <= problem_.size; ++k) {
      const double rise = gradient_[to] - gradient_[k];
      if (rise <= 0.0 || mass(k) <= 0.0) continue;
      const double step = std::min(rise / curvature(to, k), mass(k));
      const double gain = step * (rise - 0.5 * step * curvature(to, k));
      if (gain > most) {
        most = gain;
        best = k;
      }
    }
    return best;
  }

  void shift(std::size_t from, std::size_t to) {
    const double step = std::min((gradient_[to] - gradient_[from]) / curvature(to, from), mass(from));
    mass(from) -= step;
    mass(to) += step;
    const double* const up = problem_.gram + to * problem_.stride;
    const double* const down = problem_.gram + from * problem_.stride;
    for (std::size_t k = 0; to < problem_.size && k < problem_.size; ++k) gradient_[k] -= step * up[k];
    for (std::size_t k = 0; from < problem_.size && k < problem_.size; ++k) gradient_[k] += step * down[k];
  }

  const SimplexProblem& problem_;
  std::span<double> a_;
  double slack_;
  std::vector<double> gradient_;
};

}  // namespace

double maximise_on_simplex(const SimplexProblem& problem, std::span<double> a, double accuracy, std::int64_t most_steps) {
  Smo solver(problem, a);
  solver.run(accuracy, most_steps);
  return solver.value();
}

}  // namespace unkernel::solve
