// Tables for the engines that keep the support vectors, built by plain loops.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engines/random_machine.hpp"
#include "unkernel/engines/vectors/bitsliced_engine.hpp"
#include "unkernel/engines/vectors/inverted_engine.hpp"

struct VectorSumArrays {
  unkernel::kernels::KernelFunction kernel;
  std::vector<double> coefficients;
  std::vector<double> intercept;
  std::vector<double> norms;
  std::vector<std::uint32_t> class_begins;

  VectorSumArrays(const RandomMachine& machine, const unkernel::kernels::KernelFunction& kernel_function)
      : kernel(kernel_function), coefficients(machine.coefficients), intercept(machine.intercept) {
    if (kernel.type != unkernel::kernels::KernelFunction::Type::rbf) return;
    for (std::size_t j = 0; j < machine.count(); ++j) norms.push_back(machine.squared_norm(j));
  }

  // Keeps only the coefficients of the pairs of each vector's class.
  void keep_pairs(const std::vector<std::uint32_t>& begins) {
    const std::size_t classes = begins.size() - 1;
    std::vector<double> coefficients_of_pairs;
    for (std::size_t c = 0; c < classes; ++c) {
      for (std::size_t j = begins[c]; j < begins[c + 1]; ++j) {
        std::size_t pair = 0;
        for (std::size_t low = 0; low < classes; ++low) {
          for (std::size_t high = low + 1; high < classes; ++high, ++pair) {
            if (low == c || high == c)
              coefficients_of_pairs.push_back(coefficients[j * intercept.size() + pair]);
          }
        }
      }
    }
    coefficients = coefficients_of_pairs;
    class_begins = begins;
  }

  unkernel::engines::VectorSumTables view() const {
    return {kernel, coefficients, intercept, norms, class_begins};
  }
};

// Maps each column to the vectors in which it occurs, and to its values there.
using Holders = std::map<std::int64_t, std::vector<std::pair<std::uint32_t, double>>>;

inline Holders holders_of(const RandomMachine& machine) {
  Holders holders;
  for (std::size_t j = 0; j < machine.count(); ++j) {
    for (std::size_t k = machine.vectors.begin(j); k < machine.vectors.end(j); ++k) {
      holders[machine.vectors.columns[k]].emplace_back(static_cast<std::uint32_t>(j),
                                                       machine.vectors.values[k]);
    }
  }
  return holders;
}

struct InvertedArrays {
  VectorSumArrays sum;
  std::vector<std::int64_t> columns;
  std::vector<double> dense;
  std::vector<std::uint32_t> list_begins{0};
  std::vector<std::uint32_t> lists;
  std::vector<double> list_values;

  InvertedArrays(const RandomMachine& machine, const unkernel::kernels::KernelFunction& kernel, bool binary)
      : sum(machine, kernel) {
    const Holders holders_by_column = holders_of(machine);
    const auto is_dense = [&](const auto& holders) {
      return !binary && 2 * holders.size() > machine.count();
    };
    for (const auto& [column, holders] : holders_by_column) {
      if (is_dense(holders)) add_dense(column, holders, machine.count());
    }
    for (const auto& [column, holders] : holders_by_column) {
      if (!is_dense(holders)) add_list(column, holders, binary);
    }
    if (binary || sum.norms.empty()) return;
    std::fill(sum.norms.begin(), sum.norms.end(), 0.0);
    for (std::size_t i = 0; i < lists.size(); ++i) sum.norms[lists[i]] += list_values[i] * list_values[i];
  }

  unkernel::engines::InvertedTables view() const {
    return {sum.view(), columns, dense, list_begins, lists, list_values};
  }

 private:
  void add_dense(std::int64_t column, const Holders::mapped_type& holders, std::size_t vectors) {
    columns.push_back(column);
    const std::size_t first = dense.size();
    dense.resize(first + vectors, 0.0);
    for (const auto& [vector, value] : holders) dense[first + vector] = value;
  }

  void add_list(std::int64_t column, const Holders::mapped_type& holders, bool binary) {
    columns.push_back(column);
    for (const auto& [vector, value] : holders) {
      lists.push_back(vector);
      if (!binary) list_values.push_back(value);
    }
    list_begins.push_back(static_cast<std::uint32_t>(lists.size()));
  }
};

struct BitslicedArrays {
  VectorSumArrays sum;
  std::vector<std::int64_t> columns;
  std::uint32_t frequent = 0;
  std::vector<std::uint64_t> bits;
  std::vector<std::uint32_t> list_begins{0};
  std::vector<std::uint32_t> lists;

  // Columns of at least `frequent_from` vectors get bits.
  BitslicedArrays(const RandomMachine& machine, const unkernel::kernels::KernelFunction& kernel,
                  std::size_t frequent_from)
      : sum(machine, kernel) {
    const Holders holders_by_column = holders_of(machine);
    for (const auto& [column, holders] : holders_by_column) {
      if (holders.size() < frequent_from) continue;
      columns.push_back(column);
      ++frequent;
      const std::size_t first = bits.size();
      bits.resize(first + unkernel::engines::count_words(machine.count()));
      for (const auto& holder : holders)
        bits[first + holder.first / 64] |= std::uint64_t{1} << (holder.first % 64);
    }
    for (const auto& [column, holders] : holders_by_column) {
      if (holders.size() >= frequent_from) continue;
      columns.push_back(column);
      for (const auto& holder : holders) lists.push_back(holder.first);
      list_begins.push_back(static_cast<std::uint32_t>(lists.size()));
    }
  }

  unkernel::engines::BitslicedTables view() const {
    return {sum.view(), columns, frequent, bits, list_begins, lists};
  }
};
