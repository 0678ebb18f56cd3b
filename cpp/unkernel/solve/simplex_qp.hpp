// The small quadratic program of a cutting-plane method.
//
//   max_a  b'a - 1/2 a'Ga      a >= 0,  sum(a) <= C
//
// Solver     an active-set method: the cuts that have mass take a Newton step (a Cholesky factorisation of
// their
//            part of G), or as much of it as leaves all masses positive; then the cut where the dual rises
//            most joins them. Few cuts have mass, so a step is cheap, and one new cut takes a handful of
//            steps. Where cuts nearly depend on each other and Newton steps gain nothing more, mass moves
//            between pairs of cuts instead: slower, and always right (Fan, Chen & Lin 2005).
// Start      wherever a stands, as long as it is feasible.
// Stop       C max_k(grad_k, 0) - a'grad <= accuracy: an upper bound of what is left to gain.
#pragma once

#include <cstddef>
#include <span>

namespace unkernel::solve {

struct SimplexProblem {
  std::size_t size;
  const double* gram;  // row-major, `stride` apart
  std::size_t stride;
  const double* linear;  // b
  double mass;           // C
};

// Improves `a` in place and gives b'a - 1/2 a'Ga, which is a lower bound of the optimum whatever the
// accuracy.
double maximise_on_simplex(const SimplexProblem& problem, std::span<double> a, double accuracy);

}  // namespace unkernel::solve
