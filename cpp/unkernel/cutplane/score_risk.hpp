// The base of risks over rows on this machine: the scores of both points, and the oracle that evaluates them.
#pragma once

#include <cstddef>
#include <span>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/solve/risk.hpp"

namespace unkernel::cutplane {

// 32 bytes per row: the scores at both points, and the coefficients of this cut and of the last one.
class ScoreRisk : public solve::Risk {
 public:
  void along(std::span<const double> steps, std::span<solve::LinePoint> points) final;
  void move(double step) final;

 protected:
  ScoreRisk(std::size_t rows, Oracle& oracle, Threads threads);

  // Call this when the scores *there* have changed.
  void face() { oracle_.face(here_, there_); }

  Oracle& oracle_;
  Threads threads_;
  LargeVector<double> here_;
  LargeVector<double> there_;
  LargeVector<double> coefficients_;
};

// The sum of rows X'c of one cut after the other. Few rows change sides from one cut to the next, so the last
// sum is updated with these rows alone if they are fewer than the rows of the new cut.
class RowSum {
 public:
  // `add(c, sum)` is a pass over the rows, sum += X'c, which skips rows with c = 0.
  template <class Add>
  std::span<const double> of(std::span<const double> coefficients, std::size_t dimension, const Add& add) {
    if (update_pays(coefficients)) {
      for (std::size_t i = 0; i < before_.size(); ++i) before_[i] = coefficients[i] - before_[i];
      add(std::span<const double>(before_), std::span<double>(sum_));
      ++updates_;
    } else {
      sum_.assign(dimension, 0.0);
      add(coefficients, std::span<double>(sum_));
      updates_ = 0;
    }
    before_.assign(coefficients.begin(), coefficients.end());
    return sum_;
  }

 private:
  bool update_pays(std::span<const double> coefficients) const;

  LargeVector<double> before_;  // the coefficients of the last cut
  LargeVector<double> sum_;
  int updates_ = 0;  // since it was last computed from scratch
};

}  // namespace unkernel::cutplane
