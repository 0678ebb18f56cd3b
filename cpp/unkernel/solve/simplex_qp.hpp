// The small quadratic program that a cutting-plane method solves in each round.
//
//   max_a  b'a - 1/2 a'Ga      a >= 0,  sum(a) <= C
//
// Solver     an active-set method: the cuts with mass take a Newton step (a Cholesky factorisation of their
//            part of G), shortened if a mass would become negative; then the cut with the steepest ascent of
//            the dual gets mass, too. Few cuts have mass, so steps are cheap, and a new cut takes only a few
//            steps. If cuts are nearly dependent and Newton steps make no more progress, mass moves between
//            pairs of cuts instead, which is slower but always converges (Fan, Chen & Lin 2005).
// Start      the given a, which must be feasible.
// Stop       C max_k(grad_k, 0) - a'grad <= accuracy: an upper bound of the remaining gain.
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

// Improves `a` in place and returns b'a - 1/2 a'Ga, a lower bound of the optimum whatever the accuracy.
double maximise_on_simplex(const SimplexProblem& problem, std::span<double> a, double accuracy);

}  // namespace unkernel::solve
