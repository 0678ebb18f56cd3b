#include "unkernel/solve/normal_system.hpp"

#include <algorithm>
#include <cmath>

#include "unkernel/base/block_products.hpp"
#include "unkernel/base/gather.hpp"

namespace unkernel::solve {
namespace {

// The matrices are I plus a positive semidefinite matrix, so only rounding errors make pivots smaller than 1.
constexpr double least_pivot_of_identity = 1e-8;

double dot(const double* a, const double* b, std::size_t count) {
  return sum_of_terms(count, [&](std::size_t k) { return a[k] * b[k]; });
}

}  // namespace

// Factors the columns in blocks. Subtracts the contribution of each block from all later columns, as a
// product of blocks.
void Cholesky::factor(double least_pivot) {
  constexpr std::size_t block_columns = 64;
  for (std::size_t begin = 0; begin < size_; begin += block_columns) {
    const std::size_t end = std::min(begin + block_columns, size_);
    for (std::size_t i = begin; i < size_; ++i) {
      double* block = row(i) + begin;
      for (std::size_t j = begin; j < std::min(i, end); ++j) {
        block[j - begin] = (block[j - begin] - dot(block, row(j) + begin, j - begin)) / row(j)[j];
      }
      if (i >= end) continue;
      const double pivot = row(i)[i] - dot(block, block, i - begin);
      row(i)[i] = std::sqrt(std::max(pivot, least_pivot));
    }
    const auto fill = [&](Panel& panel, std::size_t, std::size_t) {
      for (std::size_t i = end; i < size_; ++i) {
        for (std::size_t k = begin; k < end; ++k) panel.at(i - end, k - begin) = row(i)[k];
      }
    };
    if (end < size_) add_products(size_ - end, end - begin, fill, -1.0, 1, {row(end) + end, size_});
  }
}

void Cholesky::solve(std::span<double> x) const {
  for (std::size_t i = 0; i < size_; ++i) x[i] = (x[i] - dot(row(i), x.data(), i)) / row(i)[i];
  for (std::size_t i = size_; i-- > 0;) {
    x[i] /= row(i)[i];
    for (std::size_t j = 0; j < i; ++j) x[j] -= row(i)[j] * x[i];
  }
}

ColumnSystem::ColumnSystem(MappedRows rows, int threads)
    : rows_(std::move(rows)), threads_(threads), matrix_(rows_.dimension) {
  const auto cells = static_cast<double>(rows_.offsets.size() - 1) * static_cast<double>(rows_.dimension);
  constexpr double min_density = 0.2;
  uses_blocks_ = static_cast<double>(rows_.columns.size()) >= min_density * cells;
}

void ColumnSystem::add_row_by_row(std::span<const double> E) {
  for (std::size_t i = 0; i < E.size(); ++i) {
    const auto begin = static_cast<std::size_t>(rows_.offsets[i]);
    const auto end = static_cast<std::size_t>(rows_.offsets[i + 1]);
    for (std::size_t a = begin; a < end; ++a) {
      double* row = matrix_.row(static_cast<std::size_t>(rows_.columns[a]));
      const double factor = E[i] * rows_.values[a];
      for (std::size_t b = begin; b <= a; ++b) row[rows_.columns[b]] += factor * rows_.values[b];
    }
  }
}

void ColumnSystem::add_by_blocks(std::span<const double> E) {
  const auto fill = [&](Panel& panel, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const double root = std::sqrt(E[i]);
      for (auto k = static_cast<std::size_t>(rows_.offsets[i]);
           k < static_cast<std::size_t>(rows_.offsets[i + 1]); ++k) {
        panel.at(static_cast<std::size_t>(rows_.columns[k]), i - first) = root * rows_.values[k];
      }
    }
  };
  add_products(rows_.dimension, E.size(), fill, 1.0, threads_, {matrix_.row(0), rows_.dimension});
}

void ColumnSystem::factor(std::span<const double> E) {
  matrix_.clear();
  if (uses_blocks_) {
    add_by_blocks(E);
  } else {
    add_row_by_row(E);
  }
  for (std::size_t i = 0; i < rows_.dimension; ++i) matrix_.row(i)[i] += 1.0;
  matrix_.factor(least_pivot_of_identity);
}

std::vector<double> ColumnSystem::combine_rows(std::span<const double> u) const {
  std::vector<double> w(rows_.dimension, 0.0);
  for (std::size_t i = 0; i < u.size(); ++i) {
    for (auto k = static_cast<std::size_t>(rows_.offsets[i]);
         k < static_cast<std::size_t>(rows_.offsets[i + 1]); ++k) {
      w[static_cast<std::size_t>(rows_.columns[k])] += u[i] * rows_.values[k];
    }
  }
  return w;
}

std::vector<double> ColumnSystem::multiply_rows(std::span<const double> w) const {
  std::vector<double> f(rows_.offsets.size() - 1, 0.0);
  for (std::size_t i = 0; i < f.size(); ++i) {
    for (auto k = static_cast<std::size_t>(rows_.offsets[i]);
         k < static_cast<std::size_t>(rows_.offsets[i + 1]); ++k) {
      f[i] += w[static_cast<std::size_t>(rows_.columns[k])] * rows_.values[k];
    }
  }
  return f;
}

std::vector<double> ColumnSystem::scores(std::span<const double> u) const {
  return multiply_rows(combine_rows(u));
}

// The change of w is x = (I + sum E_i phi_i phi_i')^-1 sum e_i phi_i, and the change of scores is df = phi'x.
Change ColumnSystem::solve(std::span<const double> e) const {
  std::vector<double> x = combine_rows(e);
  matrix_.solve(x);
  return {{}, multiply_rows(x)};
}

void RowSystem::factor(std::span<const double> E) {
  const std::size_t n = E.size();
  root_.resize(n);
  for (std::size_t i = 0; i < n; ++i) root_[i] = std::sqrt(E[i]);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) matrix_.row(i)[j] = root_[i] * gram_[i * n + j] * root_[j];
    matrix_.row(i)[i] += 1.0;
  }
  matrix_.factor(least_pivot_of_identity);
}

// The change of u is du = sqrt(E) (I + sqrt(E) K sqrt(E))^-1 e / sqrt(E), without cancellation even for huge
// E.
Change RowSystem::solve(std::span<const double> e) const {
  std::vector<double> u(e.size());
  for (std::size_t i = 0; i < u.size(); ++i) u[i] = e[i] / root_[i];
  matrix_.solve(u);
  for (std::size_t i = 0; i < u.size(); ++i) u[i] *= root_[i];
  std::vector<double> f = scores(u);
  return {std::move(u), std::move(f)};
}

std::vector<double> RowSystem::scores(std::span<const double> u) const {
  std::vector<double> f(u.size());
  for (std::size_t i = 0; i < u.size(); ++i) f[i] = dot(gram_.data() + i * u.size(), u.data(), u.size());
  return f;
}

}  // namespace unkernel::solve
