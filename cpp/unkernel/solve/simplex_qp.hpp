// Solves the small quadratic program of each round of a cutting-plane method.
//
//   max_a  b'a - 1/2 a'Ga      a >= 0,  sum(a) <= C
//
// Solver     an active-set method. The cuts with mass take a Newton step (a Cholesky factorisation of their
//            part of G), which is shortened if a mass would become negative. Then the cut along which the
//            dual rises fastest gets mass, too. Few cuts have mass, so steps are cheap, and a new cut takes
//            only a few steps. If nearly dependent cuts prevent progress by Newton steps, mass moves between
//            pairs of cuts instead, which is slower but always converges (Fan, Chen & Lin 2005).
// Start      the given a, which must be feasible.
// Stop       C max_k(grad_k, 0) - a'grad <= accuracy: an upper bound on the remaining gain.
#pragma once

#include <cstddef>
#include <span>

namespace unkernel::solve {

struct SimplexProblem {
  std::size_t size;
  const double* gram;  // row-major; rows are `stride` apart
  std::size_t stride;
  const double* linear;  // b
  double mass;           // C
};

// Improves `a` in place. Returns b'a - 1/2 a'Ga, a lower bound of the optimum for any accuracy.
double maximise_on_simplex(const SimplexProblem& problem, std::span<double> a, double accuracy);

}  // namespace unkernel::solve
