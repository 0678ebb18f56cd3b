// A risk over rows on this machine, in memory or in a file: combines passes over the rows with an oracle.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/cutplane/passes.hpp"
#include "unkernel/solve/risk.hpp"

namespace unkernel::cutplane {

// 32 bytes per row: the scores at both points, and the coefficients of this cut and of the last one. Few rows
// change sides from one cut to the next, so the gradient is updated with these rows alone if that reads fewer
// rows.
class RowRisk final : public solve::Risk {
 public:
  RowRisk(const data::RowStore& store, double intercept, Oracle& oracle, Threads threads);

  std::size_t dimension() const override { return passes_.dimension(); }
  void aim(std::span<const double> weights) override;
  void along(std::span<const double> steps, std::span<solve::LinePoint> points) override;
  double cut(double step, std::span<double> gradient) override;
  void move(double step) override;
  int first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset) override;

 private:
  bool update_pays();

  const data::RowStore& store_;
  double intercept_;
  Passes passes_;
  Oracle& oracle_;
  Threads threads_;
  LargeVector<double> here_;
  LargeVector<double> there_;
  LargeVector<double> coefficients_;
  LargeVector<double> before_;    // the coefficients of the last cut
  LargeVector<double> gradient_;  // and its gradient
  int updates_ = 0;               // since it was last computed from scratch
};

}  // namespace unkernel::cutplane
