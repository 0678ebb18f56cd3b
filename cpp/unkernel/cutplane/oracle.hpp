// Oracles: losses as functions of the scores of all rows.
//
// An oracle is a convex function R(s) of the scores s = (w'x_1, .., w'x_n). At any s it gives a subgradient
// -c of R, and from it the cut that holds for every s':   R(s') >= offset - c's',   offset = R(s) + c's. In
// terms of w, the gradient of the cut is X'c. Oracles read scores and labels, never rows, so the rows may be
// in memory, in files or on other machines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "unkernel/solve/loss.hpp"
#include "unkernel/solve/risk.hpp"

namespace unkernel::cutplane {

// The loss sum_i |z_i| loss(1 - sign(z_i) s_i).
struct RowLosses {
  solve::Loss loss;
  std::span<const double> signed_costs;  // z
};

class Oracle {
 public:
  virtual ~Oracle() = default;
  virtual std::int64_t rows() const = 0;
  // Selects the line through these scores, on which later calls evaluate R. The scores are not copied.
  virtual void face(std::span<const double> current, std::span<const double> proposed) = 0;
  // Returns R, or a close upper bound of R, and its slope at current + step (proposed - current).
  virtual solve::LinePoint along(double step, int threads) = 0;
  // Computes c at current + step (proposed - current), and returns the offset.
  virtual double cut(double step, std::span<double> coefficients, int threads) = 0;
  // Returns the loss of each row, if the loss is a sum over single rows.
  virtual std::optional<RowLosses> row_losses() const { return std::nullopt; }
};

// A loss that depends on all scores jointly. The line search computes c at each step.
class JointOracle : public Oracle {
 public:
  void face(std::span<const double> current, std::span<const double> proposed) final;
  solve::LinePoint along(double step, int threads) final;
  double cut(double step, std::span<double> coefficients, int threads) final;

 protected:
  struct Evaluation {
    double offset = 0.0;       // R(s) + c's, or slightly less if c is not optimal
    double uncertainty = 0.0;  // upper bound of the difference
  };

  // Computes c.
  virtual Evaluation evaluate(std::span<const double> scores, std::span<double> coefficients,
                              int threads) = 0;

 private:
  std::span<const double> scores_at(double step);

  std::span<const double> current_scores_;
  std::span<const double> proposed_scores_;
  std::vector<double> scores_;
  std::vector<double> coefficients_;
};

}  // namespace unkernel::cutplane
