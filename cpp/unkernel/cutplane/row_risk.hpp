// A risk over rows on this machine, in memory or in a file: combines passes over the rows with an oracle.
#pragma once

#include <cstddef>
#include <span>

#include "unkernel/cutplane/passes.hpp"
#include "unkernel/cutplane/score_risk.hpp"

namespace unkernel::cutplane {

class RowRisk final : public ScoreRisk {
 public:
  RowRisk(const data::RowStore& store, double intercept, Oracle& oracle, Threads threads);

  std::size_t dimension() const override { return passes_.dimension(); }
  void aim(std::span<const double> weights) override;
  double cut(double step, std::span<double> gradient) override;
  // Descends locally (local_descent.hpp) if the loss is a sum over single rows and there are enough of them.
  int first_guess(double C, std::span<double> weights, std::span<double> gradient, double& offset) override;

 private:
  const data::RowStore& store_;
  double intercept_;
  Passes passes_;
  RowSum sum_;
};

}  // namespace unkernel::cutplane
