// Dual coordinate descent for L2-regularised SVMs, and for regression with the same losses.
//
// Problem     see loss.hpp; w = sum_i u_i phi(x_i) is updated at every step.
// Step        sweep.hpp: one row at a time, in closed form
// Order       a new random permutation in each epoch, from one seeded generator (active_set.cpp). Rows that
//             stay at a corner of g_i sleep or leave the active set until a certifying pass wakes them.
// Stop        (P - D) / P <= tolerance, with P and D the primal and dual objectives, so that the tolerance
//             has the same meaning for every C, n and scale. Each epoch also yields an estimate of the gap.
//             Once the estimate is small enough, a full pass over all rows certifies it or wakes all rows
//             that are not optimal. D is lowered by a bound on its rounding errors; if this bound is large
//             compared with the tolerance, w is summed over the rows again.
//
// Three accelerations, all exact:
//   Growing box   (growing_box.cpp) if costs times |phi_i|^2 are large, u_i needs many epochs to reach its
//                 bound. So the solver starts with small costs, and solves roughly. Each time the costs
//                 double, it scales u and w by s = min(2, best s for the dual). Every scaling increases the
//                 dual objective.
//   Kernel space  (kernel_space.cpp) if few rows still move and mapped rows are long (dense data, degree 3),
//                 or if the gap falls too slowly, the same solver finishes on the kernel matrix of the moving
//                 rows (GramRows), where it also moves all free rows together (free_rows.cpp). Then w is
//                 updated, and the gap is certified on all rows.
//   Second order  (second_order.cpp) if the gap falls too slowly and rows or conjunctions are few, an
//                 interior-point method takes over if it is expected to be cheaper.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/dual_problem.hpp"
#include "unkernel/solve/normal_system.hpp"
#include "unkernel/solve/row_passes.hpp"
#include "unkernel/solve/sweep.hpp"
#include "unkernel/solve/system_plan.hpp"

namespace unkernel::solve {

// Sums over some of the rows.
struct GapSums {
  double gap = 0.0;
  double loss = 0.0;
  double squared_weights = 0.0;  // w'w = sum_i u_i f_i
};

class DualCoordinateDescent {
 public:
  // Updates `weights` in place. They must initially be the w of the u in `coordinates`; a cold start has w =
  // u = 0. `targets` has one number per row, or none if all are 0.
  DualCoordinateDescent(const RowPasses& rows, const Loss& loss, Coordinates coordinates,
                        std::span<double> weights, const DescentOptions& options, Monitor& monitor,
                        std::vector<double> targets = {});

  // Sweeps until the relative duality gap is certified, or until the epochs run out.
  Outcome run(Progress progress);

  // Sweeps until the gap terms of the rows add up to at most `target`. For subproblems: the tolerance is
  // relative to the objective of the whole problem.
  void run_part(double target);

  const Coordinates& coordinates() const { return state_.coordinates; }

 private:
  // Sums over all rows, for bounds on rounding errors.
  struct LengthSums {
    double loss_at_zero = 0.0;  // the loss of w = 0
    double duals = 0.0;         // |u_i phi_i|
    double losses = 0.0;        // |phi_i| times the slope of the loss
  };
  LengthSums sum_lengths() const;

  double target(std::int64_t i) const {
    return state_.targets.empty() ? 0.0 : state_.targets[static_cast<std::size_t>(i)];
  }
  std::vector<double> select_targets(std::span<const std::int32_t> rows) const;
  Coordinate& coordinate(std::int64_t i) { return state_.coordinates[static_cast<std::size_t>(i)]; }

  void sweep();
  GapSums pass_over_all_rows();
  Outcome certify();
  double bound_rounding_of_steps() const;
  double bound_rounding_of_sum(const GapSums& sums) const;
  void recompute_weights();
  double squared_weights_of_start();
  double dual_value() const;
  bool is_probably_converged() const;
  void report_progress(Progress& progress);

  // These functions are in active_set.cpp.
  void collect_awake_rows();
  void wake_all_rows();
  void reactivate_awake_rows();

  // These functions are in growing_box.cpp.
  void grow_box(Progress& progress);
  void scale_costs(std::span<const Costs> costs, double scale);
  void scale_solution(double limit);

  // These functions are in kernel_space.cpp.
  bool is_kernel_space_worthwhile(std::size_t moving) const;
  double kernel_space_cost(std::span<const std::int32_t> moving) const;
  std::vector<std::int32_t> moving_rows() const;
  bool try_kernel_space();
  void finish_in_kernel_space(std::span<const std::int32_t> moving);
  void adopt_solution(std::span<const std::int32_t> moving, std::span<const double> solution);

  // These functions are in free_rows.cpp.
  void move_free_rows();
  std::vector<std::int32_t> free_rows() const;
  std::vector<double> best_direction(std::span<const std::int32_t> free) const;
  bool step_in_direction(std::span<const std::int32_t> free, std::span<const double> direction);

  // These functions are in second_order.cpp.
  Finish cheapest_finish();
  double cost_of_sweeps();
  SystemPlan interior_point_plan() const;  // its cost is that of all iterations
  void solve_by_interior_point();

  bool allows(Finish finish) const {
    return options_.finish == Finish::automatic || options_.finish == finish;
  }
  bool fits_into_memory(double bytes) const { return options_.memory <= 0.0 || bytes <= options_.memory; }
  void record_finish(Finish finish, double bytes);

  const RowPasses& rows_;
  Loss loss_;
  DescentOptions options_;
  SweepState state_;
  std::vector<std::int32_t> active_;    // the rows that have not been shrunk, ascending
  std::vector<std::int32_t> shuffled_;  // buffer of shuffle_neighbours
  std::int64_t next_kernel_finish_ = 3;
  std::int64_t next_comparison_ = 32;
  double gap_at_comparison_ = 0.0;
  bool tried_second_order_ = false;
  double gap_correction_ = 1.0;        // the last certified gap, relative to the estimate before it
  double largest_joint_change_ = 0.0;  // largest sum of |change of u_i| |phi_i| over a joint move
  double kernel_space_budget_ = 0.0;   // multiplications; below it, kernel space is used again
  // The gap before kernel space was last used.
  double gap_before_kernel_space_ = std::numeric_limits<double>::infinity();
  int kernel_space_failures_ = 0;              // how often kernel space lowered the gap too little
  std::int64_t steps_at_last_joint_move_ = 0;  // number of steps at the last joint move of free rows
  double work_before_free_rows_ = 0.0;         // further steps must cost this before free rows move again
  double squared_weights_ = 0.0;               // w'w; maintained only while the box grows
  Finish finish_ = Finish::sweeps;
  double largest_matrices_ = 0.0;
  History history_;
};

}  // namespace unkernel::solve
