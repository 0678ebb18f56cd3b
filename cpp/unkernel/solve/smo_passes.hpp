// The passes of sequential minimal optimisation (smo.cpp) over all active variables, which take nearly all of
// its time.
#pragma once

#include <cstddef>
#include <limits>

namespace unkernel::solve {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double least_curvature = 1e-12;  // tau of Fan, Chen & Lin

// The change of one variable: the variable's kernel row over the active variables, and the size of the
// change.
struct KernelStep {
  const float* row;
  double change;
};

// The variable that moves next. Gains are needed only for this choice, so they have single precision.
// Violations are computed in double precision and then rounded.
struct PairChoice {
  std::size_t place;  // of the largest gain; `count` if none has a gain
  double violation = 0.0;
};

// The first variable i of a pair: `top` is its pull, and `row` holds K_ik. The partner k maximises (top -
// e_k)^2 / (K_ii + K_kk - 2 K_ik).
struct PairLeader {
  double top;
  float diagonal;
  const float* row;
};

// Subtracts both steps from `pull`. Returns the index of the largest pull + barrier, or `count` if every
// barrier is infinite.
std::size_t move_pair(KernelStep one, KernelStep two, double* __restrict pull,
                      const double* __restrict barrier, std::size_t count);

PairChoice find_partner(PairLeader leader, const double* __restrict pull, const double* __restrict barrier,
                        const float* __restrict diagonal, std::size_t count);

// Subtracts the step from `pull`. Returns the variable with the largest pull^2 / K_kk among the variables
// that can move.
PairChoice move_one(KernelStep step, double* __restrict pull, const double* __restrict rise_barrier,
                    const double* __restrict fall_barrier, const float* __restrict diagonal,
                    std::size_t count);

// Subtracts the step from `pull`.
void subtract_row(KernelStep step, double* __restrict pull, std::size_t count);

}  // namespace unkernel::solve
