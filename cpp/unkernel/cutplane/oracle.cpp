#include "unkernel/cutplane/oracle.hpp"

#include "unkernel/base/gather.hpp"

namespace unkernel::cutplane {

void JointOracle::face(std::span<const double> here, std::span<const double> there) {
  here_ = here;
  there_ = there;
}

std::span<const double> JointOracle::scores_at(double step) {
  if (step == 0.0) return here_;
  if (step == 1.0) return there_;
  scores_.resize(here_.size());
  for (std::size_t i = 0; i < scores_.size(); ++i) scores_[i] = here_[i] + step * (there_[i] - here_[i]);
  return scores_;
}

solve::LinePoint JointOracle::along(double step, int threads) {
  const std::span<const double> scores = scores_at(step);
  coefficients_.resize(scores.size());
  const Evaluation found = evaluate(scores, coefficients_, threads);
  const double* const c = coefficients_.data();
  return {found.uncertainty + found.offset -
              sum_of_terms(scores.size(), [&](std::size_t i) { return c[i] * scores[i]; }),
          -sum_of_terms(scores.size(), [&](std::size_t i) { return c[i] * (there_[i] - here_[i]); })};
}

double JointOracle::cut(double step, std::span<double> coefficients, int threads) {
  return evaluate(scores_at(step), coefficients, threads).offset;
}

}  // namespace unkernel::cutplane
