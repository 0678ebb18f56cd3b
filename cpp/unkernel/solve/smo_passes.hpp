// The passes over all active variables that sequential minimal optimisation makes (smo.cpp): they take nearly
// all of its time.
#pragma once

#include <cstddef>
#include <limits>

namespace unkernel::solve {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double least_curvature = 1e-12;  // tau of Fan, Chen & Lin

// One variable changes: its row of the kernel, over the active variables, and by how much.
struct KernelStep {
  const float* row;
  double change;
};

// Gains are estimates that only choose who moves next, so single precision is enough; violations are
// differences taken in double and rounded afterwards.
struct PairChoice {
  std::size_t place;  // the largest gain; `count` where nothing is gained
  double violation = 0.0;
};

// The partner k of a variable with the pull `top` and this row: (top - e_k)^2 / (K_ii + K_kk - 2 K_ik) is
// largest.
struct PairLeader {
  double top;
  float diagonal;
  const float* row;
};

// pull -= sum of both steps. Returns where pull + barrier is largest; `count` where every barrier is
// infinite.
std::size_t move_pair(KernelStep one, KernelStep two, double* __restrict pull,
                      const double* __restrict barrier, std::size_t count);

PairChoice find_partner(PairLeader leader, const double* __restrict pull, const double* __restrict barrier,
                        const float* __restrict diagonal, std::size_t count);

// pull -= step. Returns the variable with the largest pull^2 / K_kk among those that can follow it.
PairChoice move_one(KernelStep step, double* __restrict pull, const double* __restrict rise_barrier,
                    const double* __restrict fall_barrier, const float* __restrict diagonal,
                    std::size_t count);

// pull -= step
void subtract_row(KernelStep step, double* __restrict pull, std::size_t count);

}  // namespace unkernel::solve
