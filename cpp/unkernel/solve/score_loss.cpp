#include "unkernel/solve/score_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "unkernel/solve/logistic_term.hpp"
#include "unkernel/solve/poisson_term.hpp"

namespace unkernel::solve {
namespace {

struct SquaredErrorTerm {
  // Returns the error f - t, shortened by `epsilon`.
  static double excess(const CostOfError& row, double f) {
    const double error = f - row.target;
    return std::copysign(std::max(std::abs(error) - row.epsilon, 0.0), error);
  }
  static double value(const CostOfError& row, double f) {
    const double error = excess(row, f);
    return row.cost * error * error;
  }
  static void derivatives(const CostOfError& row, double f, double& gradient, double& curvature) {
    const double error = excess(row, f);
    gradient = 2.0 * row.cost * error;
    curvature = error != 0.0 || row.epsilon == 0.0 ? 2.0 * row.cost : 0.0;
  }
  static double largest_curvature(const CostOfError& row) { return 2.0 * row.cost; }
  static double dual(const CostOfError& row, double u) {
    return u * row.target - row.epsilon * std::abs(u) - 0.25 * u * u / row.cost;
  }
};

struct SquaredHingeTerm {
  static constexpr SquaredLoss squared_hinge{Loss::squared_hinge};

  static double value(const Costs& c, double f) { return squared_hinge.loss(c, f); }
  static void derivatives(const Costs& c, double f, double& gradient, double& curvature) {
    const double below = std::max(1.0 - f, 0.0);
    const double above = std::max(1.0 + f, 0.0);
    gradient = 2.0 * (c.negative * above - c.positive * below);
    curvature = 2.0 * ((above > 0.0 ? c.negative : 0.0) + (below > 0.0 ? c.positive : 0.0));
  }
  static double largest_curvature(const Costs& c) { return 2.0 * (c.negative + c.positive); }
  static double dual(const Costs& c, double u) { return squared_hinge.dual(c, u); }
};

// At smaller scores, differences of losses lose too many digits.
constexpr double nearly_zero = 1e-3;

template <class Term, class Row = Costs>
class OneScoreLoss : public ScoreLoss {
 public:
  explicit OneScoreLoss(std::vector<Row> costs, double constant = 0.0)
      : costs_(std::move(costs)), constant_(constant) {}

  std::size_t rows() const override { return costs_.size(); }
  double value(std::span<const double> scores) const override {
    double total = constant_;
    for (std::size_t i = 0; i < costs_.size(); ++i) total += Term::value(costs_[i], scores[i]);
    return total;
  }
  void derivatives(std::span<const double> scores, std::size_t, std::span<double> gradient,
                   std::span<double> curvature) const override {
    for (std::size_t i = 0; i < costs_.size(); ++i)
      Term::derivatives(costs_[i], scores[i], gradient[i], curvature[i]);
  }
  void wide_curvatures(std::span<const double> scores, std::size_t,
                       std::span<double> curvature) const override {
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      const double f = scores[i];
      double gradient = 0.0;
      Term::derivatives(costs_[i], f, gradient, curvature[i]);
      if (std::abs(f) < nearly_zero) continue;
      const double rise = Term::value(costs_[i], -f) - Term::value(costs_[i], f) + 2.0 * f * gradient;
      curvature[i] = std::max(rise, 0.0) / (2.0 * f * f);
    }
  }
  void largest_curvatures(std::span<double> curvature) const override {
    for (std::size_t i = 0; i < costs_.size(); ++i) curvature[i] = Term::largest_curvature(costs_[i]);
  }
  void joint_curvatures(std::span<const double>, std::span<double>) const override {
    throw std::logic_error("a loss with one output has no joint curvatures");
  }
  double value_along(std::span<const double> scores, std::span<const double> direction,
                     double step) const override {
    double total = constant_;
    for (std::size_t i = 0; i < costs_.size(); ++i)
      total += Term::value(costs_[i], scores[i] + step * direction[i]);
    return total;
  }
  double dual(std::span<const double> gradients, double scale) const override {
    double total = constant_;
    for (std::size_t i = 0; i < costs_.size(); ++i) total += Term::dual(costs_[i], -scale * gradients[i]);
    return total;
  }

 private:
  std::vector<Row> costs_;
  double constant_;
};

class SoftmaxLoss : public ScoreLoss {
 public:
  SoftmaxLoss(std::vector<std::int64_t> offsets, std::vector<ClassCost> costs, std::size_t classes)
      : offsets_(std::move(offsets)),
        costs_(std::move(costs)),
        classes_(classes),
        totals_(offsets_.size() - 1, 0.0) {
    for (std::size_t i = 0; i < totals_.size(); ++i) {
      for (const ClassCost& c : costs_of(i)) totals_[i] += c.cost;
    }
  }

  std::size_t rows() const override { return totals_.size(); }
  std::size_t outputs() const override { return classes_; }

  double value(std::span<const double> scores) const override { return value_along(scores, {}, 0.0); }

  void derivatives(std::span<const double> scores, std::size_t output, std::span<double> gradient,
                   std::span<double> curvature) const override {
    for (std::size_t i = 0; i < rows(); ++i) {
      const double score = scores[output * rows() + i];
      double sum_of_others = 0.0;  // of exp(score of another class - score of this class)
      for (std::size_t k = 0; k < classes_; ++k) {
        if (k != output) sum_of_others += std::exp(std::min(scores[k * rows() + i] - score, 700.0));
      }
      const double share = 1.0 / (1.0 + sum_of_others);
      gradient[i] = totals_[i] * share;
      for (const ClassCost& c : costs_of(i)) {
        if (static_cast<std::size_t>(c.code) == output) gradient[i] -= c.cost;
      }
      // If the row occurs in this class only, use this sum, because the subtraction above would lose
      // accuracy.
      if (costs_of(i).size() == 1 && static_cast<std::size_t>(costs_of(i)[0].code) == output) {
        gradient[i] = -totals_[i] * sum_of_others * share;
      }
      curvature[i] = totals_[i] * share * sum_of_others * share;
    }
  }

  // Takes the score of a class against all others, log(s / (1 - s)) for the share s of the class.
  void wide_curvatures(std::span<const double> scores, std::size_t output,
                       std::span<double> curvature) const override {
    for (std::size_t i = 0; i < rows(); ++i) {
      double sum_of_others = 0.0;
      for (std::size_t k = 0; k < classes_; ++k) {
        const double difference = scores[k * rows() + i] - scores[output * rows() + i];
        if (k != output) sum_of_others += std::exp(std::min(difference, 700.0));
      }
      const double f = -std::log(std::max(sum_of_others, std::numeric_limits<double>::min()));
      curvature[i] = totals_[i] * (std::abs(f) < nearly_zero ? 0.25 : std::tanh(0.5 * f) / (2.0 * f));
    }
  }

  void largest_curvatures(std::span<double> curvature) const override {
    for (std::size_t i = 0; i < rows(); ++i) curvature[i] = 0.25 * totals_[i];
  }

  void joint_curvatures(std::span<const double> scores, std::span<double> a) const override {
    for (std::size_t i = 0; i < rows(); ++i) {
      double* row = a.data() + i * classes_;
      double largest = scores[i];
      for (std::size_t k = 0; k < classes_; ++k) largest = std::max(largest, scores[k * rows() + i]);
      double sum = 0.0;
      for (std::size_t k = 0; k < classes_; ++k) {
        row[k] = std::exp(scores[k * rows() + i] - largest);
        sum += row[k];
      }
      for (std::size_t k = 0; k < classes_; ++k) row[k] *= totals_[i] / sum;
    }
  }

  double value_along(std::span<const double> scores, std::span<const double> direction,
                     double step) const override {
    double total = 0.0;
    std::vector<double> f(classes_);
    for (std::size_t i = 0; i < rows(); ++i) {
      for (std::size_t k = 0; k < classes_; ++k) {
        const std::size_t place = k * rows() + i;
        f[k] = direction.empty() ? scores[place] : scores[place] + step * direction[place];
      }
      const double largest = *std::max_element(f.begin(), f.end());
      double sum = 0.0;
      for (const double score : f) sum += std::exp(score - largest);
      total += totals_[i] * (largest + std::log(sum));
      for (const ClassCost& c : costs_of(i)) total -= c.cost * f[static_cast<std::size_t>(c.code)];
    }
    return total;
  }

  double dual(std::span<const double> gradients, double scale) const override {
    double total = 0.0;
    std::vector<double> shares(classes_);
    for (std::size_t i = 0; i < rows(); ++i) {
      if (totals_[i] == 0.0) continue;
      for (std::size_t k = 0; k < classes_; ++k) shares[k] = scale * gradients[k * rows() + i];
      for (const ClassCost& c : costs_of(i)) shares[static_cast<std::size_t>(c.code)] += c.cost;
      for (const double share : shares)
        total += totals_[i] * entropy_term(std::clamp(share / totals_[i], 0.0, 1.0));
    }
    return total;
  }

 private:
  std::span<const ClassCost> costs_of(std::size_t i) const {
    return std::span(costs_).subspan(static_cast<std::size_t>(offsets_[i]),
                                     static_cast<std::size_t>(offsets_[i + 1] - offsets_[i]));
  }

  std::vector<std::int64_t> offsets_;
  std::vector<ClassCost> costs_;
  std::size_t classes_;
  std::vector<double> totals_;
};

}  // namespace

std::unique_ptr<ScoreLoss> squared_error_loss(std::vector<CostOfError> rows) {
  return std::make_unique<OneScoreLoss<SquaredErrorTerm, CostOfError>>(std::move(rows));
}

std::unique_ptr<ScoreLoss> squared_hinge_loss(std::vector<Costs> costs) {
  return std::make_unique<OneScoreLoss<SquaredHingeTerm>>(std::move(costs));
}

std::unique_ptr<ScoreLoss> logistic_loss(std::vector<Costs> costs) {
  return std::make_unique<OneScoreLoss<LogisticTerm>>(std::move(costs));
}

std::unique_ptr<ScoreLoss> poisson_loss(std::vector<Costs> costs, double constant) {
  return std::make_unique<OneScoreLoss<PoissonTerm>>(std::move(costs), constant);
}

std::unique_ptr<ScoreLoss> softmax_loss(std::vector<std::int64_t> offsets, std::vector<ClassCost> costs,
                                        std::size_t classes) {
  return std::make_unique<SoftmaxLoss>(std::move(offsets), std::move(costs), classes);
}

}  // namespace unkernel::solve
