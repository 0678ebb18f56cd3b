// Dual coordinate descent for l2-regularised logistic regression with two classes.
//
// Problem   min_w  1/2 w'w + sum_i p_i log(1 + exp(-f_i)) + q_i log(1 + exp(f_i)),   f_i = w'phi(x_i)
// Dual      max_u  sum_i g_i(u_i) - 1/2 |sum_i u_i phi_i|^2,   -q_i <= u_i <= p_i,   g in score_loss.hpp;
//           w = sum_i u_i phi_i is updated at every step.
// Step      logistic_sweep.hpp: one row at a time
// Order     a new random permutation in each epoch, from one seeded generator (neighbour_order.hpp)
// Stop      (P - D) / P <= tolerance, with P and D the primal and dual objectives. Each epoch also yields an
//           estimate of the gap. Once the estimate is small enough, w is summed over the rows again, and a
//           pass over all rows certifies the gap.
// Growth    if costs times the kernel K of a row with itself are large, the first epochs would make w far too
//           large. So the first epoch has small costs, which grow to full size from epoch to epoch.
// Slow      the gap may fall slowly, for example if costs are large compared with 1 / K. The descent
//           ends early if Newton's method (kernel_newton.hpp) is likely to be faster. Newton's method can
//           start from the u reached so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/dual_problem.hpp"
#include "unkernel/solve/logistic_sweep.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace unkernel::solve {

struct LogisticOptions {
  double tolerance;
  std::int64_t max_epochs;
  std::uint64_t seed;
  int threads;  // for certifying passes; steps are sequential
};

class LogisticDescent {
 public:
  // `start` has one u per row; values outside the box are moved into it. `weights` must be 0, and becomes w.
  // `costs` must outlive this object.
  LogisticDescent(const RowPasses& rows, std::span<const Costs> costs, std::span<const double> start,
                  std::span<double> weights, const LogisticOptions& options, Monitor& monitor);

  // Sweeps until the gap is certified, the epochs run out, or Newton's method is likely to be faster.
  Outcome run(Progress progress);

  std::vector<double> duals() const;

 private:
  void sweep();
  void grow_costs(Outcome& outcome, Progress& progress);
  void scale_costs(double scale);
  bool falls_too_slowly(double goal) const;
  double dual_objective() const;
  void sum_weights();
  void certify(Outcome& outcome);
  void report(Progress& progress, const Outcome& outcome);

  const RowPasses& rows_;
  std::span<const Costs> costs_;
  LogisticOptions options_;
  LogisticState state_;
  std::vector<std::int32_t> buffer_;  // of shuffle_neighbours
  std::vector<double> gaps_;          // the estimates of all epochs with full costs
};

}  // namespace unkernel::solve
