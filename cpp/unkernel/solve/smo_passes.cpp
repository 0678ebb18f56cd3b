#include "unkernel/solve/smo_passes.hpp"

#include <algorithm>
#include <cstdint>

#include "unkernel/base/cpu.hpp"

namespace unkernel::solve {
namespace {

// Maxima are searched in `lanes` interleaved parts, so that compilers can vectorise the loops without
// reordering floating-point operations. Each loop has a single conditional expression, because compilers do
// not vectorise loops with two. Barriers, which are 0 or infinite, encode whether a variable can rise or
// fall.

constexpr std::size_t lanes = 64;

// Forces lambdas inline. Otherwise they would be compiled for the baseline instruction set only, even in
// functions cloned for other instruction sets.
#define UNKERNEL_INLINE __attribute__((always_inline))

template <class Block>
[[gnu::always_inline]] inline void for_each_block(std::size_t count, const Block& block) {
  std::size_t first = 0;
  for (; first + lanes <= count; first += lanes) block(first, lanes);
  if (first < count) block(first, count - first);
}

// The largest gain in each lane, the block where it occurs, and the largest violation.
class GainLanes {
 public:
  GainLanes() {
    std::fill_n(gain_, lanes, 0.0F);
    std::fill_n(violation_, lanes, 0.0F);
    std::fill_n(block_, lanes, std::int32_t{-1});
  }

  // Takes gains into account. A negative rise[l] means no gain; curvature[l] must be positive.
  [[gnu::always_inline]] void consider(std::size_t first, std::size_t width, float* __restrict rise,
                                       const float* __restrict curvature) {
    const std::int32_t block = static_cast<std::int32_t>(first);
    float gain[lanes];
    for (std::size_t l = 0; l < width; ++l) rise[l] = rise[l] > 0.0F ? rise[l] : 0.0F;
    for (std::size_t l = 0; l < width; ++l) violation_[l] = rise[l] > violation_[l] ? rise[l] : violation_[l];
    for (std::size_t l = 0; l < width; ++l) gain[l] = rise[l] * rise[l] / curvature[l];
    for (std::size_t l = 0; l < width; ++l) {
      const std::int32_t previous = block_[l];
      block_[l] = gain[l] > gain_[l] ? block : previous;
    }
    for (std::size_t l = 0; l < width; ++l) gain_[l] = gain[l] > gain_[l] ? gain[l] : gain_[l];
  }

  PairChoice choice(std::size_t count) const {
    const double violation = static_cast<double>(*std::max_element(violation_, violation_ + lanes));
    const std::size_t lane = static_cast<std::size_t>(std::max_element(gain_, gain_ + lanes) - gain_);
    return {block_[lane] < 0 ? count : static_cast<std::size_t>(block_[lane]) + lane, violation};
  }

 private:
  float gain_[lanes];
  float violation_[lanes];
  std::int32_t block_[lanes];
};

}  // namespace

UNKERNEL_CLONES std::size_t move_pair(KernelStep one, KernelStep two, double* __restrict pull,
                                      const double* __restrict barrier, std::size_t count) {
  double best[lanes];
  std::fill_n(best, lanes, -infinity);
  const float* __restrict row_one = one.row;
  const float* __restrict row_two = two.row;
  for_each_block(count, [&](std::size_t first, std::size_t width) UNKERNEL_INLINE {
    for (std::size_t l = 0; l < width; ++l) {
      const std::size_t k = first + l;
      const double new_pull = pull[k] - (one.change * static_cast<double>(row_one[k]) +
                                         two.change * static_cast<double>(row_two[k]));
      pull[k] = new_pull;
      const double reach = new_pull + barrier[k];
      const double previous = best[l];
      best[l] = reach > previous ? reach : previous;
    }
  });
  const std::size_t lane = static_cast<std::size_t>(std::max_element(best, best + lanes) - best);
  for (std::size_t k = lane; k < count && best[lane] > -infinity; k += lanes) {
    if (pull[k] + barrier[k] == best[lane]) return k;
  }
  return count;
}

UNKERNEL_CLONES PairChoice find_partner(PairLeader leader, const double* __restrict pull,
                                        const double* __restrict barrier, const float* __restrict diagonal,
                                        std::size_t count) {
  GainLanes best;
  const float* __restrict row = leader.row;
  for_each_block(count, [&](std::size_t first, std::size_t width) UNKERNEL_INLINE {
    float rise[lanes], curvature[lanes];
    for (std::size_t l = 0; l < width; ++l)
      rise[l] = static_cast<float>(leader.top - (pull[first + l] + barrier[first + l]));
    for (std::size_t l = 0; l < width; ++l) {
      const float raw = leader.diagonal + diagonal[first + l] - 2.0F * row[first + l];
      curvature[l] = raw > static_cast<float>(least_curvature) ? raw : static_cast<float>(least_curvature);
    }
    best.consider(first, width, rise, curvature);
  });
  return best.choice(count);
}

UNKERNEL_CLONES PairChoice move_one(KernelStep step, double* __restrict pull,
                                    const double* __restrict rise_barrier,
                                    const double* __restrict fall_barrier, const float* __restrict diagonal,
                                    std::size_t count) {
  GainLanes best;
  const float* __restrict row = step.row;
  for_each_block(count, [&](std::size_t first, std::size_t width) UNKERNEL_INLINE {
    float rise[lanes], curvature[lanes];
    for (std::size_t l = 0; l < width; ++l) {
      const std::size_t k = first + l;
      const double new_pull = pull[k] - step.change * static_cast<double>(row[k]);
      pull[k] = new_pull;
      const double up = new_pull + rise_barrier[k], down = -(new_pull + fall_barrier[k]);
      rise[l] = static_cast<float>(up > down ? up : down);
    }
    for (std::size_t l = 0; l < width; ++l) {
      const float raw = diagonal[first + l];
      curvature[l] = raw > static_cast<float>(least_curvature) ? raw : static_cast<float>(least_curvature);
    }
    best.consider(first, width, rise, curvature);
  });
  return best.choice(count);
}

UNKERNEL_CLONES void subtract_row(KernelStep step, double* __restrict pull, std::size_t count) {
  const float* __restrict row = step.row;
  for (std::size_t k = 0; k < count; ++k) pull[k] -= step.change * static_cast<double>(row[k]);
}

}  // namespace unkernel::solve
