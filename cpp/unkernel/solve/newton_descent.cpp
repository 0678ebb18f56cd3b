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

// Returns whether descent on the Hessian, including the time to form it, takes fewer additions than descent
// over the entries.
bool ProximalNewton::is_gram_cheaper(const Model& model) const {
  constexpr double usual_passes = 50.0;
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

void ProximalNewton::store_entries(Model& model) const {
  constexpr double negligible = 1e-10;  // of the largest curvature
  const double min_curvature = negligible * *std::max_element(curvature_.begin(), curvature_.end());
  std::vector<std::int32_t> number_of_row(rows_, -1);
  std::vector<double> roots;
  for (std::size_t i = 0; i < rows_; ++i) {
    if (curvature_[i] <= min_curvature) continue;
    number_of_row[i] = static_cast<std::int32_t>(roots.size());
    roots.push_back(std::sqrt(curvature_[i]));
    model.row_curvature.push_back(curvature_[i]);
  }
  for (std::size_t m = 0; m < model.columns.size(); ++m) {
    const auto j = static_cast<std::size_t>(model.columns[m]);
    const auto ids = columns_.rows(j);
    const double* x = columns_.values(j);
    const double scale = columns_.scale(j);
    double sum = 0.0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const std::int32_t row = number_of_row[static_cast<std::size_t>(ids[k])];
      if (row < 0) continue;
      model.rows.push_back(row);
      if (x == nullptr) {
        sum += scale * scale * model.row_curvature[static_cast<std::size_t>(row)];
      } else {
        const double value = scale * x[k] * roots[static_cast<std::size_t>(row)];
        model.values.push_back(value);
        sum += value * value;
      }
    }
    model.curvature[m] = sum;
    model.offsets.push_back(model.rows.size());
  }
  model.residual.assign(roots.size(), 0.0);
}

// Returns the best step of a column, given the gradient of the loss at the current steps.
double ProximalNewton::best_step(const Model& model, std::size_t j, double gradient) const {
  const double weight = model.weights[j] + model.steps[j];
  const double curvature = model.curvature[j] + penalty_.l2 + ridge;
  const double slope = gradient + penalty_.l2 * weight + ridge * model.steps[j];
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

// Computes products with the Hessian H = X'CX from the entries of the columns X, where C is the diagonal of
// the rows' curvatures. Columns that are not uniform store V = sqrt(C) X, and H = V'V. Uniform columns store
// no values, and their residual is C X d.
template <bool Uniform>
class ProximalNewton::EntryHessian {
 public:
  EntryHessian(const SparseColumns& columns, std::span<const double> curvature, Model& model)
      : columns_(columns), curvature_(curvature), model_(model) {}

  double gradient(std::size_t j) const { return model_.gradient[j] + sum_over(j, model_.residual); }
  void move(std::size_t j, double step) {
    if constexpr (Uniform) {
      const double scaled = step * scale(j);
      for (std::size_t k = model_.offsets[j]; k < model_.offsets[j + 1]; ++k) {
        const auto i = static_cast<std::size_t>(model_.rows[k]);
        model_.residual[i] += scaled * model_.row_curvature[i];
      }
    } else {
      add(j, step, model_.residual);
    }
  }

  // Returns the largest number of heavy columns whose Hessian costs no more to form than a few products with
  // the whole support.
  std::size_t heavy_columns(std::span<const std::size_t> support) const {
    constexpr double most_products = 20.0;
    double entries = 0.0;
    for (const std::size_t j : support)
      entries += static_cast<double>(model_.offsets[j + 1] - model_.offsets[j]);
    const double columns_of_a_row = entries / static_cast<double>(model_.residual.size());
    const double share = 4.0 * most_products / std::max(columns_of_a_row, 1.0);
    return share >= 1.0 ? most_heavy_columns : static_cast<std::size_t>(share * most_heavy_columns);
  }
  void fill_gram(WeightedGram& gram, std::span<const std::int32_t> columns) const {
    constexpr double slack = 0.2;  // a preconditioner needs no more accuracy
    gram.update(columns, curvature_, slack);
  }

  void multiply(std::span<const std::size_t> support, std::span<const double> direction,
                std::span<double> product) {
    product_.assign(model_.residual.size(), 0.0);
    for (std::size_t k = 0; k < support.size(); ++k) add(support[k], direction[k], product_);
    if constexpr (Uniform) {
      for (std::size_t i = 0; i < product_.size(); ++i) product_[i] *= model_.row_curvature[i];
    }
    for (std::size_t k = 0; k < support.size(); ++k) product[k] = sum_over(support[k], product_);
  }
  void move_by_product() {
    for (std::size_t i = 0; i < product_.size(); ++i) model_.residual[i] += product_[i];
  }

 private:
  double scale(std::size_t j) const {
    return Uniform ? columns_.scale(static_cast<std::size_t>(model_.columns[j])) : 1.0;
  }
  const double* values(std::size_t j) const {
    return Uniform ? nullptr : model_.values.data() + model_.offsets[j];
  }
  double sum_over(std::size_t j, const std::vector<double>& rows) const {
    const std::size_t begin = model_.offsets[j];
    return scale(j) *
           gather<Uniform>(rows.data(), model_.rows.data() + begin, values(j), model_.offsets[j + 1] - begin);
  }
  void add(std::size_t j, double step, std::vector<double>& rows) const {
    const std::size_t begin = model_.offsets[j];
    scatter<Uniform>(rows.data(), model_.rows.data() + begin, values(j), model_.offsets[j + 1] - begin,
                     step * scale(j));
  }

  const SparseColumns& columns_;
  std::span<const double> curvature_;  // of all rows
  Model& model_;
  std::vector<double> product_;  // of the last multiply(), by row
};

void ProximalNewton::descend(Model& model) {
  store_entries(model);
  const auto descend_on_entries = [&](auto uniform) {
    EntryHessian<decltype(uniform)::value> hessian(columns_, curvature_, model);
    descend_with(hessian, model, 100);
  };
  columns_.uniform() ? descend_on_entries(std::true_type{}) : descend_on_entries(std::false_type{});
}

// Makes a few passes over the columns in place, without forming the Hessian or copying the entries.
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
