// Small dense problems, and their objectives computed from scratch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "solve/static_loss.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/dual_problem.hpp"
#include "unkernel/solve/normal_system.hpp"

namespace dense_problem {

using unkernel::Random;
using unkernel::solve::Coordinate;
using unkernel::solve::Coordinates;
using namespace static_loss;
using unkernel::solve::Costs;

// Rows without a map: phi(x) = x.
class DenseRows {
 public:
  DenseRows(std::int64_t rows, std::size_t width, double scale, std::uint64_t seed)
      : rows_(rows), width_(width) {
    Random random(seed);
    for (std::size_t k = 0; k < static_cast<std::size_t>(rows) * width; ++k) {
      entries_.push_back(scale * (random.below(2001) / 1000.0 - 1.0));
    }
  }

  std::int64_t size() const { return rows_; }
  std::size_t width() const { return width_; }
  const double* row(std::int64_t i) const { return entries_.data() + static_cast<std::size_t>(i) * width_; }
  void clear_row(std::int64_t i) {
    std::fill_n(entries_.begin() + i * static_cast<std::ptrdiff_t>(width_), width_, 0.0);
  }
  void stretch_columns() {
    for (std::size_t k = 0; k < entries_.size(); ++k)
      entries_[k] *= static_cast<double>(1U << (k % width_ % 6));
  }
  double dot(std::int64_t i, const double* w) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < width_; ++k) sum += row(i)[k] * w[k];
    return sum;
  }
  void axpy(std::int64_t i, double step, double* w) const {
    for (std::size_t k = 0; k < width_; ++k) w[k] += step * row(i)[k];
  }
  double squared_norm(std::int64_t i) const { return dot(i, row(i)); }
  void prefetch_header(std::int64_t) const {}
  void prefetch(std::int64_t) const {}

 private:
  std::int64_t rows_;
  std::size_t width_;
  std::vector<double> entries_;
};

// Dense rows with a kernel. As long as mean_map_size() is large, the solver finishes on the Gram matrix.
class DenseRowsWithKernel : public DenseRows {
 public:
  using DenseRows::DenseRows;
  std::vector<double> gram(std::span<const std::int32_t> subset, int) const {
    ++gram_calls;
    std::vector<double> matrix;
    for (const std::int32_t i : subset) {
      for (const std::int32_t j : subset) matrix.push_back(dot(i, row(j)));
    }
    return matrix;
  }
  std::size_t dimension() const { return width(); }
  double mean_map_size() const { return map_size; }
  double mean_row_size() const { return 1.0; }
  double map_size = 1e6;
  mutable int gram_calls = 0;
};

// Dense rows with a kernel and an explicit map.
class DenseRowsWithMap : public DenseRowsWithKernel {
 public:
  using DenseRowsWithKernel::DenseRowsWithKernel;
  unkernel::solve::MappedRows mapped() const {
    unkernel::solve::MappedRows rows;
    for (std::int64_t i = 0; i < size(); ++i) {
      for (std::size_t k = 0; k < width(); ++k) {
        if (row(i)[k] == 0.0) continue;
        rows.columns.push_back(static_cast<std::int32_t>(k));
        rows.values.push_back(row(i)[k]);
      }
      rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
    }
    rows.dimension = width();
    return rows;
  }
};

// Makes labels from a noisy plane; every seventh row has both labels, and costs differ.
template <class Rows>
Coordinates costs_for(const Rows& rows, double C, std::uint64_t seed) {
  Random random(seed);
  Coordinates coordinates(static_cast<std::size_t>(rows.size()));
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    Costs& costs = coordinates[static_cast<std::size_t>(i)].costs;
    const double cost = C * (0.5 + random.below(1000) / 1000.0);
    const bool positive = (rows.row(i)[0] > 0.3 * rows.row(i)[1]) != (random.below(10) == 0);
    (positive ? costs.positive : costs.negative) = cost;
    if (i % 7 == 0) (positive ? costs.negative : costs.positive) = 0.3 * cost;
  }
  return coordinates;
}

// Returns targets of regression: a plane with noise. Returns no targets for losses of classification.
template <class LossKind, class Rows>
std::vector<double> targets_for(const Rows& rows) {
  Random random(31);
  std::vector<double> targets;
  if (!LossKind::has_targets) return targets;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    targets.push_back(2.0 * rows.row(i)[0] - rows.row(i)[1] + random.below(1000) / 1000.0);
  }
  return targets;
}

template <class LossKind, class Rows>
double primal(const Rows& rows, const Coordinates& coordinates, const std::vector<double>& w) {
  const std::vector<double> targets = targets_for<LossKind>(rows);
  double value = 0.0;
  for (const double weight : w) value += 0.5 * weight * weight;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    value +=
        LossKind::loss(coordinates[k].costs, rows.dot(i, w.data()) - (targets.empty() ? 0.0 : targets[k]));
  }
  return value;
}

// Returns w = sum_i u_i phi_i, from the dual variables alone.
template <class Rows>
std::vector<double> weights_of(const Rows& rows, const Coordinates& coordinates) {
  std::vector<double> w(rows.width(), 0.0);
  for (std::int64_t i = 0; i < rows.size(); ++i)
    rows.axpy(i, coordinates[static_cast<std::size_t>(i)].u, w.data());
  return w;
}

template <class LossKind, class Rows>
double dual(const Rows& rows, const Coordinates& coordinates) {
  double value = 0.0;
  for (const Coordinate& c : coordinates) value += LossKind::dual(c.costs, c.u);
  const std::vector<double> targets = targets_for<LossKind>(rows);
  for (std::size_t i = 0; i < targets.size(); ++i) value += coordinates[i].u * targets[i];
  for (const double weight : weights_of(rows, coordinates)) value -= 0.5 * weight * weight;
  return value;
}

}  // namespace dense_problem
