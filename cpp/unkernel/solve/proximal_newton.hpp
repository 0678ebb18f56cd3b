// Proximal Newton for l1- and elastic-net-regularised losses, on stored columns.
//
// Problem   min_w  sum_jk [ l1 |w_jk| + l2/2 w_jk^2 ] + sum_i L_i(f_i),   f_ik = sum_j x_ij w_jk
//           (score_loss.hpp)
// Step      replaces the loss by its second-order model at the current scores. Minimises the model by
//           coordinate descent: soft-thresholded Newton steps, with columns in random order, until its
//           violation has fallen to a tenth (less accurately if that suffices for the requested gap). Then
//           runs a backtracking line search along the result (Yuan, Ho & Lin, An improved GLMNET for
//           l1-regularized logistic regression, JMLR 13, 2012). The squared hinge has a generalised second
//           derivative, which is zero for rows beyond their margin; the model ignores these rows. The descent
//           works on the entries of the columns or on the model's Hessian, whichever is cheaper, and moves
//           all nonzero weights together between passes (joint_moves.hpp). For several outputs, it works on
//           the entries and moves the weights of all outputs. Rough steps make only a few passes. The Hessian
//           takes up a changed curvature only after a change by more than a fifth.
// Damping   if line searches end early, the curvatures c_i of the model become c_i + t (max_i - c_i), with
//           max_i the largest possible curvature. t grows up to 1, where the model is an upper bound of the
//           loss and full steps always succeed. It falls again when full steps succeed.
// Shrink    the model of a step leaves out columns with w = 0 whose gradient is inside (-l1, l1), by more
//           than the largest violation.
// Stop      P - D <= the requested gap, for the primal objective P and the dual objective D. D is computed
//           from the gradients of the losses; if l2 = 0, these are scaled so that no column violates
//           |x_j'u| <= l1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/score_loss.hpp"
#include "unkernel/solve/sparse_columns.hpp"
#include "unkernel/solve/weighted_gram.hpp"

namespace unkernel::solve {

struct Penalty {
  double l1;
  double l2;
};

// Returns the best dual objective along scale * u. `strengths` lists the |x_j'u| that exceed l1, and
// `largest` is the largest |x_j'u|. If l2 > 0, a violated constraint costs (|x_j'u| - l1)^2 / (2 l2);
// otherwise no constraint may be violated.
double best_dual(const ScoreLoss& loss, std::span<const double> gradients, const Penalty& penalty,
                 std::span<const double> strengths, double largest);

class ProximalNewton {
 public:
  // Enough passes for the exact minimum of a step's model, in practice.
  static constexpr int all_passes = 500;

  // The caller may add columns later; their weights start at 0.
  ProximalNewton(const SparseColumns& columns, const ScoreLoss& loss, const Penalty& penalty,
                 std::uint64_t seed, int threads, Monitor& monitor);

  // Makes at most `most_steps` steps, until P - D <= `gap` for the current columns. Returns whether it
  // reached this gap. Each step minimises its model by at most `most_passes` passes over the columns.
  bool run(double gap, std::int64_t most_steps, int most_passes = all_passes);

  // Adds to the weight of a column for one output, and updates the scores.
  void add_weight(std::size_t column, std::size_t output, double weight);

  double objective() const { return objective_; }
  double dual_objective() const { return dual_objective_; }  // for the current columns
  std::int64_t steps() const { return steps_; }
  std::span<const double> weights(std::size_t output) const { return weights_[output]; }
  std::span<const double> scores() const { return scores_; }  // output-major
  // Returns dL/dw of all columns for one output at the last call of `evaluate`.
  std::span<const double> column_gradients(std::size_t output) const { return column_gradients_[output]; }
  // Returns dL/df of all outputs at the current scores, output-major.
  std::span<const double> gradients() const { return gradients_; }
  // Updates the objective, the gradients and, for the current columns, the dual objective.
  void evaluate();

 private:
  struct Model;  // the quadratic model of the active rows and columns
  class GramHessian;
  class EntryHessian;
  class ValueHessian;
  class UniformHessian;
  struct JointEffort {  // joint_moves.hpp
    bool is_thorough = false;
    double ridge = 1.0;
  };
  template <class Hessian>
  class JointMoves;

  std::span<const double> scores_of(std::size_t output) const {
    return {scores_.data() + output * rows_, rows_};
  }
  void resize_to_columns();
  double violation(std::size_t j, std::size_t output) const;
  double largest_violation() const;
  bool step(int most_passes);
  void choose_accuracy(double gap);
  void choose_columns(Model& model) const;
  bool is_gram_cheaper(const Model& model, int most_passes) const;
  std::vector<std::int32_t> number_rows(Model& model) const;
  void list_entries(Model& model) const;
  void copy_entries(Model& model, std::span<const std::int32_t> number_of_row) const;
  template <class Gradient, class AfterStep>
  void descend_in_passes(Model& model, int most_passes, const Gradient& gradient,
                         const AfterStep& after_step);
  template <class Hessian>
  void descend_with(Hessian& hessian, Model& model, int most_passes);
  void descend(Model& model, int most_passes);
  void descend_on_gram(Model& model, int most_passes);
  void descend_jointly(Model& model);
  double best_step(const Model& model, std::size_t j, double gradient) const;
  static void apply_step(Model& model, std::size_t j, double step);
  void damp();
  void adapt_damping(double length);
  double search_line(const Model& model);  // returns 0 if no step lowers the objective
  double penalty_of(double weight) const;
  double penalty_total() const;

  const SparseColumns& columns_;
  const ScoreLoss& loss_;
  Penalty penalty_;
  Random random_;
  int threads_;
  Monitor& monitor_;
  std::size_t rows_;
  WeightedGram gram_;
  std::vector<std::vector<double>> weights_;  // by output
  std::vector<double> scores_;
  std::vector<double> gradients_;
  std::vector<double> curvature_;  // with one output
  std::vector<double> largest_curvature_;
  double damping_ = 0.0;
  JointEffort joint_effort_;
  double model_accuracy_ = 0.1;                        // a model's violation must fall by this factor
  std::vector<std::vector<double>> column_gradients_;  // by output
  double objective_ = 0.0;
  double dual_objective_ = 0.0;
  std::int64_t steps_ = 0;
};

}  // namespace unkernel::solve
