// The interface between the one-slack solver and a training problem.
//
// A risk R(w) is convex and nonnegative. It stores the scores of the rows at two points, the current point
// (the best weights so far) and the target (the weights that the solver proposes). Points on the line between
// them, current + step (target - current), are evaluated without another pass over the rows, because scores
// are linear in w.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace unkernel::solve {

struct LinePoint {
  double value = 0.0;  // R
  double slope = 0.0;  // dR / dstep, from the right or from the left where R has a corner
};

class Risk {
 public:
  virtual ~Risk() = default;

  virtual std::size_t dimension() const = 0;

  // Sets the target, with one pass over the rows. Initially both points are w = 0.
  virtual void aim(std::span<const double> weights) = 0;

  // Evaluates R at several steps on the line.
  virtual void along(std::span<const double> steps, std::span<LinePoint> points) = 0;

  // Computes a cut at a step on the line: R(w) >= offset - gradient'w for all w, with equality at the point
  // of the step. Writes `gradient`, and returns the offset.
  virtual double cut(double step, std::span<double> gradient) = 0;

  // Moves the current point to a step on the line.
  virtual void move(double step) = 0;

  // Computes a good first target for this C, and a cut at this point (offset and gradient as in `cut`).
  // Returns the number of passes over the rows, or 0 if there is no guess.
  virtual int first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset);

  // Returns the first steps of a line search, ascending from 0 to 1. If each evaluation involves
  // communication, more steps save rounds of communication.
  virtual std::vector<double> first_steps() const { return {0.0, 1.0}; }

  // Returns the factor by which the slope must fall to end a line search. If each evaluation involves
  // communication, a larger factor may save time: on a parabola, the search misses at most the square of the
  // factor of the possible decrease.
  virtual double line_accuracy() const { return 0.1; }

  // Returns the number of steps per call of `along`: 1 if evaluations are cheap, more if each call involves
  // communication.
  virtual std::size_t steps_at_once() const { return 1; }
};

inline int Risk::first_guess(double, std::span<double>, std::span<double>, double&) { return 0; }

}  // namespace unkernel::solve
