// A risk over mapped rows phi(x), whose weights are too many to be kept for each cut.
//
// Weights are sums of rows, w = sum_i b_i phi(x_i), and a vector of the solver is b followed by the scores K
// b (solve/bundle.hpp): 16 bytes per distinct row. So *there* is known without a pass over the rows. A cut
// takes two passes, which sum its rows into one weight vector and score all rows by that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unkernel/cutplane/score_risk.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace unkernel::cutplane {

// Equal rows are mapped once: `place` has the mapped row of each row that the oracle judges, and -1 for rows
// that have no weight.
struct MappedExamples {
  const solve::RowPasses& rows;
  std::size_t dimension;  // length of a weight vector
  std::span<const std::int32_t> place;
};

class MappedRisk final : public ScoreRisk {
 public:
  MappedRisk(const MappedExamples& examples, Oracle& oracle, Threads threads);

  std::size_t dimension() const override { return 2 * count_; }
  void aim(std::span<const double> weights) override;
  double cut(double step, std::span<double> gradient) override;

 private:
  void sum_by_mapped_row(std::span<double> sums) const;

  MappedExamples examples_;
  std::size_t count_;  // of mapped rows
  RowSum sum_;
};

}  // namespace unkernel::cutplane
