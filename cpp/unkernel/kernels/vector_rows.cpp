#include "unkernel/kernels/vector_rows.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace unkernel::kernels {

VectorRows::VectorRows(const KernelFunction& kernel, bool normalize, std::span<const std::int64_t> offsets,
                       std::span<const std::int64_t> entry_offsets, std::span<const std::int32_t> columns,
                       std::span<const double> values)
    : offsets_(offsets.begin(), offsets.end()),
      entry_offsets_(entry_offsets.begin(), entry_offsets.end()),
      columns_(columns.begin(), columns.end()),
      values_(values.begin(), values.end()) {
  const std::size_t vectors = entry_offsets_.size() - 1;
  for (std::size_t v = 0; v < vectors; ++v) {
    double norm = 0.0;
    for (auto k = entry_offsets_[v]; k < entry_offsets_[v + 1]; ++k) {
      norm += values_[static_cast<std::size_t>(k)] * values_[static_cast<std::size_t>(k)];
    }
    const double self = kernel(norm, norm, norm);
    if (!std::isfinite(self))
      throw std::invalid_argument("the kernel of a vector with itself is not finite: scale the vectors");
    squared_norms_.push_back(norm);
    scales_.push_back(normalize && self > 0.0 ? 1.0 / std::sqrt(self) : 1.0);
  }
}

VectorRows::Vector VectorRows::vector(std::size_t v) const {
  const auto begin = static_cast<std::size_t>(entry_offsets_[v]);
  const auto count = static_cast<std::size_t>(entry_offsets_[v + 1]) - begin;
  return {std::span(columns_).subspan(begin, count), std::span(values_).subspan(begin, count), scales_[v],
          squared_norms_[v]};
}

namespace {

double product(const VectorRows::Vector& a, const VectorRows::Vector& b) {
  double sum = 0.0;
  for (std::size_t i = 0, j = 0; i < a.columns.size() && j < b.columns.size();) {
    if (a.columns[i] == b.columns[j]) {
      sum += a.values[i++] * b.values[j++];
    } else if (a.columns[i] < b.columns[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return sum;
}

}  // namespace

double VectorRows::self_kernel(const KernelFunction& kernel, std::size_t example) const {
  double sum = 0.0;
  for (std::size_t i = first(example); i < end(example); ++i) {
    for (std::size_t j = first(example); j < end(example); ++j) {
      const Vector a = vector(i);
      const Vector b = vector(j);
      sum += a.scale * b.scale * kernel(product(a, b), a.squared_norm, b.squared_norm);
    }
  }
  return sum;
}

VectorIndex::VectorIndex(const KernelFunction& kernel, const VectorRows& rows,
                         std::span<const std::int32_t> chosen)
    : kernel_(kernel), begins_(1, 0) {
  // Calls body(index among the chosen examples, number of the vector, vector) for all their vectors.
  const auto for_each_vector = [&](const auto& body) {
    std::int32_t number = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto example = static_cast<std::size_t>(chosen[i]);
      for (std::size_t v = rows.first(example); v < rows.end(example); ++v) body(i, number++, rows.vector(v));
    }
  };
  for_each_vector([&](std::size_t chosen_index, std::int32_t, const VectorRows::Vector& vector) {
    example_.push_back(static_cast<std::int32_t>(chosen_index));
    scales_.push_back(vector.scale);
    squared_norms_.push_back(vector.squared_norm);
    for (const std::int32_t column : vector.columns) {
      std::int32_t& list = list_[static_cast<std::uint64_t>(column)];
      if (list == 0) {
        list = static_cast<std::int32_t>(begins_.size());
        begins_.push_back(0);
      }
      ++begins_[static_cast<std::size_t>(list)];
    }
  });
  for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  postings_.resize(static_cast<std::size_t>(begins_.back()));
  std::vector<std::int64_t> next(begins_.begin(), begins_.end() - 1);
  for_each_vector([&](std::size_t, std::int32_t number, const VectorRows::Vector& vector) {
    for (std::size_t k = 0; k < vector.columns.size(); ++k) {
      auto& place = next[static_cast<std::size_t>(list_[static_cast<std::uint64_t>(vector.columns[k])]) - 1];
      postings_[static_cast<std::size_t>(place++)] = {number, vector.values[k]};
    }
  });
}

void VectorIndex::add_kernels(const VectorRows& rows, std::size_t example, std::vector<double>& products,
                              double* kernels) const {
  for (std::size_t v = rows.first(example); v < rows.end(example); ++v) {
    const VectorRows::Vector vector = rows.vector(v);
    products.assign(example_.size(), 0.0);
    for (std::size_t k = 0; k < vector.columns.size(); ++k) {
      const std::int32_t* list = list_.find(static_cast<std::uint64_t>(vector.columns[k]));
      if (list == nullptr) continue;
      const auto number = static_cast<std::size_t>(*list);
      for (auto p = begins_[number - 1]; p < begins_[number]; ++p) {
        const Posting& posting = postings_[static_cast<std::size_t>(p)];
        products[static_cast<std::size_t>(posting.vector)] += vector.values[k] * posting.value;
      }
    }
    for (std::size_t i = 0; i < products.size(); ++i) {
      kernels[example_[i]] +=
          vector.scale * scales_[i] * kernel_(products[i], vector.squared_norm, squared_norms_[i]);
    }
  }
}

}  // namespace unkernel::kernels
