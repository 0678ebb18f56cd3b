#include "unkernel/solve/anchored_loss.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace unkernel::solve {
namespace {

double anchored_value(const Anchor& anchor, double f) {
  const double away = f - anchor.centre;
  return anchor.slope * f + 0.5 * anchor.curvature * away * away;
}

// Returns min_t [slope t + curvature/2 (t - centre)^2 + u t].
double anchored_dual(const Anchor& anchor, double u) {
  const double slope = anchor.slope + u;
  if (slope == 0.0) return 0.0;
  if (anchor.curvature == 0.0) return -std::numeric_limits<double>::infinity();
  return slope * anchor.centre - 0.5 * slope * slope / anchor.curvature;
}

}  // namespace

void AnchoredLoss::set(double own_factor, std::size_t count, std::vector<Anchor>&& anchors) {
  factor_ = own_factor;
  count_ = count;
  anchors_ = std::move(anchors);
}

std::vector<double> AnchoredLoss::of_own_rows(std::span<const double> scores) const {
  std::vector<double> own;
  own.reserve(own_rows() * outputs());
  for (std::size_t k = 0; k < outputs(); ++k) {
    const auto of_output = scores.subspan(k * rows(), own_rows());
    own.insert(own.end(), of_output.begin(), of_output.end());
  }
  return own;
}

double AnchoredLoss::value(std::span<const double> scores) const {
  double total = factor_ * own_->value(of_own_rows(scores));
  for (std::size_t k = 0; k < outputs(); ++k) {
    for (std::size_t j = 0; j < count_; ++j)
      total += anchored_value(anchor(k, j), scores[k * rows() + own_rows() + j]);
  }
  return total;
}

void AnchoredLoss::derivatives(std::span<const double> scores, std::size_t output, std::span<double> gradient,
                               std::span<double> curvature) const {
  own_->derivatives(of_own_rows(scores), output, gradient.first(own_rows()), curvature.first(own_rows()));
  for (std::size_t i = 0; i < own_rows(); ++i) {
    gradient[i] *= factor_;
    curvature[i] *= factor_;
  }
  for (std::size_t j = 0; j < count_; ++j) {
    const Anchor& a = anchor(output, j);
    const std::size_t row = own_rows() + j;
    gradient[row] = a.slope + a.curvature * (scores[output * rows() + row] - a.centre);
    curvature[row] = a.curvature;
  }
}

void AnchoredLoss::largest_curvatures(std::span<double> curvature) const {
  own_->largest_curvatures(curvature.first(own_rows()));
  for (std::size_t i = 0; i < own_rows(); ++i) curvature[i] *= factor_;
  for (std::size_t j = 0; j < count_; ++j) {
    double largest = 0.0;
    for (std::size_t k = 0; k < outputs(); ++k) largest = std::max(largest, anchor(k, j).curvature);
    curvature[own_rows() + j] = largest;
  }
}

void AnchoredLoss::joint_curvatures(std::span<const double> scores, std::span<double> a) const {
  const std::size_t own = own_rows() * outputs();
  own_->joint_curvatures(of_own_rows(scores), a.first(own));
  for (std::size_t place = 0; place < own; ++place) a[place] *= factor_;
  for (std::size_t j = 0; j < count_; ++j) {
    for (std::size_t k = 0; k < outputs(); ++k) a[own + j * outputs() + k] = anchor(k, j).curvature;
  }
}

double AnchoredLoss::value_along(std::span<const double> scores, std::span<const double> direction,
                                 double step) const {
  std::vector<double> there(scores.begin(), scores.end());
  for (std::size_t i = 0; i < there.size(); ++i) there[i] += step * direction[i];
  return value(there);
}

double AnchoredLoss::dual(std::span<const double> gradients, double scale) const {
  std::vector<double> own = of_own_rows(gradients);
  if (factor_ > 0.0) {
    for (double& gradient : own) gradient /= factor_;
  }
  double total = factor_ * own_->dual(own, scale);
  for (std::size_t k = 0; k < outputs(); ++k) {
    for (std::size_t j = 0; j < count_; ++j)
      total += anchored_dual(anchor(k, j), -scale * gradients[k * rows() + own_rows() + j]);
  }
  return total;
}

}  // namespace unkernel::solve
