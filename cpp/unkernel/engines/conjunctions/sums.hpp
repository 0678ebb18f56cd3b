// Accumulators for the scores of a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace unkernel::engines {

// Width is the number of scores if it is known when compiling, so that the sums stay in registers; otherwise
// 0.
template <std::size_t Width>
class Sums {
 public:
  explicit Sums(std::size_t) {}
  static constexpr std::size_t width() { return Width; }
  void add(const double* weights) {
    for (std::size_t s = 0; s < Width; ++s) sum_[s] += weights[s];
  }
  void add(const double* weights, double factor) {
    for (std::size_t s = 0; s < Width; ++s) sum_[s] += factor * weights[s];
  }
  void add_to(double* out) const {
    for (std::size_t s = 0; s < Width; ++s) out[s] += sum_[s];
  }
  void add_to(Sums& other) const { other.add(sum_); }
  std::span<double> all() { return sum_; }

 private:
  double sum_[Width] = {};
};

template <>
class Sums<0> {
 public:
  explicit Sums(std::size_t width) : width_(width) {
    if (width > max_inline_scores) allocated_ = std::make_unique_for_overwrite<double[]>(width);
    sum_ = width > max_inline_scores ? allocated_.get() : inline_;
    std::fill_n(sum_, width, 0.0);
  }
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  std::size_t width() const { return width_; }
  void add(const double* weights) {
    for (std::size_t s = 0; s < width_; ++s) sum_[s] += weights[s];
  }
  void add(const double* weights, double factor) {
    for (std::size_t s = 0; s < width_; ++s) sum_[s] += factor * weights[s];
  }
  void add_to(double* out) const {
    for (std::size_t s = 0; s < width_; ++s) out[s] += sum_[s];
  }
  void add_to(Sums& other) const { other.add(sum_); }
  std::span<double> all() { return {sum_, width_}; }

 private:
  static constexpr std::size_t max_inline_scores = 64;  // more scores need an allocation

  std::size_t width_;
  double* sum_;
  double inline_[max_inline_scores];
  std::unique_ptr<double[]> allocated_;
};

}  // namespace unkernel::engines
