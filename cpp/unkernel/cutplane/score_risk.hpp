// The base of risks over rows on this machine: the current and proposed scores, and the oracle that evaluates
// them.
#pragma once

#include <cstddef>
#include <span>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/solve/risk.hpp"

namespace unkernel::cutplane {

// Takes 32 bytes per row: current and proposed scores, and the coefficients of the current cut and of the
// last cut.
class ScoreRisk : public solve::Risk {
 public:
  void along(std::span<const double> steps, std::span<solve::LinePoint> points) final;
  void move(double step) final;

 protected:
  ScoreRisk(std::size_t rows, Oracle& oracle, Threads threads);

  // Call this when the proposed scores have changed.
  void face() { oracle_.face(current_scores_, proposed_scores_); }

  Oracle& oracle_;
  Threads threads_;
  LargeVector<double> current_scores_;
  LargeVector<double> proposed_scores_;
  LargeVector<double> coefficients_;
};

// Computes the sums X'c of successive cuts. From one cut to the next, the coefficients of few rows change. If
// fewer rows change than the new cut has, adds only the changes to the last sum.
class RowSum {
 public:
  // `add(c, sum)` is a pass over the rows, sum += X'c, which skips rows with c = 0.
  template <class Add>
  std::span<const double> of(std::span<const double> coefficients, std::size_t dimension, const Add& add) {
    if (is_update_faster(coefficients)) {
      for (std::size_t i = 0; i < last_coefficients_.size(); ++i)
        last_coefficients_[i] = coefficients[i] - last_coefficients_[i];
      add(std::span<const double>(last_coefficients_), std::span<double>(sum_));
      ++updates_;
    } else {
      sum_.assign(dimension, 0.0);
      add(coefficients, std::span<double>(sum_));
      updates_ = 0;
    }
    last_coefficients_.assign(coefficients.begin(), coefficients.end());
    return sum_;
  }

 private:
  bool is_update_faster(std::span<const double> coefficients) const;

  LargeVector<double> last_coefficients_;  // the coefficients of the last cut
  LargeVector<double> sum_;
  int updates_ = 0;  // since the sum was last computed from scratch
};

}  // namespace unkernel::cutplane
