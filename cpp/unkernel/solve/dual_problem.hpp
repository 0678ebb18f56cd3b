// Options, result and variables of the dual solver; loss.hpp states the problem.
#pragma once

#include <algorithm>
#include <cstdint>

#include "unkernel/base/history.hpp"
#include "unkernel/base/large_array.hpp"
#include "unkernel/solve/loss.hpp"

namespace unkernel::solve {

// The methods that may finish dual coordinate descent. All of them reach the same solution; `automatic`
// chooses the cheapest.
enum class Finish { automatic, sweeps, kernel_space, second_order };

struct DescentOptions {
  double tolerance;
  std::int64_t max_epochs;
  std::uint64_t seed;
  int threads;    // for certifying passes and the kernel matrix; steps are sequential
  double memory;  // bytes for the solver's matrices; 0 for no limit
  Finish finish;  // `automatic`, or the only method allowed
};

struct Outcome {
  double objective = 0.0;       // primal, at the weights returned
  double dual_objective = 0.0;  // a certified lower bound of the optimum
  double solved_gap = 0.0;      // the gap without the bound on rounding errors
  std::int64_t epochs = 0;
  bool converged = false;
  Finish finish = Finish::sweeps;  // the last method used other than sweeps
  double largest_matrices = 0.0;   // peak bytes of the solver's matrices
  History history;

  double relative_gap() const {
    return objective > 0.0 ? std::max(objective - dual_objective, 0.0) / objective : 0.0;
  }
};

// One row of the dual problem: 40 bytes, so that a visit touches one or two cache lines.
struct Coordinate {
  double u = 0.0;
  Costs costs;
  double curvature = 0.0;          // phi_i'phi_i
  std::uint32_t asleep_until = 0;  // an epoch
  std::uint16_t nap = 0;           // length of the last sleep in epochs; 0 if the row moved at its last visit
};

using Coordinates = LargeVector<Coordinate>;

}  // namespace unkernel::solve
