// Proximal Newton: coordinate descent on the quadratic model, over the entries of the columns.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "unkernel/base/gather.hpp"
#include "unkernel/solve/joint_moves.hpp"
#include "unkernel/solve/newton_model.hpp"

namespace unkernel::solve {

// Compares the additions to form and use the Hessian with those of as many passes over the entries.
bool ProximalNewton::gram_pays(const Model& model) const {
  constexpr double usual_passes = 50.0;
  constexpr double scattered = 2.0;  // a random access takes as long as this many sequential ones
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
  return scattered * pairs + usual_passes * 0.5 * columns * columns <
         usual_passes * scattered * 2.0 * entries;
}

void ProximalNewton::store_entries(Model& model) const {
  constexpr double negligible = 1e-10;  // of the largest curvature
  const double least = negligible * *std::max_element(curvature_.begin(), curvature_.end());
  std::vector<std::int32_t> number(rows_, -1);
  std::vector<double> roots;
  for (std::size_t i = 0; i < rows_; ++i) {
    if (curvature_[i] <= least) continue;
    number[i] = static_cast<std::int32_t>(roots.size());
    roots.push_back(std::sqrt(curvature_[i]));
  }
  for (std::size_t m = 0; m < model.columns.size(); ++m) {
    const auto j = static_cast<std::size_t>(model.columns[m]);
    const auto ids = columns_.rows(j);
    const double* x = columns_.values(j);
    const double scale = columns_.scale(j);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const std::int32_t row = number[static_cast<std::size_t>(ids[k])];
      if (row < 0) continue;
      const double value = scale * (x != nullptr ? x[k] : 1.0) * roots[static_cast<std::size_t>(row)];
      model.rows.push_back(row);
      model.values.push_back(value);
      model.curvature[m] += value * value;
    }
    model.offsets.push_back(model.rows.size());
  }
  model.residual.assign(roots.size(), 0.0);
}

// The best step of a column, given the gradient of the loss at the current steps.
double ProximalNewton::best_step(const Model& model, std::size_t j, double gradient) const {
  const double weight = model.weights[j] + model.steps[j];
  const double curvature = model.curvature[j] + penalty_.l2 + ridge;
  const double slope = gradient + penalty_.l2 * weight + ridge * model.steps[j];
  if (slope + penalty_.l1 <= curvature * weight) return -(slope + penalty_.l1) / curvature;
  if (slope - penalty_.l1 >= curvature * weight) return -(slope - penalty_.l1) / curvature;
  return -weight;
}

// A step to 0 ends there exactly: a weight that rounding leaves would count as one that is used.
void ProximalNewton::take(Model& model, std::size_t j, double step) {
  const double weight = model.weights[j] + model.steps[j];
  model.steps[j] = step == -weight ? -model.weights[j] : model.steps[j] + step;
}

// Coordinate descent on the quadratic model in random order, until a pass violates the optimality conditions
// much less than the first one. `gradient` returns the current gradient of a member; `moved` is called after
// each step.
template <class Gradient, class Moved>
void ProximalNewton::descend_in_passes(Model& model, int most_passes, const Gradient& gradient,
                                       const Moved& moved) {
  std::vector<std::size_t> order(model.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double first = 0.0;
  for (int pass = 0; pass < most_passes; ++pass) {
    monitor_.throw_if_stopped();
    random_.shuffle(std::span(order));
    double violations = 0.0;
    for (const std::size_t m : order) {
      const double step = best_step(model, m, gradient(m));
      if (step == 0.0) continue;
      violations += (model.curvature[m] + penalty_.l2) * std::abs(step);
      take(model, m, step);
      moved(m, step);
    }
    if (pass == 0) first = violations;
    if (violations <= model_accuracy * first) return;
  }
}

// The entries of the columns, each times the root of its row's curvature: H = V'V.
class ProximalNewton::EntryHessian {
 public:
  explicit EntryHessian(Model& model) : model_(model) {}

  double gradient(std::size_t j) const { return model_.gradient[j] + sum_over(j, model_.residual); }
  void move(std::size_t j, double step) { add(j, step, model_.residual); }

  void multiply(std::span<const std::size_t> support, std::span<const double> direction,
                std::span<double> product) {
    product_.assign(model_.residual.size(), 0.0);
    for (std::size_t k = 0; k < support.size(); ++k) add(support[k], direction[k], product_);
    for (std::size_t k = 0; k < support.size(); ++k) product[k] = sum_over(support[k], product_);
  }
  void move_by_product() {
    for (std::size_t i = 0; i < product_.size(); ++i) model_.residual[i] += product_[i];
  }

 private:
  double sum_over(std::size_t j, const std::vector<double>& rows) const {
    const std::size_t begin = model_.offsets[j];
    return gather<false>(rows.data(), model_.rows.data() + begin, model_.values.data() + begin,
                         model_.offsets[j + 1] - begin);
  }
  void add(std::size_t j, double step, std::vector<double>& rows) const {
    const std::size_t begin = model_.offsets[j];
    scatter<false>(rows.data(), model_.rows.data() + begin, model_.values.data() + begin,
                   model_.offsets[j + 1] - begin, step);
  }

  Model& model_;
  std::vector<double> product_;  // the last one, by row
};

void ProximalNewton::descend(Model& model) {
  store_entries(model);
  EntryHessian hessian(model);
  descend_with(hessian, model, 100);
}

// Makes a few passes over the columns in place, without preparing the Hessian or the entries.
void ProximalNewton::descend_in_place(Model& model) {
  std::vector<double> change(rows_, 0.0);  // of the gradients
  const auto visit = [&](auto uniform) {
    constexpr bool ones = decltype(uniform)::value;
    for (std::size_t m = 0; m < model.columns.size(); ++m) {
      const auto j = static_cast<std::size_t>(model.columns[m]);
      const auto ids = columns_.rows(j);
      const double* x = columns_.values(j);
      const double sum = sum_of_terms(ids.size(), [&](std::size_t k) {
        const double c = curvature_[static_cast<std::size_t>(ids[k])];
        return ones ? c : c * x[k] * x[k];
      });
      model.curvature[m] = columns_.scale(j) * columns_.scale(j) * sum;
    }
    descend_in_passes(
        model, 6,
        [&](std::size_t m) {
          return model.gradient[m] + columns_.dot(static_cast<std::size_t>(model.columns[m]), change.data());
        },
        [&](std::size_t m, double step) {
          const auto j = static_cast<std::size_t>(model.columns[m]);
          const auto ids = columns_.rows(j);
          const double* x = columns_.values(j);
          const double scaled = step * columns_.scale(j);
          for (std::size_t k = 0; k < ids.size(); ++k) {
            const auto i = static_cast<std::size_t>(ids[k]);
            change[i] += scaled * curvature_[i] * (ones ? 1.0 : x[k]);
          }
        });
  };
  columns_.uniform() ? visit(std::true_type{}) : visit(std::false_type{});
}

// The Hessian of row i in its scores is diag(a) - a a'/n + e I, e the damping: its product with the row's
// changes t is a_k (t_k - m) + e t_k, m = a't / n.
void ProximalNewton::descend_jointly(Model& model) {
  const std::size_t outputs = weights_.size();
  std::vector<double> a(rows_ * outputs), t(rows_ * outputs, 0.0), m(rows_, 0.0), e(rows_), n(rows_, 0.0);
  loss_.joint_curvatures(scores_, a);
  for (std::size_t i = 0; i < rows_; ++i) {
    for (std::size_t k = 0; k < outputs; ++k) n[i] += a[i * outputs + k];
    e[i] = 2.0 * damping_ * largest_curvature_[i];
    n[i] = std::max(n[i], std::numeric_limits<double>::min());
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
