// The interface between the one-slack solver and a training problem.
//
// A risk R(w) is convex and nonnegative. It stores the scores of the rows at two points: the current point
// (the best weights so far) and the target (the weights that the solver proposes). Scores are linear in w, so
// a point on the line between them, current + step (target - current), needs no further pass over the rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace unkernel::solve {

struct LinePoint {
  double value = 0.0;  // R
  double slope = 0.0;  // dR / dstep; where R has a corner, from the right or from the left
};

class Risk {
 public:
  virtual ~Risk() = default;

  virtual std::size_t dimension() const = 0;

  // Sets the target, with one pass over the rows. Initially, both points are w = 0.
  virtual void aim(std::span<const double> weights) = 0;

  // Evaluates R at several steps on the line.
  virtual void along(std::span<const double> steps, std::span<LinePoint> points) = 0;

  // Computes a cut at a step on the line: R(w) >= offset - gradient'w for all w, with equality at this step's
  // point. Writes `gradient`, and returns the offset.
  virtual double cut(double step, std::span<double> gradient) = 0;

  // Moves the current point to a step on the line.
  virtual void move(double step) = 0;

  // Computes a good first target for this C, and a cut at this target (offset and gradient as in `cut`).
  // Returns the number of passes over the rows, or 0 if there is no guess.
  virtual int first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset);

  // Returns the steps at which a line search begins, ascending from 0 to 1. If each evaluation involves
  // communication, more steps save rounds of communication.
  virtual std::vector<double> first_steps() const { return {0.0, 1.0}; }

  // Returns the factor by which the slope must fall before a line search ends. If each evaluation involves
  // communication, a larger factor may save time. On a parabola, the search misses at most the square of the
  // factor, as a share of the possible decrease.
  virtual double line_accuracy() const { return 0.1; }

  // Returns the number of steps per call of `along`: 1 if evaluations are cheap, more if each call involves
  // communication.
  virtual std::size_t steps_at_once() const { return 1; }
};

inline int Risk::first_guess(double, std::span<double>, std::span<double>, double&) { return 0; }

}  // namespace unkernel::solve
