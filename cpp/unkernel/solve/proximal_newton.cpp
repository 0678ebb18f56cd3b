#include "unkernel/solve/proximal_newton.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>

#include "unkernel/base/gather.hpp"

namespace unkernel::solve {
namespace {

constexpr double model_accuracy = 0.1;  // of a model's solution, in parts of its violation at the beginning
constexpr double ridge = 1e-12;         // keeps a column without curvature from an infinite step

// Of a concave function on [0, high].
template <class Function>
double largest_value(const Function& value, double high) {
  constexpr double golden = 0.6180339887498949;
  double low = 0.0;
  double best = value(high);
  for (int round = 0; round < 24; ++round) {
    const double left = high - golden * (high - low);
    const double right = low + golden * (high - low);
    const double at_left = value(left);
    const double at_right = value(right);
    best = std::max({best, at_left, at_right});
    (at_left > at_right ? high : low) = at_left > at_right ? right : left;
  }
  return best;
}

}  // namespace

double best_dual(const ScoreLoss& loss, std::span<const double> gradients, const Penalty& penalty,
                 std::span<const double> strengths, double largest) {
  if (penalty.l2 <= 0.0) return loss.dual(gradients, largest > penalty.l1 ? penalty.l1 / largest : 1.0);
  const auto value = [&](double scale) {
    double excess = 0.0;
    for (const double strength : strengths) {
      const double over = std::max(scale * strength - penalty.l1, 0.0);
      excess += over * over;
    }
    return loss.dual(gradients, scale) - excess / (2.0 * penalty.l2);
  };
  return largest > penalty.l1 ? largest_value(value, 1.0) : value(1.0);
}

struct ProximalNewton::Model {
  std::vector<std::int32_t> columns;
  std::vector<std::size_t> outputs;  // of each column; a column may be there for several
  std::vector<std::size_t> offsets{0};
  std::vector<std::int32_t> rows;  // renumbered: only rows with a curvature
  std::vector<double> values;      // x_ij sqrt(curvature_i)
  std::vector<double> gradient;    // of the loss at d = 0
  std::vector<double> curvature;   // of the loss alone
  std::vector<double> weights;     // w_j
  std::vector<double> steps;       // d_j
  std::vector<double> residual;    // sum_j values_j d_j
};

ProximalNewton::ProximalNewton(const SparseColumns& columns, const ScoreLoss& loss, const Penalty& penalty,
                               std::uint64_t seed, Monitor& monitor)
    : columns_(columns),
      loss_(loss),
      penalty_(penalty),
      random_(seed),
      monitor_(monitor),
      rows_(loss.rows()),
      gram_(columns, rows_),
      weights_(loss.outputs()),
      scores_(rows_ * loss.outputs(), 0.0),
      gradients_(scores_.size()),
      curvature_(rows_),
      largest_curvature_(rows_),
      column_gradients_(loss.outputs()) {
  loss.largest_curvatures(largest_curvature_);
}

void ProximalNewton::fit_columns() {
  for (auto& weights : weights_) weights.resize(columns_.size(), 0.0);
  for (auto& gradients : column_gradients_) gradients.resize(columns_.size());
}

void ProximalNewton::set_weight(std::size_t column, std::size_t output, double weight) {
  fit_columns();
  columns_.axpy(column, weight - weights_[output][column], scores_.data() + output * rows_);
  weights_[output][column] = weight;
}

double ProximalNewton::penalty_of(double weight) const {
  return penalty_.l1 * std::abs(weight) + 0.5 * penalty_.l2 * weight * weight;
}

double ProximalNewton::penalty_total() const {
  double total = 0.0;
  for (const auto& weights : weights_) {
    for (const double weight : weights) total += penalty_of(weight);
  }
  return total;
}

void ProximalNewton::evaluate() {
  fit_columns();
  std::vector<double> strengths;
  double largest = 0.0;
  for (std::size_t output = 0; output < weights_.size(); ++output) {
    double* gradients = gradients_.data() + output * rows_;
    loss_.derivatives(scores_, output, {gradients, rows_}, curvature_);
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      const double strength = std::abs(column_gradients_[output][j] = columns_.dot(j, gradients));
      largest = std::max(largest, strength);
      if (penalty_.l2 > 0.0 && strength > penalty_.l1) strengths.push_back(strength);
    }
  }
  objective_ = penalty_total() + loss_.value(scores_);
  dual_objective_ = best_dual(loss_, gradients_, penalty_, strengths, largest);
}

// How far the optimality condition of a column is from being met.
double ProximalNewton::violation(std::size_t j, std::size_t output) const {
  const double weight = weights_[output][j];
  const double gradient = column_gradients_[output][j] + penalty_.l2 * weight;
  if (weight > 0.0) return std::abs(gradient + penalty_.l1);
  if (weight < 0.0) return std::abs(gradient - penalty_.l1);
  return std::max(std::abs(gradient) - penalty_.l1, 0.0);
}

bool ProximalNewton::run(double gap, std::int64_t most_steps, bool rough) {
  hurried_ = hurried_ || rough;
  evaluate();
  for (std::int64_t made = 0; objective_ - dual_objective_ > gap; ++made) {
    if (made == most_steps) return false;
    monitor_.throw_if_stopped();
    const bool moved = step(rough);
    ++steps_;
    evaluate();
    if (!moved) return objective_ - dual_objective_ <= gap;  // rounding forbids more
  }
  return true;
}

double ProximalNewton::largest_violation() const {
  double largest = 0.0;
  for (std::size_t output = 0; output < weights_.size(); ++output) {
    for (std::size_t j = 0; j < columns_.size(); ++j) largest = std::max(largest, violation(j, output));
  }
  return largest;
}

void ProximalNewton::choose_columns(Model& model) const {
  const double near = penalty_.l1 - largest_violation();
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    for (std::size_t output = 0; output < weights_.size(); ++output) {
      const double weight = weights_[output][j];
      const double gradient = column_gradients_[output][j];
      if (weight == 0.0 && std::abs(gradient) < near) continue;
      model.columns.push_back(static_cast<std::int32_t>(j));
      model.outputs.push_back(output);
      model.gradient.push_back(gradient);
      model.weights.push_back(weight);
    }
  }
  model.steps.assign(model.columns.size(), 0.0);
  model.curvature.assign(model.columns.size(), 0.0);
}

// Additions to make the Hessian and to use it, against those of as many passes over the entries.
bool ProximalNewton::gram_pays(const Model& model) const {
  constexpr double usual_passes = 50.0;
  constexpr double scattered = 2.0;  // an addition at random takes as long as so many in sequence
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

// For a column whose loss has this gradient at the present steps.
double ProximalNewton::best_step(const Model& model, std::size_t j, double gradient) const {
  const double weight = model.weights[j] + model.steps[j];
  const double curvature = model.curvature[j] + penalty_.l2 + ridge;
  const double slope = gradient + penalty_.l2 * weight + ridge * model.steps[j];
  if (slope + penalty_.l1 <= curvature * weight) return -(slope + penalty_.l1) / curvature;
  if (slope - penalty_.l1 >= curvature * weight) return -(slope - penalty_.l1) / curvature;
  return -weight;
}

// Coordinate descent on the quadratic model, in random order, until the conditions of optimality are violated
// much less on a pass than on the first: `gradient` of a member as it is by now, `moved` where one has made a
// step.
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
      model.steps[m] += step;
      moved(m, step);
    }
    if (pass == 0) first = violations;
    if (violations <= model_accuracy * first) return;
  }
}

void ProximalNewton::descend(Model& model) {
  store_entries(model);
  const auto entries = [&](std::size_t m) {
    const std::size_t begin = model.offsets[m];
    return std::tuple(model.rows.data() + begin, model.values.data() + begin, model.offsets[m + 1] - begin);
  };
  descend_in_passes(
      model, 100,
      [&](std::size_t m) {
        const auto [rows, values, count] = entries(m);
        return model.gradient[m] + gather<false>(model.residual.data(), rows, values, count);
      },
      [&](std::size_t m, double step) {
        const auto [rows, values, count] = entries(m);
        scatter<false>(model.residual.data(), rows, values, count, step);
      });
}

// A few passes over the columns as they are: neither the Hessian nor the entries are made ready.
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

// Coordinate descent crawls where columns are nearly dependent. So from time to time the weights that are not
// 0 move together, along a few conjugate gradients, and stop at 0 where they would change their sign.
class ProximalNewton::GramDescent {
 public:
  GramDescent(const ProximalNewton& owner, Model& model)
      : owner_(owner),
        model_(model),
        gram_(owner.gram_),
        gradient_(gram_.size(), 0.0),
        place_(model.columns.size()) {
    for (std::size_t j = 0; j < place_.size(); ++j) {
      place_[j] = gram_.member(model.columns[j]);
      gradient_[place_[j]] = model.gradient[j];
      model.curvature[j] = std::max(gram_.row(place_[j])[place_[j]], 0.0);
    }
  }

  // How much the optimality conditions were violated on the way.
  double pass(std::span<const std::size_t> order) {
    double violations = 0.0;
    for (const std::size_t j : order) {
      const double step = owner_.best_step(model_, j, gradient_[place_[j]]);
      if (step == 0.0) continue;
      violations += (model_.curvature[j] + owner_.penalty_.l2) * std::abs(step);
      model_.steps[j] += step;
      add(step, gram_.row(place_[j]), gradient_);
    }
    return violations;
  }

  void move_together() {
    constexpr int most_rounds = 20;
    support_.clear();
    for (std::size_t j = 0; j < place_.size(); ++j) {
      if (weight(j) != 0.0) support_.push_back(j);
    }
    std::vector<double> residual(support_.size()), scaled(support_.size()), product(support_.size());
    std::vector<double> solution(support_.size(), 0.0);
    for (std::size_t k = 0; k < support_.size(); ++k) residual[k] = -slope(support_[k]);
    std::vector<double> direction(support_.size(), 0.0);
    double before = 0.0;
    double first = 0.0;
    for (int round = 0; round < most_rounds; ++round) {
      double size = 0.0;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        scaled[k] = residual[k] / curvature(support_[k]);
        size += residual[k] * scaled[k];
      }
      if (round == 0) first = size;
      if (!(size > 1e-4 * first)) break;
      for (std::size_t k = 0; k < support_.size(); ++k)
        direction[k] = scaled[k] + (round > 0 ? size / before : 0.0) * direction[k];
      multiply(direction, product);
      double along = 0.0;
      for (std::size_t k = 0; k < support_.size(); ++k) along += direction[k] * product[k];
      if (!(along > 0.0)) break;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        solution[k] += size / along * direction[k];
        residual[k] -= size / along * product[k];
      }
      before = size;
    }
    go(solution);
  }

 private:
  double weight(std::size_t j) const { return model_.weights[j] + model_.steps[j]; }
  double curvature(std::size_t j) const { return model_.curvature[j] + owner_.penalty_.l2 + ridge; }
  double slope(std::size_t j) const {
    return gradient_[place_[j]] + owner_.penalty_.l2 * weight(j) + ridge * model_.steps[j] +
           std::copysign(owner_.penalty_.l1, weight(j));
  }

  static void add(double step, const double* row, std::vector<double>& sums) {
    for (std::size_t m = 0; m < sums.size(); ++m) sums[m] += step * row[m];
  }

  // The Hessian's part for the support, the penalty's included.
  void multiply(const std::vector<double>& direction, std::vector<double>& product) {
    spread_.assign(gram_.size(), 0.0);
    for (std::size_t k = 0; k < support_.size(); ++k)
      add(direction[k], gram_.row(place_[support_[k]]), spread_);
    for (std::size_t k = 0; k < support_.size(); ++k) {
      product[k] = spread_[place_[support_[k]]] + (owner_.penalty_.l2 + ridge) * direction[k];
    }
  }

  // As far along the path that bends at zeros as the model falls.
  void go(const std::vector<double>& solution) {
    std::vector<double> moves(support_.size()), product(support_.size());
    for (double length = 1.0; length > 0.05; length *= 0.5) {
      double change = 0.0;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        const double old = weight(support_[k]);
        const double target = old + length * solution[k];
        moves[k] = old * target > 0.0 ? target - old : -old;
        change += moves[k] * slope(support_[k]);
      }
      multiply(moves, product);
      for (std::size_t k = 0; k < support_.size(); ++k) change += 0.5 * moves[k] * product[k];
      if (!(change < 0.0)) continue;
      for (std::size_t k = 0; k < support_.size(); ++k) {
        const std::size_t j = support_[k];
        model_.steps[j] = moves[k] == -weight(j) ? -model_.weights[j] : model_.steps[j] + moves[k];
      }
      for (std::size_t m = 0; m < gradient_.size(); ++m) gradient_[m] += spread_[m];
      return;
    }
  }

  const ProximalNewton& owner_;
  Model& model_;
  const WeightedGram& gram_;
  std::vector<double> gradient_;      // of the loss, by member
  std::vector<std::size_t> place_;    // the member of each column
  std::vector<std::size_t> support_;  // columns with a weight
  std::vector<double> spread_;        // the last product, for all members
};

void ProximalNewton::descend_on_gram(Model& model) {
  // Far from the optimum the model itself is the smaller half of the truth.
  const int most_passes = hurried_ && objective_ - dual_objective_ > 0.1 * objective_ ? 50 : 500;
  constexpr int alone = 5;       // passes between common moves
  constexpr double slack = 0.2;  // a model with curvatures a little old is nearly as good
  gram_.update(model.columns, curvature_, slack);
  GramDescent descent(*this, model);
  std::vector<std::size_t> order(model.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double first = 0.0;
  for (int pass = 0; pass < most_passes; ++pass) {
    monitor_.throw_if_stopped();
    if (pass > 0 && pass % alone == 0) descent.move_together();
    random_.shuffle(std::span(order));
    const double violations = descent.pass(order);
    if (pass == 0) first = violations;
    if (violations <= model_accuracy * first) return;
  }
}

void ProximalNewton::damp() {
  if (damping_ == 0.0) return;
  for (std::size_t i = 0; i < rows_; ++i) curvature_[i] += damping_ * (largest_curvature_[i] - curvature_[i]);
}

void ProximalNewton::adapt_damping(double length) {
  constexpr double least = 1e-4;
  constexpr double factor = 4.0;
  if (length >= 1.0) {
    damping_ = damping_ > least ? damping_ / factor : 0.0;
  } else if (length < 0.5) {
    damping_ = std::min(1.0, std::max(damping_, least) * factor);
  }
}

// The Hessian of row i by its scores is diag(a) - a a'/n + e I, e the damping: its product with the row's
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

double ProximalNewton::search_line(const Model& model) {
  constexpr double sufficient = 0.01;
  std::vector<double> direction(scores_.size(), 0.0);
  double slope = 0.0;
  double penalty_before = 0.0;
  for (std::size_t k = 0; k < model.columns.size(); ++k) {
    const double d = model.steps[k];
    if (d == 0.0) continue;
    columns_.axpy(static_cast<std::size_t>(model.columns[k]), d, direction.data() + model.outputs[k] * rows_);
    slope += model.gradient[k] * d + penalty_of(model.weights[k] + d) - penalty_of(model.weights[k]);
    penalty_before += penalty_of(model.weights[k]);
  }
  if (!(slope < 0.0)) return 0.0;
  const double loss_before = loss_.value(scores_);
  double length = 1.0;
  for (int halving = 0; halving < 40; ++halving, length *= 0.5) {
    double penalty = 0.0;
    for (std::size_t k = 0; k < model.columns.size(); ++k) {
      if (model.steps[k] != 0.0) penalty += penalty_of(model.weights[k] + length * model.steps[k]);
    }
    const double change =
        penalty - penalty_before + loss_.value_along(scores_, direction, length) - loss_before;
    if (change > sufficient * length * slope) continue;
    for (std::size_t k = 0; k < model.columns.size(); ++k) {
      weights_[model.outputs[k]][static_cast<std::size_t>(model.columns[k])] =
          model.weights[k] + length * model.steps[k];
    }
    for (std::size_t i = 0; i < scores_.size(); ++i) scores_[i] += length * direction[i];
    return length;
  }
  return 0.0;
}

bool ProximalNewton::step(bool rough) {
  Model model;
  choose_columns(model);
  if (weights_.size() > 1) {
    descend_jointly(model);
  } else {
    damp();
    if (rough) {
      descend_in_place(model);
    } else if (gram_pays(model)) {
      descend_on_gram(model);
    } else {
      descend(model);
    }
  }
  const double length = search_line(model);
  adapt_damping(length);
  return length > 0.0 || damping_ < 1.0;
}

}  // namespace unkernel::solve
