// Cutting planes with one slack variable, for any convex risk R.
//
// Problem   min_w  P(w) = 1/2 w'w + C R(w)
// Method    Joachims (2006), Algorithm 1, with the optimised cuts of OCAS (Franc & Sonnenburg 2008). Each
//           round solves the small dual of all cuts (bundle.hpp), which proposes weights and gives a lower
//           bound D. A line search from the best weights so far towards the proposal yields the next best
//           weights. The new cut is made slightly further towards the proposal. If the risk offers a first
//           guess, it is the first proposal.
// Rounds    O(C / gap) in theory, for any number of rows; a dozen or two in practice.
// Stop      (P - D) / P <= tolerance, with P at the best weights and D the best bound: a true duality gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "unkernel/base/history.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/bundle.hpp"
#include "unkernel/solve/risk.hpp"

namespace unkernel::solve {

struct OneSlackOptions {
  double C;
  double tolerance;
  std::int64_t max_rounds;
  int threads;  // for weights and products of cuts; the risk has its own threads
};

struct OneSlackOutcome {
  double objective = 0.0;       // P at the weights returned
  double dual_objective = 0.0;  // D
  std::int64_t rounds = 0;
  bool converged = false;
  History history;
};

// Receives the cuts, the best weights and the progress after every round, on the working thread.
using RoundObserver =
    std::function<void(const Bundle&, std::span<const double> weights, const OneSlackOutcome&)>;

// Minimises P, starting from `weights` (zeros, or a good guess), and overwrites them with the result.
// `bundle` may hold cuts of the same risk; new cuts are added to it.
OneSlackOutcome minimise_one_slack(Risk& risk, const OneSlackOptions& options, Bundle& bundle,
                                   std::span<double> weights, Progress progress, Monitor& monitor,
                                   const RoundObserver& observe);

}  // namespace unkernel::solve
