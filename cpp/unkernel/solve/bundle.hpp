// Stores the cuts of a cutting-plane method, and computes the weights that they propose. A cut is a linear
// lower bound of the risk R(w): offset_k - gradient_k'w <= R(w). Its mass a_k is its dual variable.
//
//   lower bound   L(w) = 1/2 w'w + C max(0, max_k offset_k - gradient_k'w)  <=  1/2 w'w + C R(w)
//   its dual      max_a  sum_k a_k offset_k - 1/2 |sum_k a_k gradient_k|^2,   a >= 0, sum(a) <= C
//
// The weights w = sum_k a_k gradient_k minimise the lower bound. Cuts do not depend on C. A cut takes 8 bytes
// per weight. Cuts without mass for several rounds are dropped. If there are more than `most_cuts` cuts,
// those with the smallest masses are merged into their mass-weighted mean, which is a valid cut.
//
// If weights are too many to store a vector of weights for each cut, they stay implicit: w = sum_i b_i
// phi(x_i) is stored as a pair of its coefficients b and its scores K b, where K is the kernel matrix of the
// rows. The sum of two pairs represents the sum of their weights, and the inner product of (b, K b) and (c, K
// c) is b'(K c).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"

namespace unkernel::solve {

// Selects what a vector contains: weights; or one coefficient per row, followed by one score per row.
enum class Vectors { weights, coefficients_and_scores };

class Bundle {
 public:
  Bundle(std::size_t dimension, std::size_t most_cuts, Vectors vectors);

  // Returns the inner product of the weights that two vectors represent.
  double product(std::span<const double> a, std::span<const double> b) const;

  // Adds a cut. Computes its inner products with the existing cuts on `threads` threads.
  void add(LargeVector<double> gradient, double offset, int threads);

  // Solves the dual for this C, starting from the last solution. Returns the dual's value: a lower bound.
  double solve(double C, double accuracy);

  // Computes the weights sum_k a_k gradient_k.
  void weights(std::span<double> result, int threads) const;

  std::size_t size() const { return cuts_.size(); }
  std::size_t dimension() const { return dimension_; }
  std::span<const double> gradient(std::size_t k) const { return cuts_[k].gradient; }
  double offset(std::size_t k) const { return offsets_[k]; }
  // Returns the number of cut k. Cuts are numbered consecutively and keep their numbers, so a caller can
  // store each cut once.
  std::int64_t number(std::size_t k) const { return cuts_[k].number; }
  std::span<const double> masses() const { return masses_; }
  void set_masses(std::span<const double> masses);

 private:
  struct Cut {
    LargeVector<double> gradient;
    std::int64_t number;
    int idle = 0;  // consecutive rounds without mass
  };

  void scale_masses(double C);
  void drop_idle_cuts();
  void merge_lightest();
  void remove(std::size_t k);
  double& gram(std::size_t i, std::size_t j) { return gram_[i * capacity_ + j]; }

  std::size_t dimension_;
  Vectors vectors_;
  std::size_t capacity_;
  std::int64_t next_number_ = 0;
  std::vector<Cut> cuts_;
  std::vector<double> offsets_;
  std::vector<double> masses_;
  std::vector<double> gram_;  // capacity x capacity
};

}  // namespace unkernel::solve
