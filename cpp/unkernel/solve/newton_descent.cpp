// Proximal Newton: coordinate descent on the quadratic model, over the entries of the columns.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "unkernel/base/gather.hpp"
#include "unkernel/solve/entry_hessians.hpp"
#include "unkernel/solve/joint_moves.hpp"
#include "unkernel/solve/newton_model.hpp"

namespace unkernel::solve {

// Returns whether descent on the Hessian, including the time to form it, takes fewer additions than descent
// over the entries.
bool ProximalNewton::is_gram_cheaper(const Model& model, int most_passes) const {
  const double usual_passes = std::min(most_passes, 50);
  constexpr double random_access = 2.0;  // takes the time of this many sequential accesses
  constexpr std::size_t most_columns = 4096;
  if (model.columns.size() > most_columns) return false;
  std::vector<std::int32_t> count(rows_, 0);
  for (const std::int32_t j : model.columns) {
    for (const std::int32_t row : columns_.rows(static_cast<std::size_t>(j)))
      ++count[static_cast<std::size_t>(row)];
  }
  double entries = 0.0;
  double pairs = 0.0;
  for (std::size_t i = 0; i < rows_; ++i) {
    if (curvature_[i] <= 0.0) continue;
    entries += count[i];
    pairs += 0.5 * count[i] * count[i];
  }
  const auto columns = static_cast<double>(model.columns.size());
  return random_access * pairs + usual_passes * 0.5 * columns * columns <
         usual_passes * random_access * 2.0 * entries;
}

// Sets model.row_curvature, and returns the number of each row in it, or -1 for rows without a curvature.
std::vector<std::int32_t> ProximalNewton::number_rows(Model& model) const {
  constexpr double negligible = 1e-10;  // of the largest curvature
  const double min_curvature = negligible * *std::max_element(curvature_.begin(), curvature_.end());
  std::vector<std::int32_t> number_of_row(rows_, -1);
  for (std::size_t i = 0; i < rows_; ++i) {
    if (curvature_[i] <= min_curvature) continue;
    number_of_row[i] = static_cast<std::int32_t>(model.row_curvature.size());
    model.row_curvature.push_back(curvature_[i]);
  }
  return number_of_row;
}

// Lists the entries of the model's columns. Uniform columns are only copied if many of their rows drop out.
void ProximalNewton::list_entries(Model& model) const {
  const std::vector<std::int32_t> number_of_row = number_rows(model);
  if (columns_.uniform() && 2 * model.row_curvature.size() > rows_) {
    model.row_curvature = curvature_;
    for (const std::int32_t j : model.columns)
      model.rows_of_columns.push_back(columns_.rows(static_cast<std::size_t>(j)));
  } else {
    copy_entries(model, number_of_row);
  }
  const bool uniform = columns_.uniform();
  for (std::size_t m = 0; m < model.columns.size(); ++m) {
    const auto ids = model.rows_of_columns[m];
    const double* values = uniform ? nullptr : model.values.data() + model.offsets[m];
    const double sum = sum_of_terms(ids.size(), [&](std::size_t k) {
      return uniform ? model.row_curvature[static_cast<std::size_t>(ids[k])] : values[k] * values[k];
    });
    const double scale = uniform ? columns_.scale(static_cast<std::size_t>(model.columns[m])) : 1.0;
    model.curvature[m] = scale * scale * sum;
  }
}

void ProximalNewton::copy_entries(Model& model, std::span<const std::int32_t> number_of_row) const {
  std::vector<double> roots;
  for (const double c : model.row_curvature) roots.push_back(std::sqrt(c));
  std::size_t entries = 0;
  for (const std::int32_t j : model.columns) entries += columns_.rows(static_cast<std::size_t>(j)).size();
  model.rows.reserve(entries);
  if (!columns_.uniform()) model.values.reserve(entries);
  for (const std::int32_t column : model.columns) {
    const auto j = static_cast<std::size_t>(column);
    const auto ids = columns_.rows(j);
    const double* x = columns_.values(j);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const std::int32_t row = number_of_row[static_cast<std::size_t>(ids[k])];
      if (row < 0) continue;
      model.rows.push_back(row);
      if (x != nullptr)
        model.values.push_back(columns_.scale(j) * x[k] * roots[static_cast<std::size_t>(row)]);
    }
    model.offsets.push_back(model.rows.size());
  }
  for (std::size_t m = 0; m < model.columns.size(); ++m) {
    model.rows_of_columns.push_back(
        std::span(model.rows).subspan(model.offsets[m], model.offsets[m + 1] - model.offsets[m]));
  }
}

// Returns the best step of a column, given the gradient of the loss at the current steps.
double ProximalNewton::best_step(const Model& model, std::size_t j, double gradient) const {
  const double weight = model.weights[j] + model.steps[j];
  const double curvature = model.curvature[j] + penalty_.l2 + tiny_ridge;
  const double slope = gradient + penalty_.l2 * weight + tiny_ridge * model.steps[j];
  if (slope + penalty_.l1 <= curvature * weight) return -(slope + penalty_.l1) / curvature;
  if (slope - penalty_.l1 >= curvature * weight) return -(slope - penalty_.l1) / curvature;
  return -weight;
}

// A step to 0 must end exactly at 0, because a weight that differs by a rounding error would count as
// nonzero.
void ProximalNewton::apply_step(Model& model, std::size_t j, double step) {
  const double weight = model.weights[j] + model.steps[j];
  model.steps[j] = step == -weight ? -model.weights[j] : model.steps[j] + step;
}

// Runs coordinate descent on the quadratic model in random order, until the optimality conditions are
// violated much less than in the first pass. `gradient` returns the current gradient of a column of the
// model; `after_step` is called after each step.
template <class Gradient, class AfterStep>
void ProximalNewton::descend_in_passes(Model& model, int most_passes, const Gradient& gradient,
                                       const AfterStep& after_step) {
  std::vector<std::size_t> order(model.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double first_violations = 0.0;
  for (int pass = 0; pass < most_passes; ++pass) {
    monitor_.throw_if_stopped();
    random_.shuffle(std::span(order));
    double violations = 0.0;
    for (const std::size_t m : order) {
      const double step = best_step(model, m, gradient(m));
      if (step == 0.0) continue;
      violations += (model.curvature[m] + penalty_.l2) * std::abs(step);
      apply_step(model, m, step);
      after_step(m, step);
    }
    if (pass == 0) first_violations = violations;
    if (violations <= model_accuracy_ * first_violations) return;
  }
}

void ProximalNewton::descend(Model& model, int most_passes) {
  list_entries(model);
  if (columns_.uniform()) {
    UniformHessian hessian(columns_, curvature_, model, threads_);
    descend_with(hessian, model, most_passes);
  } else {
    ValueHessian hessian(columns_, curvature_, model);
    descend_with(hessian, model, most_passes);
  }
}

// The Hessian of row i in its scores is diag(a) - a a'/n + e I, where e is the damping. Its product with
// score changes t is a_k (t_k - m) + e t_k for output k, where m = a't / n.
void ProximalNewton::descend_jointly(Model& model) {
  const std::size_t outputs = weights_.size();
  std::vector<double> a(rows_ * outputs), t(rows_ * outputs, 0.0), m(rows_, 0.0), e(rows_), n(rows_, 0.0);
  loss_.joint_curvatures(scores_, a);
  for (std::size_t i = 0; i < rows_; ++i) {
    for (std::size_t k = 0; k < outputs; ++k) n[i] += a[i * outputs + k];
    e[i] = 2.0 * damping_ * largest_curvature_[i];
    n[i] = i < loss_.coupled_rows() ? std::max(n[i], std::numeric_limits<double>::min())
                                    : std::numeric_limits<double>::infinity();
  }
  const auto over_entries = [&](std::size_t c, const auto& visit) {
    const auto j = static_cast<std::size_t>(model.columns[c]);
    const auto ids = columns_.rows(j);
    const double* x = columns_.values(j);
    const double scale = columns_.scale(j);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const auto i = static_cast<std::size_t>(ids[k]);
      visit(i, i * outputs + model.outputs[c], x != nullptr ? scale * x[k] : scale);
    }
  };
  for (std::size_t c = 0; c < model.columns.size(); ++c) {
    over_entries(c, [&](std::size_t i, std::size_t place, double x) {
      model.curvature[c] += x * x * (a[place] * (1.0 - a[place] / n[i]) + e[i]);
    });
  }
  descend_in_passes(
      model, 100,
      [&](std::size_t c) {
        double gradient = model.gradient[c];
        over_entries(c, [&](std::size_t i, std::size_t place, double x) {
          gradient += x * (a[place] * (t[place] - m[i]) + e[i] * t[place]);
        });
        return gradient;
      },
      [&](std::size_t c, double step) {
        over_entries(c, [&](std::size_t i, std::size_t place, double x) {
          t[place] += step * x;
          m[i] += step * x * a[place] / n[i];
        });
      });
}

}  // namespace unkernel::solve
