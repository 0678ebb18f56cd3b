// What the one-slack loop needs to know of a training problem, and no more.
//
// A risk R(w) is convex and not negative. It keeps what it knows of the rows at two points, *here* (the best
// weights so far) and *there* (where the loop wants to look), and answers for points on the line between
// them without another pass over the rows: scores are linear in w.
#pragma once

#include <cstddef>
#include <span>

namespace unkernel::solve {

struct LinePoint {
  double value = 0.0;  // R
  double slope = 0.0;  // dR / dstep, from the right or from the left where R has a corner
};

class Risk {
 public:
  virtual ~Risk() = default;

  virtual std::size_t dimension() const = 0;

  // One pass over the rows: *there* becomes w. Before the first call both points are w = 0.
  virtual void aim(std::span<const double> weights) = 0;

  // R at here + step (there - here), for several steps at once.
  virtual void along(std::span<const double> steps, std::span<LinePoint> points) = 0;

  // A cut at that point: R(w) >= offset - gradient'w for all w, with equality there. Overwrites `gradient`.
  virtual double cut(double step, std::span<double> gradient) = 0;

  // *here* becomes here + step (there - here).
  virtual void move(double step) = 0;

  // Where it may be good to look first, for this C, and a cut that comes with it (offset and gradient as in
  // `cut`); gives how many passes over the rows that took, 0 for having no idea.
  virtual int first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset);

  // For how many steps at once it is best asked: one where a question is cheap, more where it travels.
  virtual std::size_t steps_at_once() const { return 1; }
};

inline int Risk::first_guess(double, std::span<double>, std::span<double>, double&) { return 0; }

}  // namespace unkernel::solve
