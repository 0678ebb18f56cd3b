// The loop of dual coordinate descent for the logistic loss, compiled for every kind of row view.
//
// Visit    A row has costs p and q, score f and kernel K = phi'phi. With all other variables fixed, the
//          best u for the dual is u*(t) = p (1 - s(t)) - q s(t), s(t) = 1 / (1 + exp(-t)), at the root t of
//
//            h(t) = t - f + K (u - u*(t)),            h'(t) = 1 + K (p + q) s(t) (1 - s(t)) > 0.
//
//          The root t is the score after the step. Newton's method starts at t = f, and is kept in the
//          interval where h changes its sign. Its last step is made in u, along the tangent of u*, which
//          saves an exponential. Usually one step suffices.
//          (The problem in u and its solution are those of Yu, Huang & Lin, Dual coordinate descent methods
//          for logistic regression and maximum entropy models, Machine Learning 85, 2011. They solve for u,
//          where the derivative is infinite at the ends of the interval. t has no such ends.)
// Gap      The gap term of a row is (p + q) KL(s(t0), s(f)), with t0 the score at which u is best. Sweeps
//          estimate it to second order; the certifying pass computes it exactly.
// Revisit  Rows whose gap was larger than the average are visited again, as in sweep.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/logistic_term.hpp"
#include "unkernel/solve/loss.hpp"

namespace unkernel::solve {

// The variable of one row: 32 bytes.
struct LogisticCoordinate {
  double u = 0.0;
  Costs costs;
  double curvature = 0.0;  // phi_i'phi_i
};

// State shared by the loop and the solver.
struct LogisticState {
  LargeVector<LogisticCoordinate> coordinates;
  std::span<double> weights;
  Monitor& monitor;
  Random random;
  std::vector<std::int32_t> order{};  // the rows to visit
  std::vector<std::int32_t> busy{};   // the rows to visit again at the end of the epoch
  double busy_above = std::numeric_limits<double>::infinity();
  double estimated_gap = 0.0;
  double squared_weights = 0.0;  // w'w
};

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
inline double best_logistic_u(const LogisticCoordinate& c, double score, LogisticPoint point) {
  constexpr double short_step = 1e-2;  // the tangent of u* is then off by at most 5e-5 variances
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

template <class Rows>
class LogisticSweep {
 public:
  LogisticSweep(const Rows& rows, LogisticState& state) : rows_(rows), state_(state) {}

  void visit_rows() {
    const std::vector<std::int32_t>& order = state_.order;
    state_.busy.clear();
    double estimated_gap = 0.0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      prefetch_after(order, k);
      if ((k & 255) == 0) state_.monitor.throw_if_stopped();
      const double gap = visit(order[k]);
      estimated_gap += gap;
      if (gap > state_.busy_above) state_.busy.push_back(order[k]);
    }
    state_.estimated_gap = estimated_gap;
    state_.busy_above = estimated_gap / static_cast<double>(std::max<std::size_t>(order.size(), 1));
  }

  void revisit_busy_rows() {
    constexpr int rounds = 4;
    std::vector<std::int32_t>& busy = state_.busy;
    for (int round = 0; round < rounds && !busy.empty(); ++round) {
      state_.monitor.throw_if_stopped();
      state_.random.shuffle(std::span(busy));
      std::size_t still_busy = 0;
      for (std::size_t k = 0; k < busy.size(); ++k) {
        prefetch_after(busy, k);
        const std::int32_t i = busy[k];
        if (visit(i) > state_.busy_above) busy[still_busy++] = i;
      }
      busy.resize(still_busy);
    }
  }

 private:
  static constexpr std::size_t header_distance = 16;  // in rows, for the first prefetch
  static constexpr std::size_t row_distance = 8;

  void prefetch_after(const std::vector<std::int32_t>& order, std::size_t k) const {
    if (k + header_distance < order.size()) {
      const std::int32_t ahead = order[k + header_distance];
      __builtin_prefetch(state_.coordinates.data() + ahead, 1);
      rows_.prefetch_header(ahead);
    }
    if (k + row_distance < order.size()) rows_.prefetch(order[k + row_distance]);
  }

  // Makes the best step of a row, and returns an estimate of its gap before the step.
  double visit(std::int32_t i) {
    LogisticCoordinate& c = state_.coordinates[static_cast<std::size_t>(i)];
    const double f = rows_.dot(i, state_.weights.data());
    const LogisticPoint point(c.costs, f);
    const double distance = std::abs(c.u - point.best_u);
    if (!(distance > 0.0)) return 0.0;
    const double gap = 0.5 * distance * distance / (point.variance + distance / 3.0);
    const double u = best_logistic_u(c, f, point);
    const double change = u - c.u;
    c.u = u;
    state_.squared_weights += change * (2.0 * f + change * c.curvature);
    rows_.axpy(i, change, state_.weights.data());
    return gap;
  }

  const Rows& rows_;
  LogisticState& state_;
};

}  // namespace unkernel::solve
