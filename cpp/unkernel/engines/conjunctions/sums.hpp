// The scores of a row as they add up.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace unkernel::engines {

// Width 0: as many as the model has.
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
  explicit Sums(std::size_t width) : sum_(width) {}
  std::size_t width() const { return sum_.size(); }
  void add(const double* weights) {
    for (std::size_t s = 0; s < sum_.size(); ++s) sum_[s] += weights[s];
  }
  void add(const double* weights, double factor) {
    for (std::size_t s = 0; s < sum_.size(); ++s) sum_[s] += factor * weights[s];
  }
  void add_to(double* out) const {
    for (std::size_t s = 0; s < sum_.size(); ++s) out[s] += sum_[s];
  }
  void add_to(Sums& other) const { other.add(sum_.data()); }
  std::span<double> all() { return sum_; }

 private:
  std::vector<double> sum_;
};

}  // namespace unkernel::engines
