// The step of an expansion that fills the dense head.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "unkernel/engines/conjunctions/expansion_task.hpp"
#include "unkernel/engines/conjunctions/table_builder.hpp"

namespace unkernel::engines {

// Adds the conjunctions of an owner, one support vector after another: U ∪ T for each conjunction U of the
// owner with other ranks that are not fused, and each set T of fused ranks.
class HeadFiller {
 public:
  HeadFiller(const ExpansionTask& task, const Zones& zones, ConjunctionArrays& arrays)
      : task_(task),
        index_(task.plan.map.degree, task.plan.basis),
        fused_(zones.fused),
        low_(arrays.head_low.data()),
        top_(arrays.head_top.data()) {}

  void fill(Rank owner) {
    const auto& vectors = task_.vectors;
    for (std::uint32_t h = vectors.owner_begins[owner]; h < vectors.owner_begins[owner + 1]; ++h) {
      const std::uint32_t vector = vectors.holders[h];
      begin_ = vectors.begins[vector];
      coefficients_ = task_.coefficients(vector);
      list_fused(vectors.places[h]);
      if (owner < fused_) {
        for (const FusedSet& set : sets_)
          add_low(0, set.mask | std::uint32_t{1} << owner, set.size + 1, 1, 1.0);
      } else {
        add_single(owner - fused_, vectors.places[h]);
      }
    }
    if (owner >= fused_) finish(owner - fused_);
  }

  // Completes the entry of the empty U. Call it after fill() of all fused owners.
  void finish_fused() { finish_low(0, 1); }

 private:
  struct FusedSet {
    std::uint32_t mask;
    int size;
  };

  // Lists the sets of fewer than `degree` fused ranks among the items before `end`.
  void list_fused(std::uint32_t end) {
    sets_.assign(1, {0, 0});
    for (std::uint32_t k = begin_; k < end && task_.vectors.items[k] < fused_; ++k) {
      for (std::size_t i = 0, count = sets_.size(); i < count; ++i) {
        if (sets_[i].size + 1 < index_.degree())
          sets_.push_back({sets_[i].mask | std::uint32_t{1} << task_.vectors.items[k], sets_[i].size + 1});
      }
    }
  }

  void add(double* weights, double factor) const {
    for (std::size_t s = 0; s < task_.scores; ++s) weights[s] += factor * coefficients_[s];
  }
  void add_low(Key key, std::uint32_t mask, int size, int repeats, double product) const {
    add(low_ + ((key << fused_) + mask) * task_.scores, product * task_.constant(size, repeats));
  }
  // Adds the entry of U alone, and the entries of U with each set of fused ranks.
  void add_fused(Key key, int size, int repeats, double product) const {
    for (const FusedSet& set : sets_) {
      if (size + set.size <= index_.degree()) add_low(key, set.mask, size + set.size, repeats, product);
    }
  }

  // Returns 1 if a feature may be its own partner, as in monomials; otherwise 0.
  std::uint32_t self_partners() const { return task_.sets() ? 0 : 1; }
  std::uint32_t first_partner(std::uint32_t end) const {
    std::uint32_t k = begin_;
    while (k < end && task_.vectors.items[k] < fused_) ++k;
    return k;
  }

  void add_single(Rank a, std::uint32_t place) {
    const double product = task_.value(place);
    if (index_.degree() == 1) return add(top_ + a * task_.scores, product * task_.constant(1, 1));
    const Key block = index_.low().block(a);
    add_fused(block, 1, 1, product);
    partners_ = first_partner(place);
    for (std::uint32_t k = partners_; k < place + self_partners(); ++k) {
      const Rank b = task_.vectors.items[k] - fused_;
      add_pair(a, b, k, b == a ? 2 : 1, product * task_.value(k));
    }
  }

  void add_pair(Rank a, Rank b, std::uint32_t place, int repeats, double product) {
    if (index_.degree() == 2)
      return add(top_ + (index_.top(a) + b) * task_.scores, product * task_.constant(2, repeats));
    add_fused(index_.low().block(a) + 1 + b, 2, repeats, product);
    for (std::uint32_t k = partners_; k < place + self_partners(); ++k) {
      const Rank c = task_.vectors.items[k] - fused_;
      const int run = c != b ? 1 : c == a ? 3 : 2;  // how often the last feature occurs
      add_triple(a, b, c, k, run, repeats * run, product * task_.value(k));
    }
  }

  void add_triple(Rank a, Rank b, Rank c, std::uint32_t place, int run, int repeats, double product) {
    const ConjunctionIndex& low = index_.low();
    if (index_.degree() == 3) {
      return add(top_ + (index_.top(a) + low.triangle(b) + c) * task_.scores,
                 product * task_.constant(3, repeats));
    }
    add_fused(low.block(a) + low.triples(a) + low.triangle(b) + c, 3, repeats, product);
    const Key row = index_.top(a) + low.tetrahedron(b) + low.triangle(c);
    for (std::uint32_t k = partners_; k < place + self_partners(); ++k) {
      const Rank e = task_.vectors.items[k] - fused_;
      add(top_ + (row + e) * task_.scores,
          product * task_.value(k) * task_.constant(4, e == c ? repeats * (run + 1) : repeats));
    }
  }

  void finish(Rank a) {
    if (index_.degree() > 1) finish_low(index_.low().block(a), index_.low().block(a + 1));
    prune(top_ + index_.top(a) * task_.scores, index_.top(a + 1) - index_.top(a));
  }
  void finish_low(Key first, Key last) {
    prune(low_ + (first << fused_) * task_.scores, (last - first) << fused_);
    for (Key key = first; key < last; ++key)
      sum_over_subsets(low_ + (key << fused_) * task_.scores, fused_, task_.scores);
  }
  void prune(double* weights, std::size_t count) const {
    for (std::size_t k = 0; task_.pruning.is_active() && k < count; ++k, weights += task_.scores) {
      if (!task_.pruning.keeps(weights)) std::fill_n(weights, task_.scores, 0.0);
    }
  }

  const ExpansionTask& task_;
  HeadIndex index_;
  std::uint32_t fused_;
  double* low_;
  double* top_;
  std::uint32_t begin_ = 0;
  std::uint32_t partners_ = 0;  // where the items that are not fused begin
  const double* coefficients_ = nullptr;
  std::vector<FusedSet> sets_;
};

}  // namespace unkernel::engines
