// Dual coordinate descent for l2-regularised losses that are negative log-likelihoods: logistic regression
// with two classes, and Poisson regression.
//
// Problem   min_w  1/2 w'w + sum_i L_i(f_i),   f_i = w'phi(x_i)
//           L_i  logistic   p_i log(1 + exp(-f_i)) + q_i log(1 + exp(f_i))
//                Poisson    q_i exp(f_i) - p_i f_i
// Dual      max_u  sum_i g_i(u_i) - 1/2 |sum_i u_i phi_i|^2,   g in score_loss.hpp;   u_i <= p_i, and for the
//           logistic loss -q_i <= u_i. w = sum_i u_i phi_i is updated at every step.
// Step      likelihood_step.hpp: one row at a time
// Order     a new random permutation in each epoch, from one seeded generator (neighbour_order.hpp)
// Stop      (P - D) / P <= tolerance, with P and D the primal and dual objectives. Each epoch also yields an
//           estimate of the gap. Once the estimate is small enough, w is summed over the rows again, and a
//           pass over all rows certifies the gap.
// Growth    if costs times the kernel K of a row with itself are large, the first epochs would make w far too
//           large. So the first epoch has small costs, which grow to full size from epoch to epoch.
// Slow      the gap may fall slowly, for example if costs are large compared with 1 / K. The descent then
//           ends early if Newton's method (kernel_newton.hpp), which can start from the u reached so far, is
//           likely to be faster. If exp(f_i) of some row overflows at this u, the descent returns to u = 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/dual_problem.hpp"
#include "unkernel/solve/likelihood_sweep.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace unkernel::solve {

struct LikelihoodOptions {
  double tolerance;
  std::int64_t max_epochs;
  std::uint64_t seed;
  int threads;      // for certifying passes; steps are sequential
  double constant;  // is added to the objective, so that a gap relative to it makes sense
};

class LikelihoodDescent {
 public:
  // `start` has one u per row; values that are not feasible are changed. `weights` must be 0, and becomes w.
  // `costs` must outlive this object.
  LikelihoodDescent(const RowPasses& rows, Likelihood likelihood, std::span<const Costs> costs,
                    std::span<const double> start, std::span<double> weights,
                    const LikelihoodOptions& options, Monitor& monitor);

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
  void compute_objectives(Outcome& outcome);
  bool start_again();
  void report(Progress& progress, const Outcome& outcome);

  const RowPasses& rows_;
  std::span<const Costs> costs_;
  LikelihoodOptions options_;
  LikelihoodState state_;
  std::vector<std::int32_t> buffer_;  // of shuffle_neighbours
  std::vector<double> gaps_;          // the estimates of all epochs with full costs
};

}  // namespace unkernel::solve
