#include "unkernel/solve/anchored_loss.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace unkernel::solve {
namespace {

double anchored_value(const Anchor& anchor, double f) {
  const double distance = f - anchor.centre;
  return (anchor.slope + 0.5 * anchor.curvature * distance) * distance;
}

}  // namespace

double Anchor::dual(double u) const {
  const double total_slope = slope + u;
  if (total_slope == 0.0) return u * centre;
  if (curvature == 0.0) return -std::numeric_limits<double>::infinity();
  return u * centre - 0.5 * total_slope * total_slope / curvature;
}

void AnchoredLoss::set(double part_factor, std::size_t count, std::vector<Anchor>&& anchors) {
  factor_ = part_factor;
  count_ = count;
  anchors_ = std::move(anchors);
}

std::vector<double> AnchoredLoss::select_part_rows(std::span<const double> scores) const {
  std::vector<double> part_scores;
  part_scores.reserve(part_rows() * outputs());
  for (std::size_t k = 0; k < outputs(); ++k) {
    const auto of_output = scores.subspan(k * rows(), part_rows());
    part_scores.insert(part_scores.end(), of_output.begin(), of_output.end());
  }
  return part_scores;
}

double AnchoredLoss::value(std::span<const double> scores) const {
  double total = factor_ * part_loss_->value(select_part_rows(scores));
  for (std::size_t k = 0; k < outputs(); ++k) {
    for (std::size_t j = 0; j < count_; ++j)
      total += anchored_value(anchor(k, j), scores[k * rows() + part_rows() + j]);
  }
  return total;
}

void AnchoredLoss::derivatives(std::span<const double> scores, std::size_t output, std::span<double> gradient,
                               std::span<double> curvature) const {
  part_loss_->derivatives(select_part_rows(scores), output, gradient.first(part_rows()),
                          curvature.first(part_rows()));
  for (std::size_t i = 0; i < part_rows(); ++i) {
    gradient[i] *= factor_;
    curvature[i] *= factor_;
  }
  for (std::size_t j = 0; j < count_; ++j) {
    const Anchor& a = anchor(output, j);
    const std::size_t row = part_rows() + j;
    gradient[row] = a.slope + a.curvature * (scores[output * rows() + row] - a.centre);
    curvature[row] = a.curvature;
  }
}

void AnchoredLoss::wide_curvatures(std::span<const double> scores, std::size_t output,
                                   std::span<double> curvature) const {
  part_loss_->wide_curvatures(select_part_rows(scores), output, curvature.first(part_rows()));
  for (std::size_t i = 0; i < part_rows(); ++i) curvature[i] *= factor_;
  for (std::size_t j = 0; j < count_; ++j) curvature[part_rows() + j] = anchor(output, j).curvature;
}

void AnchoredLoss::largest_curvatures(std::span<double> curvature) const {
  part_loss_->largest_curvatures(curvature.first(part_rows()));
  for (std::size_t i = 0; i < part_rows(); ++i) curvature[i] *= factor_;
  for (std::size_t j = 0; j < count_; ++j) {
    double largest = 0.0;
    for (std::size_t k = 0; k < outputs(); ++k) largest = std::max(largest, anchor(k, j).curvature);
    curvature[part_rows() + j] = largest;
  }
}

void AnchoredLoss::joint_curvatures(std::span<const double> scores, std::span<double> a) const {
  const std::size_t part_size = part_rows() * outputs();
  part_loss_->joint_curvatures(select_part_rows(scores), a.first(part_size));
  for (std::size_t place = 0; place < part_size; ++place) a[place] *= factor_;
  for (std::size_t j = 0; j < count_; ++j) {
    for (std::size_t k = 0; k < outputs(); ++k) a[part_size + j * outputs() + k] = anchor(k, j).curvature;
  }
}

double AnchoredLoss::value_along(std::span<const double> scores, std::span<const double> direction,
                                 double step) const {
  std::vector<double> moved_scores(scores.begin(), scores.end());
  for (std::size_t i = 0; i < moved_scores.size(); ++i) moved_scores[i] += step * direction[i];
  return value(moved_scores);
}

double AnchoredLoss::part_dual(std::span<const double> gradients, double scale) const {
  std::vector<double> part_gradients = select_part_rows(gradients);
  if (factor_ > 0.0) {
    for (double& gradient : part_gradients) gradient /= factor_;
  }
  return factor_ * part_loss_->dual(part_gradients, scale);
}

double AnchoredLoss::dual(std::span<const double> gradients, double scale) const {
  double total = part_dual(gradients, scale);
  for (std::size_t k = 0; k < outputs(); ++k) {
    for (std::size_t j = 0; j < count_; ++j)
      total += anchor(k, j).dual(-scale * gradients[k * rows() + part_rows() + j]);
  }
  return total;
}

}  // namespace unkernel::solve
