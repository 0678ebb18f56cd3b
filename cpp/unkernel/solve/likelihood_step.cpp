#include "unkernel/solve/likelihood_step.hpp"

#include <algorithm>
#include <cmath>

#include "unkernel/base/elementary.hpp"
#include "unkernel/solve/logistic_term.hpp"
#include "unkernel/solve/poisson_term.hpp"

namespace unkernel::solve {
namespace {

constexpr double short_step = 1e-2;  // the tangent of u* is then off by at most 5e-5 second derivatives

// The loss of one row at one score.
struct LogisticPoint {
  double best_u;    // u*: minus the first derivative
  double variance;  // the second derivative, (p + q) s (1 - s)

  LogisticPoint(const Costs& costs, double score) {
    LogisticTerm::derivatives(costs, score, best_u, variance);
    best_u = -best_u;
  }
};

// Returns the u that maximises the dual of one row, given the row's current u and score.
double best_logistic_u(const LikelihoodCoordinate& c, double score, LogisticPoint point) {
  constexpr int most_steps = 100;
  double low = score - c.curvature * (c.u + c.costs.negative);
  double high = score + c.curvature * (c.costs.positive - c.u);
  double t = score;
  for (int step = 0; step < most_steps; ++step) {
    const double h = t - score + c.curvature * (c.u - point.best_u);
    (h > 0.0 ? high : low) = t;
    const double change = -h / (1.0 + c.curvature * point.variance);
    if (std::abs(change) <= short_step) {
      return std::clamp(point.best_u - point.variance * change, -c.costs.negative, c.costs.positive);
    }
    t = t + change > low && t + change < high ? t + change : 0.5 * (low + high);
    point = LogisticPoint(c.costs, t);
  }
  return point.best_u;
}

// The gap term is (p + q) KL(s(t0), s(f)), with t0 the score at which u is best.
LikelihoodStep best_logistic_step(const LikelihoodCoordinate& c, double score) {
  const LogisticPoint point(c.costs, score);
  const double distance = std::abs(c.u - point.best_u);
  if (!(distance > 0.0)) return {c.u, 0.0};
  return {best_logistic_u(c, score, point), 0.5 * distance * distance / (point.variance + distance / 3.0)};
}

// With r = p - u and e = q exp(f), the gap term is r log(r/e) - r + e.
LikelihoodStep best_poisson_step(const LikelihoodCoordinate& c, double score) {
  constexpr double largest_score = 600.0;  // e is then finite
  const double p = c.costs.positive, q = c.costs.negative;
  const double r = p - c.u;
  const double e = q * natural_exponential(std::min(score, largest_score));
  const double distance = r - e;
  if (distance == 0.0) return {c.u, 0.0};
  const double gap = 1.5 * distance * (distance / (2.0 * e + r));
  const double change = c.curvature * distance / (1.0 + c.curvature * e);
  if (std::abs(change) <= short_step) return {p - e * (1.0 + change), gap};
  const double z =
      wright_omega(score + c.curvature * r + natural_logarithm(c.curvature) + natural_logarithm(q));
  return {p - z / c.curvature, gap};
}

}  // namespace

LikelihoodStep best_step(Likelihood likelihood, const LikelihoodCoordinate& c, double score) {
  return likelihood == Likelihood::logistic ? best_logistic_step(c, score) : best_poisson_step(c, score);
}

double loss_of(Likelihood likelihood, const Costs& costs, double score) {
  return likelihood == Likelihood::logistic ? LogisticTerm::value(costs, score)
                                            : PoissonTerm::value(costs, score);
}

double dual_of(Likelihood likelihood, const Costs& costs, double u) {
  return likelihood == Likelihood::logistic ? LogisticTerm::dual(costs, u) : PoissonTerm::dual(costs, u);
}

double nearest_feasible(Likelihood likelihood, const Costs& costs, double u) {
  return likelihood == Likelihood::logistic ? std::clamp(u, -costs.negative, costs.positive)
                                            : std::min(u, costs.positive);
}

// The iteration is that of Fritsch, Shafer & Crowley, Algorithm 443, Communications of the ACM 16, 1973. Its
// error falls with the fourth power.
double wright_omega(double x) {
  constexpr double negligible = -38.0;  // z below exp(-38) is exp(x)
  constexpr double dominant = 1e18;     // log z is below the rounding of x
  constexpr int most_rounds = 4;
  if (x < negligible) return natural_exponential(x);
  if (x > dominant) return x;
  const double a = x - 1.0;
  double z = x < -2.0  ? natural_exponential(x)
             : x < 4.0 ? 1.0 + a * (0.5 + a / 16.0 * (1.0 - a / 12.0))
                       : x - natural_logarithm(x);
  for (int round = 0; round < most_rounds; ++round) {
    const double residual = x - z - natural_logarithm(z);
    const double s = 1.0 + z;
    const double t = 2.0 * s * (s + 2.0 / 3.0 * residual);
    const double change = residual / s * (t - residual) / (t - 2.0 * residual);
    z *= 1.0 + change;
    constexpr double enough = 1e-4;  // the next change is below 1e-16
    if (std::abs(change) <= enough) break;
  }
  return z;
}

}  // namespace unkernel::solve
