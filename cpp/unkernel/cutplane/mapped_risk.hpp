// A risk over mapped rows phi(x), for maps with too many weights to store a weight vector per cut.
//
// Weights are sums of rows, w = sum_i b_i phi(x_i), and a vector of the solver is b followed by the scores K
// b (solve/bundle.hpp): 16 bytes per distinct row. So the proposed scores are known without a pass over the
// rows. A cut takes two passes: the first sums the rows of the cut into a weight vector, the second scores
// all rows with this vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "unkernel/cutplane/score_risk.hpp"
#include "unkernel/solve/row_passes.hpp"

namespace unkernel::cutplane {

// Equal rows are mapped once: `place` gives the mapped row of each row of the oracle, and -1 for rows without
// weight.
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
