#include "unkernel/cutplane/oracle.hpp"

#include "unkernel/base/gather.hpp"

namespace unkernel::cutplane {

void JointOracle::face(std::span<const double> current, std::span<const double> proposed) {
  current_scores_ = current;
  proposed_scores_ = proposed;
}

std::span<const double> JointOracle::scores_at(double step) {
  if (step == 0.0) return current_scores_;
  if (step == 1.0) return proposed_scores_;
  scores_.resize(current_scores_.size());
  for (std::size_t i = 0; i < scores_.size(); ++i)
    scores_[i] = current_scores_[i] + step * (proposed_scores_[i] - current_scores_[i]);
  return scores_;
}

solve::LinePoint JointOracle::along(double step, int threads) {
  const std::span<const double> scores = scores_at(step);
  coefficients_.resize(scores.size());
  const Evaluation result = evaluate(scores, coefficients_, threads);
  const double* const c = coefficients_.data();
  return {result.uncertainty + result.offset -
              sum_of_terms(scores.size(), [&](std::size_t i) { return c[i] * scores[i]; }),
          -sum_of_terms(scores.size(),
                        [&](std::size_t i) { return c[i] * (proposed_scores_[i] - current_scores_[i]); })};
}

double JointOracle::cut(double step, std::span<double> coefficients, int threads) {
  return evaluate(scores_at(step), coefficients, threads).offset;
}

}  // namespace unkernel::cutplane
