// The interface between the one-slack solver and a training problem.
//
// A risk R(w) is convex and not negative. It keeps the scores of the rows at two points, *here* (the best
// weights so far) and *there* (the point that the solver examines), and evaluates points on the line between
// them without another pass over the rows, because scores are linear in w.
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

  // One pass over the rows: *there* becomes w. Initially both points are w = 0.
  virtual void aim(std::span<const double> weights) = 0;

  // R at here + step (there - here), for several steps at once.
  virtual void along(std::span<const double> steps, std::span<LinePoint> points) = 0;

  // A cut at that point: R(w) >= offset - gradient'w for all w, with equality there. Overwrites `gradient`.
  virtual double cut(double step, std::span<double> gradient) = 0;

  // *here* becomes here + step (there - here).
  virtual void move(double step) = 0;

  // A good first point for this C, with a cut (offset and gradient as in `cut`). Returns the number of passes
  // over the rows that this took, 0 if there is no guess.
  virtual int first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset);

  // Where a line search begins: ascending steps from 0 to 1. More of them save questions where each involves
  // communication.
  virtual std::vector<double> first_steps() const { return {0.0, 1.0}; }

  // A line search ends when the slope has fallen by this factor. Where each evaluation involves
  // communication, a larger one may pay: of what a parabola could fall, the square of this factor is left.
  virtual double line_accuracy() const { return 0.1; }

  // How many steps `along` should be asked for at once: one if evaluations are cheap, more if each call
  // involves communication.
  virtual std::size_t steps_at_once() const { return 1; }
};

inline int Risk::first_guess(double, std::span<double>, std::span<double>, double&) { return 0; }

}  // namespace unkernel::solve
