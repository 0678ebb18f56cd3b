// Stops scoring early for callers that need only the decision: the index of the largest score, or the sign of
// a single score. Scoring stops once the remaining owners of a row cannot change the decision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace unkernel::engines {

// Bounds of a contribution to a score.
template <class Number>
struct Bounds {
  Number low = 0;   // at most 0
  Number high = 0;  // at least 0

  void add(Number weight) { (weight < 0 ? low : high) += weight; }
};

// Bounds, for each owner of a row, what this and all later owners contribute to each score.
template <class Number>
class RemainingBounds {
 public:
  // Computes the bounds. bounds_of(i) returns the bounds of the i-th owner, one per score; factor(i)
  // multiplies them.
  template <class BoundsOf, class Factor>
  void compute(std::size_t owners, std::size_t scores, const BoundsOf& bounds_of, const Factor& factor) {
    scores_ = scores;
    bounds_.assign((owners + 1) * scores, {});
    for (std::size_t i = owners; i-- > 0;) {
      const Bounds<Number>* bounds = bounds_of(i);
      const Bounds<Number>* later = from(i + 1);
      Bounds<Number>* target = bounds_.data() + i * scores;
      const Number multiplier = factor(i);
      for (std::size_t s = 0; s < scores; ++s)
        target[s] = {later[s].low + multiplier * bounds[s].low, later[s].high + multiplier * bounds[s].high};
    }
  }

  // Returns the bounds of this and all later owners, one per score.
  const Bounds<Number>* from(std::size_t owner) const { return bounds_.data() + owner * scores_; }

 private:
  std::size_t scores_ = 0;
  std::vector<Bounds<Number>> bounds_;
};

// Returns whether no contribution within these bounds can change the decision. Allows for rounding errors in
// sums of doubles.
inline bool is_decided(std::span<const double> scores, const Bounds<double>* remaining) {
  const auto is_surely_positive = [](double least, double magnitude) {
    constexpr double max_relative_error = 1e-9;
    return least - max_relative_error * (std::abs(least) + magnitude) > 0;
  };
  if (scores.size() == 1) {
    const double range = remaining[0].high - remaining[0].low;
    return is_surely_positive(scores[0] + remaining[0].low, range) ||
           is_surely_positive(-scores[0] - remaining[0].high, range);
  }
  const auto best = static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
  for (std::size_t s = 0; s < scores.size(); ++s) {
    if (s == best) continue;
    const double least = scores[best] - scores[s] + (remaining[best].low - remaining[s].high);
    const double magnitude = remaining[best].high - remaining[best].low + remaining[s].high -
                             remaining[s].low + std::abs(scores[best]) + std::abs(scores[s]);
    if (!is_surely_positive(least, magnitude)) return false;
  }
  return true;
}

}  // namespace unkernel::engines
