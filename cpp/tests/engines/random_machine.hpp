// Random support vectors, and the plain sum of kernel values over them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/scoring.hpp"
#include "random_rows.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/expansion.hpp"
#include "unkernel/kernels/kernel_function.hpp"

struct RandomMachine {
  Rows<std::int32_t> vectors;
  std::vector<double> coefficients;
  std::vector<double> intercept;

  RandomMachine(std::size_t count, const RowKind& kind, std::size_t scores, unkernel::Random& random) {
    vectors.features = kind.features;
    for (std::size_t j = 0; j < count; ++j) {
      const auto [columns, values] = random_row<std::int32_t>(kind, random);
      vectors.add(columns, values);
    }
    for (std::size_t i = 0; i < count * scores; ++i) coefficients.push_back(uniform(random));
    for (std::size_t s = 0; s < scores; ++s) intercept.push_back(uniform(random));
  }

  unkernel::engines::SupportVectors view() const { return {vectors.view(), coefficients, intercept}; }
  std::size_t scores() const { return intercept.size(); }
  std::size_t count() const { return static_cast<std::size_t>(vectors.size()); }
  double squared_norm(std::size_t vector) const {
    double sum = 0.0;
    for (std::size_t k = vectors.begin(vector); k < vectors.end(vector); ++k) {
      sum += vectors.values[k] * vectors.values[k];
    }
    return sum;
  }

  scoring::Sums slow_scores(const unkernel::kernels::KernelFunction& kernel, const scoring::Row& row) const {
    scoring::Sums sums(scores());
    for (std::size_t s = 0; s < scores(); ++s) sums[s].add(intercept[s]);
    double row_norm = 0.0;
    for (const auto& entry : row) row_norm += entry.second * entry.second;
    for (std::size_t j = 0; j < count(); ++j) {
      const scoring::Sum value = kernel_value(kernel, product(row, j), row_norm + squared_norm(j));
      for (std::size_t s = 0; s < scores(); ++s) {
        const double b = coefficients[j * scores() + s];
        sums[s].add(b * value.value, std::abs(b) * value.size);
      }
    }
    return sums;
  }

 private:
  scoring::Sum product(const scoring::Row& row, std::size_t vector) const {
    scoring::Sum sum;
    for (std::size_t k = vectors.begin(vector); k < vectors.end(vector); ++k) {
      const auto match = row.find(vectors.columns[k]);
      if (match != row.end()) sum.add(vectors.values[k] * match->second);
    }
    return sum;
  }

  // Returns a kernel value, and the size to which its rounding error is relative.
  static scoring::Sum kernel_value(const unkernel::kernels::KernelFunction& kernel,
                                   const scoring::Sum& product, double norms) {
    using Type = unkernel::kernels::KernelFunction::Type;
    const double inner = kernel.gamma * product.value + kernel.coef0;
    const double inner_size = kernel.gamma * product.size + std::abs(kernel.coef0);
    switch (kernel.type) {
      case Type::linear: return product;
      case Type::polynomial: return {std::pow(inner, kernel.degree), std::pow(inner_size, kernel.degree)};
      case Type::rbf:
        return {std::exp(-kernel.gamma * (norms - 2.0 * product.value)), 1.0 + kernel.gamma * norms};
      default: return {std::tanh(inner), inner_size};
    }
  }
};

// Makes long, short and empty rows, with ordered and unordered columns, with ones and other values.
template <class Index>
Rows<Index> rows_to_score(const RowKind& kind, unkernel::Random& random) {
  Rows<Index> rows;
  rows.features = kind.features;
  for (int row = 0; row < 8; ++row) {
    const auto [columns, values] = random_row<Index>({kind.features, kind.longest, row % 2 == 0}, random);
    scoring::Entries entries;
    for (std::size_t k = 0; k < columns.size(); ++k) entries.emplace_back(columns[k], values[k]);
    if (row < 4) {
      scoring::add_entries(entries, rows);
    } else {
      scoring::add_unordered_row(entries, kind.features, random, rows);
    }
  }
  scoring::add_entries({}, rows);
  scoring::add_entries({{-3, 1.0}, {kind.features + 2, 1.0}}, rows);
  return rows;
}
