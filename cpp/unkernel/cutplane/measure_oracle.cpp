#include "unkernel/cutplane/measure_oracle.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "unkernel/base/radix_argsort.hpp"

namespace unkernel::cutplane {
namespace {

// A labelling of all rows, and its value: the expression that R(s) maximises.
struct Labelling {
  std::int64_t kept = 0;    // a: positives that stay positive
  std::int64_t raised = 0;  // b: negatives that become positive
  double value = -std::numeric_limits<double>::infinity();
};

// The rows of one class by descending score. Sums are computed without subtraction, so a huge score outside
// of a sum does not affect the rounding errors of the sum.
struct SortedClass {
  std::vector<std::uint32_t> rows;
  std::vector<double> sums;  // by k: scores of the first k negatives, or of all positives except the first k

  std::int64_t count() const { return static_cast<std::int64_t>(rows.size()); }
  double sum(std::int64_t k) const { return sums[static_cast<std::size_t>(k)]; }
};

class MeasureOracle : public JointOracle {
 public:
  explicit MeasureOracle(std::vector<bool> positive) : positive_(std::move(positive)) {}

  std::int64_t rows() const override { return static_cast<std::int64_t>(positive_.size()); }

 protected:
  Evaluation evaluate(std::span<const double> scores, std::span<double> coefficients, int) override {
    sort(scores);
    std::ranges::fill(coefficients, 0.0);
    const Labelling worst = worst_labelling();
    if (!(worst.value > 0.0)) return {};
    for (std::int64_t k = worst.kept; k < positives_.count(); ++k)
      coefficients[positives_.rows[static_cast<std::size_t>(k)]] = 1.0;
    for (std::int64_t k = 0; k < worst.raised; ++k)
      coefficients[negatives_.rows[static_cast<std::size_t>(k)]] = -1.0;
    return {static_cast<double>(rows()) * loss(worst.kept, worst.raised), 0.0};
  }

  virtual double loss(std::int64_t kept, std::int64_t raised) const = 0;
  virtual Labelling worst_labelling() const = 0;

  // Returns n loss - (scores of positives labelled negative) + (scores of negatives labelled positive).
  Labelling labelling(std::int64_t kept, std::int64_t raised) const {
    return {kept, raised,
            static_cast<double>(rows()) * loss(kept, raised) - positives_.sum(kept) + negatives_.sum(raised)};
  }
  std::int64_t positives() const { return positives_.count(); }
  std::int64_t negatives() const { return negatives_.count(); }

 private:
  void sort(std::span<const double> scores) {
    positives_.rows.clear();
    negatives_.rows.clear();
    const auto order = order_.sort(scores);
    for (std::size_t k = order.size(); k-- > 0;)
      (positive_[order[k]] ? positives_ : negatives_).rows.push_back(order[k]);
    negatives_.sums.assign(negatives_.rows.size() + 1, 0.0);
    for (std::size_t k = 0; k < negatives_.rows.size(); ++k)
      negatives_.sums[k + 1] = negatives_.sums[k] + scores[negatives_.rows[k]];
    positives_.sums.assign(positives_.rows.size() + 1, 0.0);
    for (std::size_t k = positives_.rows.size(); k-- > 0;)
      positives_.sums[k] = positives_.sums[k + 1] + scores[positives_.rows[k]];
  }

  std::vector<bool> positive_;
  RadixArgsort order_;
  SortedClass positives_;
  SortedClass negatives_;
};

class F1Oracle final : public MeasureOracle {
 public:
  using MeasureOracle::MeasureOracle;

 protected:
  double loss(std::int64_t kept, std::int64_t raised) const override {
    return 1.0 - 2.0 * static_cast<double>(kept) / static_cast<double>(positives() + kept + raised);
  }

  Labelling worst_labelling() const override {
    Labelling worst;
    for (std::int64_t kept = 0; kept <= positives(); ++kept) {
      const Labelling best = best_for_kept(kept);
      if (best.value > worst.value) worst = best;
    }
    return worst;
  }

 private:
  // The value is concave in the number raised: bisection finds the first step that does not increase the
  // value.
  Labelling best_for_kept(std::int64_t kept) const {
    std::int64_t low = 0;
    std::int64_t high = negatives();
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (labelling(kept, middle + 1).value > labelling(kept, middle).value) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return labelling(kept, low);
  }
};

class PrecisionOracle final : public MeasureOracle {
 public:
  PrecisionOracle(std::vector<bool> positive, std::int64_t k) : MeasureOracle(std::move(positive)), k_(k) {}

 protected:
  double loss(std::int64_t kept, std::int64_t) const override {
    return 1.0 - static_cast<double>(kept) / static_cast<double>(k_);
  }

  Labelling worst_labelling() const override {
    Labelling worst;
    for (std::int64_t kept = std::max<std::int64_t>(0, k_ - negatives()); kept <= std::min(k_, positives());
         ++kept) {
      const Labelling next = labelling(kept, k_ - kept);
      if (next.value > worst.value) worst = next;
    }
    return worst;
  }

 private:
  std::int64_t k_;
};

}  // namespace

std::unique_ptr<Oracle> f1_oracle(std::vector<bool> positive) {
  return std::make_unique<F1Oracle>(std::move(positive));
}

std::unique_ptr<Oracle> precision_oracle(std::vector<bool> positive, std::int64_t k) {
  if (k < 1 || k > static_cast<std::int64_t>(positive.size()))
    throw std::invalid_argument("k must be between 1 and the number of rows");
  return std::make_unique<PrecisionOracle>(std::move(positive), k);
}

}  // namespace unkernel::cutplane
