// A local model of the loss of all rows: exact for the rows of one part, quadratic in each weight for all
// other rows.
//
// Each part has some of the rows and all columns. Let g and h be the gradient and the curvatures of the loss
// of all rows at weights w0, and let g_k and h_k be those of the loss L_k of part k. The part's model of the
// loss is
//
//   s L_k(w) + sum_j [ (g - s g_k)_j (w_j - w0_j) + d_j/2 (w_j - w0_j)^2 ],      s = sum(h) / sum(h_k),
//
// with d = h - s h_k, or a small number if that is larger: d is the curvature that the part lacks. The
// gradient of the model at w0 is the gradient of the loss of all rows, so weights that lower the model plus a
// penalty give a descent direction for all rows (Shamir, Srebro & Zhang, Communication-efficient distributed
// optimization using an approximate Newton-type method, ICML 2014).
//
// An update of a model uses the same terms for rows that are not available any more.
//
// The sum over j acts as the loss of additional rows, the *anchors*: the score of row n + j depends only on
// weight j, and is c_j w_j.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "unkernel/solve/score_loss.hpp"

namespace unkernel::solve {

// The loss of one anchor and output: slope (f - centre) + curvature/2 (f - centre)^2 at score f.
struct Anchor {
  double slope;
  double curvature;
  double centre;

  // Returns min_t [slope (t - centre) + curvature/2 (t - centre)^2 + u t].
  double dual(double u) const;
};

class AnchoredLoss : public ScoreLoss {
 public:
  explicit AnchoredLoss(std::unique_ptr<ScoreLoss> part_loss) : part_loss_(std::move(part_loss)) {}

  // Sets the factor s of the part's loss, and the anchors, which are output-major like scores.
  void set(double part_factor, std::size_t count, std::vector<Anchor>&& anchors);

  std::size_t part_rows() const { return part_loss_->rows(); }
  const Anchor& anchor(std::size_t output, std::size_t j) const { return anchors_[output * count_ + j]; }
  // Returns the dual of the part's rows alone.
  double part_dual(std::span<const double> gradients, double scale) const;

  std::size_t rows() const override { return part_loss_->rows() + count_; }
  std::size_t outputs() const override { return part_loss_->outputs(); }
  std::size_t coupled_rows() const override { return part_loss_->rows(); }
  double value(std::span<const double> scores) const override;
  void derivatives(std::span<const double> scores, std::size_t output, std::span<double> gradient,
                   std::span<double> curvature) const override;
  void wide_curvatures(std::span<const double> scores, std::size_t output,
                       std::span<double> curvature) const override;
  void largest_curvatures(std::span<double> curvature) const override;
  void joint_curvatures(std::span<const double> scores, std::span<double> a) const override;
  double value_along(std::span<const double> scores, std::span<const double> direction,
                     double step) const override;
  double dual(std::span<const double> gradients, double scale) const override;

 private:
  std::vector<double> select_part_rows(std::span<const double> scores) const;

  std::unique_ptr<ScoreLoss> part_loss_;
  double factor_ = 1.0;
  std::size_t count_ = 0;
  std::vector<Anchor> anchors_;
};

}  // namespace unkernel::solve
