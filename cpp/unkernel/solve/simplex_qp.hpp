// The small quadratic program of a cutting-plane method.
//
//   max_a  b'a - 1/2 a'Ga      a >= 0,  sum(a) <= C
//
// Solver     sequential minimal optimisation: mass moves between the two cuts (or the slack, a cut of zeros)
//            where the dual rises most, by the second-order rule of Fan, Chen & Lin (2005). A step costs O(K).
// Start      wherever a stands, as long as it is feasible.
// Stop       C max_k(grad_k, 0) - a'grad <= accuracy: an upper bound of what is left to gain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unkernel::solve {

struct SimplexProblem {
  std::size_t size;
  const double* gram;   // row-major, `stride` apart
  std::size_t stride;
  const double* linear;  // b
  double mass;           // C
};

// Improves `a` in place and gives b'a - 1/2 a'Ga, which is a lower bound of the optimum whatever the accuracy.
double maximise_on_simplex(const SimplexProblem& problem, std::span<double> a, double accuracy, std::int64_t most_steps);

}  // namespace unkernel::solve
