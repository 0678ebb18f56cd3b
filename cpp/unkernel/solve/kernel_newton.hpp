// Newton's method for l2-regularised smooth losses over a row view.
//
// Problem   min_w  1/2 sum_k |w_k|^2 + sum_i L_i(f_i),   f_ik = w_k'phi(x_i) (score_loss.hpp)
// Space     w_k = sum_i u_ik phi(x_i), so all vectors have one number per row and output. The product K u
//           takes two passes: the first adds rows to a weight vector, the second computes inner products of
//           rows with this vector. The kernel matrix K is never formed.
// Step      (I + DK) d = -(u + L'(f)), with D the Hessian of the loss in the scores, solved by conjugate
//           gradients in the inner product a'Kb, in which I + DK is symmetric; one pass per iteration. Then a
//           backtracking line search. With one output and no pull, a step may show that factoring a matrix
//           over rows or columns takes less time than these iterations (system_plan.hpp). All later steps do
//           that.
// Stop      (P - D) / P <= tolerance, where P is the objective and D the dual objective at u = -L'(f):
//           sum_i g_i(u_i) - 1/2 u'Ku.
// Pull      With a pull, the penalty of weight j is 1/2 (w_j - m_j)^2 / s_j instead of w_j^2 / 2. Then
//           w_j = m_j + s_j (sum_i u_i phi(x_i))_j, the kernel has a factor s_j per column, and
//           o_i = m'phi(x_i) is added to each score. The dual objective contains the additional term -u'o.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/solve/dual_problem.hpp"
#include "unkernel/solve/normal_system.hpp"
#include "unkernel/solve/row_passes.hpp"
#include "unkernel/solve/score_loss.hpp"

namespace unkernel::solve {

// The pull of weights to m, in the terms of a view's score space (row_view.hpp). All vectors are
// output-major.
struct Pull {
  std::vector<double> offsets;  // o, by row
  std::vector<double> factors;  // s, by column
  double constant;              // is added to the objective, so that a gap relative to it makes sense
};

// What the matrix of a Newton system may use.
struct MatrixLimits {
  int threads;
  double memory;  // bytes; 0 for no limit
};

class KernelNewton {
 public:
  // `coefficients` is the initial u, output-major: one number per row for each output.
  KernelNewton(const RowPasses& rows, const ScoreLoss& loss, std::vector<double> coefficients,
               std::size_t dimension, const MatrixLimits& limits, Monitor& monitor);
  // Starts from u = 0, the weights m.
  KernelNewton(const RowPasses& rows, const ScoreLoss& loss, Pull pull, std::size_t dimension,
               Monitor& monitor);

  Outcome run(double tolerance, std::int64_t most_steps, Progress progress);

  std::span<const double> coefficients(std::size_t output) const {
    return std::span(u_).subspan(output * loss_.rows(), loss_.rows());
  }
  std::span<const double> scores() const { return f_; }  // output-major

 private:
  double offset_times(const std::vector<double>& a) const;  // a'o
  std::vector<double> kernel_times(const std::vector<double>& a);
  std::vector<double> multiply_by_curvature(const std::vector<double>& v) const;
  bool step(std::vector<double> r, std::vector<double> Kr, double objective);
  bool step_by_factoring(const std::vector<double>& r, double objective);
  void choose_system(int rounds);
  bool search_line(const std::vector<double>& d, const std::vector<double>& Kd, double slope,
                   double objective);

  const RowPasses& rows_;
  const ScoreLoss& loss_;
  Monitor& monitor_;
  Pull pull_{{}, {}, 0.0};                // empty for none
  std::vector<double> u_, f_, g_;         // coefficients u, scores f = Ku + o, gradients dL/df
  std::vector<double> curvature_;         // for one output
  std::vector<double> joint_;             // for several outputs
  LargeArray<double> buffer_;             // a weight vector
  std::optional<MatrixLimits> limits_;    // none if only conjugate gradients are possible
  std::unique_ptr<NormalSystem> system_;  // null for conjugate gradients
};

}  // namespace unkernel::solve
