// A risk over rows that this machine holds, in memory or in a file: passes over the rows, and an oracle.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/cutplane/oracle.hpp"
#include "unkernel/cutplane/passes.hpp"
#include "unkernel/solve/risk.hpp"

namespace unkernel::cutplane {

// 32 bytes a row: the scores here and there, and the coefficients of this cut and of the last one.
// From one cut to the next few rows change sides, so the gradient is brought up to date by those alone where
// that touches fewer rows.
class RowRisk final : public solve::Risk {
 public:
  RowRisk(const RowStore& store, double intercept, Oracle& oracle, Threads threads);

  std::size_t dimension() const override { return passes_.dimension(); }
  void aim(std::span<const double> weights) override;
  void along(std::span<const double> steps, std::span<solve::LinePoint> points) override;
  double cut(double step, std::span<double> gradient) override;
  void move(double step) override;
  int first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset) override;

 private:
  bool update_pays();

  const RowStore& store_;
  double intercept_;
  Passes passes_;
  Oracle& oracle_;
  Threads threads_;
  LargeVector<double> here_;
  LargeVector<double> there_;
  LargeVector<double> coefficients_;
  LargeVector<double> before_;    // the coefficients of the last cut
  LargeVector<double> gradient_;  // and its gradient
  int updates_ = 0;               // since it was last summed anew
};

}  // namespace unkernel::cutplane
