// The loop of dual coordinate descent for logistic and Poisson losses, compiled for every kind of row view.
//
// Visit    one row at a time (likelihood_step.hpp). The loss is data, so that its functions are compiled once
// Gap      sweeps estimate the gap of each row; the certifying pass computes it exactly
// Revisit  rows whose gap was larger than the average are visited again, as in sweep.hpp
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/likelihood_step.hpp"

namespace unkernel::solve {

// State shared by the loop and the solver.
struct LikelihoodState {
  Likelihood likelihood;
  LargeVector<LikelihoodCoordinate> coordinates;
  std::span<double> weights;
  Monitor& monitor;
  Random random;
  std::vector<std::int32_t> order{};  // the rows to visit
  std::vector<std::int32_t> busy{};   // the rows to visit again at the end of the epoch
  double busy_above = std::numeric_limits<double>::infinity();
  double estimated_gap = 0.0;
  double squared_weights = 0.0;  // w'w
};

template <class Rows>
class LikelihoodSweep {
 public:
  LikelihoodSweep(const Rows& rows, LikelihoodState& state) : rows_(rows), state_(state) {}

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
    LikelihoodCoordinate& c = state_.coordinates[static_cast<std::size_t>(i)];
    const double f = rows_.dot(i, state_.weights.data());
    const LikelihoodStep step = best_step(state_.likelihood, c, f);
    const double change = step.u - c.u;
    if (change == 0.0) return step.gap;
    c.u = step.u;
    state_.squared_weights += change * (2.0 * f + change * c.curvature);
    rows_.axpy(i, change, state_.weights.data());
    return step.gap;
  }

  const Rows& rows_;
  LikelihoodState& state_;
};

}  // namespace unkernel::solve
