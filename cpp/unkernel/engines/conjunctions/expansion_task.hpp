// Data shared by the steps of an expansion: the support vectors, the rule that drops small weights, and the
// memory that is left.
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
      : active_(plan.threshold > 0.0) {
    const auto vectors = machine.coefficients.size() / scores;
    for (std::size_t s = 0; s < scores; ++s) {
      double positive = 0.0, negative = 0.0;
      for (std::size_t j = 0; j < vectors; ++j) {
        positive += machine.coefficients[j * scores + s] > 0.0;
        negative += machine.coefficients[j * scores + s] < 0.0;
      }
      const double total = std::max(positive + negative, 1.0);
      above_.push_back(plan.threshold * positive / total);
      below_.push_back(plan.threshold * negative / total);
    }
    for (int size = most_degree; size >= 1; --size) {
      largest_[size] = std::max(std::abs(plan.map.set(size)), size < most_degree ? largest_[size + 1] : 0.0);
      has_negative_factor_ = has_negative_factor_ || plan.map.set(size) < 0.0;
    }
  }

  bool active() const { return active_; }
  bool keeps(const double* weights) const {
    for (std::size_t s = 0; active_ && s < above_.size(); ++s) {
      if (weights[s] > 0.0 ? weights[s] >= above_[s] : -weights[s] >= below_[s] && weights[s] != 0.0)
        return true;
    }
    return !active_;
  }
  // Returns false if no conjunction of `size` or more features can be kept, given upper bounds of the
  // positive and the negative terms of its weight.
  bool may_keep(const double* positive, const double* negative, int size) const {
    for (std::size_t s = 0; active_ && s < above_.size(); ++s) {
      const double lower = std::min(above_[s], below_[s]);
      if (positive[s] * largest_[size] >= (has_negative_factor_ ? lower : above_[s]) && positive[s] > 0.0)
        return true;
      if (negative[s] * largest_[size] >= (has_negative_factor_ ? lower : below_[s]) && negative[s] > 0.0)
        return true;
    }
    return !active_;
  }

 private:
  bool active_;
  bool has_negative_factor_ = false;   // then positive terms may yield negative weights
  std::vector<double> above_, below_;  // by score
  double largest_[most_degree + 1] = {};
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
  // Returns c^2 of a conjunction of `size` features; `repeats` is the product of the factorials of its
  // exponents.
  double constant(int size, int repeats) const {
    return sets() ? plan.map.set(size) : plan.map.monomial(size, repeats);
  }
};

// Throws NotEnoughMemory when tables outgrow their budget.
class MemoryBudget {
 public:
  explicit MemoryBudget(double bytes) : left_(bytes) {}
  void spend(double bytes) {
    const std::lock_guard guard(lock_);
    left_ -= bytes;
    if (left_ < 0.0) throw NotEnoughMemory("the expanded model does not fit into the memory it was given");
  }

 private:
  std::mutex lock_;
  double left_;
};

}  // namespace unkernel::engines
