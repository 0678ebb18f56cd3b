// The data that the steps of an expansion share: support vectors, the rule that drops small weights, and the
// memory budget.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "unkernel/base/error.hpp"
#include "unkernel/engines/conjunctions/expansion.hpp"
#include "unkernel/engines/conjunctions/ranked_vectors.hpp"

namespace unkernel::engines {

// Decides which weights are large enough to keep.
class Pruning {
 public:
  Pruning(const SupportVectors& machine, const ExpansionPlan& plan, std::size_t scores)
      : is_active_(plan.threshold > 0.0) {
    const auto vectors = machine.coefficients.size() / scores;
    for (std::size_t s = 0; s < scores; ++s) {
      double positive = 0.0, negative = 0.0;
      for (std::size_t j = 0; j < vectors; ++j) {
        positive += machine.coefficients[j * scores + s] > 0.0;
        negative += machine.coefficients[j * scores + s] < 0.0;
      }
      const double total = std::max(positive + negative, 1.0);
      min_positive_.push_back(plan.threshold * positive / total);
      min_negative_.push_back(plan.threshold * negative / total);
    }
    for (int size = most_degree; size >= 1; --size) {
      largest_factor_[size] =
          std::max(std::abs(plan.map.set(size)), size < most_degree ? largest_factor_[size + 1] : 0.0);
      has_negative_factor_ = has_negative_factor_ || plan.map.set(size) < 0.0;
    }
  }

  bool is_active() const { return is_active_; }
  // Returns whether to keep a conjunction: whether one of its weights, one per score, is large enough.
  bool keeps(const double* weights) const {
    for (std::size_t s = 0; is_active_ && s < min_positive_.size(); ++s) {
      if (weights[s] > 0.0 && weights[s] >= min_positive_[s]) return true;
      if (weights[s] < 0.0 && -weights[s] >= min_negative_[s]) return true;
    }
    return !is_active_;
  }
  // Returns whether any conjunction of `size` or more features can be kept, given upper bounds on the
  // positive and negative terms of its weight.
  bool can_keep(const double* positive, const double* negative, int size) const {
    for (std::size_t s = 0; is_active_ && s < min_positive_.size(); ++s) {
      const double lower = std::min(min_positive_[s], min_negative_[s]);
      if (positive[s] * largest_factor_[size] >= (has_negative_factor_ ? lower : min_positive_[s]) &&
          positive[s] > 0.0)
        return true;
      if (negative[s] * largest_factor_[size] >= (has_negative_factor_ ? lower : min_negative_[s]) &&
          negative[s] > 0.0)
        return true;
    }
    return !is_active_;
  }

 private:
  bool is_active_;
  bool has_negative_factor_ = false;                 // positive terms may yield negative weights
  std::vector<double> min_positive_, min_negative_;  // by score: thresholds of |w|
  double largest_factor_[most_degree + 1] = {};      // by size: the largest of this and all larger sizes
};

// The input of all steps of an expansion.
struct ExpansionTask {
  const RankedVectors& vectors;
  const SupportVectors& machine;
  const ExpansionPlan& plan;
  const Pruning& pruning;
  std::size_t scores;

  bool sets() const { return plan.basis == Basis::sets; }
  const double* coefficients(std::uint32_t vector) const {
    return machine.coefficients.data() + vector * scores;
  }
  double value(std::uint32_t place) const { return sets() ? 1.0 : vectors.values[place]; }
  // Returns the squared constant c^2 of a conjunction of `size` features. `repeats` is the product of the
  // factorials of its exponents.
  double constant(int size, int repeats) const {
    return sets() ? plan.map.set(size) : plan.map.monomial(size, repeats);
  }
};

// Throws NotEnoughMemory when the tables outgrow their budget.
class MemoryBudget {
 public:
  explicit MemoryBudget(double bytes) : remaining_bytes_(bytes) {}
  void spend(double bytes) {
    const std::lock_guard guard(lock_);
    remaining_bytes_ -= bytes;
    if (remaining_bytes_ < 0.0)
      throw NotEnoughMemory("the expanded model does not fit into the memory it was given");
  }

 private:
  std::mutex lock_;
  double remaining_bytes_;
};

}  // namespace unkernel::engines
