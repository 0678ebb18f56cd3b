#include "unkernel/poly/old_model.hpp"

#include <algorithm>
#include <cmath>

namespace unkernel::poly {

using kernels::Key;
using solve::Anchor;

double OldRows::weight(Key key, std::size_t place) const {
  if (key == 0) return model_.intercept[score_];
  return place == no_place ? 0.0 : model_.weights[place * model_.scores() + score_];
}

double OldRows::curvature(Key key, std::size_t place) const {
  if (key == 0) return model_.intercept_curvatures[score_];
  if (place != no_place) return model_.conjunction_curvatures[place * model_.scores() + score_];
  // Without l1, every conjunction of the old rows has a weight.
  return penalty_.l1 > 0.0 ? estimated_curvature(key) : 0.0;
}

double OldRows::estimated_curvature(Key key) const {
  const double total = model_.intercept_curvatures[score_];
  if (total <= 0.0) return 0.0;
  const kernels::Conjunction conjunction = index_.decode(key);
  double estimate = total;
  for (int k = 0; k < conjunction.size; ++k) {
    const std::size_t place = conjunction.ranks[k] * model_.scores() + score_;
    if (place >= model_.feature_curvatures.size()) return 0.0;
    estimate *= model_.feature_curvatures[place] / total;
  }
  return estimate;
}

// A weight without curvature has no slope: its rows had no loss, or rounding made it 0.
double OldRows::slope(Key key, std::size_t place, double constant) const {
  const double old_weight = weight(key, place);
  if (curvature(key, place) == 0.0) return 0.0;
  if (old_weight != 0.0) {
    return -(std::copysign(penalty_.l1 / constant, old_weight) +
             penalty_.l2 * old_weight / (constant * constant));
  }
  const kernels::Conjunction conjunction = index_.decode(key);
  if (conjunction.size != 1) return 0.0;
  const double limit = penalty_.l1 / constant;  // beyond it, the feature would have a weight
  return std::clamp(model_.feature_slopes[conjunction.ranks[0] * model_.scores() + score_], -limit, limit);
}

Anchor OldRows::anchor(Key key, std::size_t place, double constant) const {
  return {model_.kept * slope(key, place, constant), model_.kept * curvature(key, place), weight(key, place)};
}

double OldRows::value(Key key, std::size_t place, double constant, double weight) const {
  const Anchor loss = anchor(key, place, constant);
  const double distance = weight - loss.centre;
  return penalty_.l1 * std::abs(weight) / constant +
         0.5 * penalty_.l2 * weight * weight / (constant * constant) +
         (loss.slope + 0.5 * loss.curvature * distance) * distance;
}

double OldRows::best_alone(Key key, std::size_t place, double constant) const {
  const double old_weight = weight(key, place);
  if (model_.kept == 1.0 || constant == 0.0) return old_weight;
  const Anchor loss = anchor(key, place, constant);
  const double pull = loss.curvature * old_weight - loss.slope;
  const double strength = std::max(std::abs(pull) - penalty_.l1 / constant, 0.0);
  if (strength == 0.0) return 0.0;
  return std::copysign(strength / (loss.curvature + penalty_.l2 / (constant * constant)), pull);
}

}  // namespace unkernel::poly
