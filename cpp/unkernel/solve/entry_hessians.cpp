#include "unkernel/solve/entry_hessians.hpp"

#include <algorithm>

#include "unkernel/base/parallel.hpp"

namespace unkernel::solve {
namespace {

// Rows are divided into blocks that do not depend on the number of threads, and neither do sums over them.
std::size_t count_blocks(std::size_t rows) {
  constexpr std::size_t rows_per_block = 32768;
  constexpr std::size_t most_blocks = 16;
  return std::clamp(rows / rows_per_block, std::size_t{1}, most_blocks);
}

}  // namespace

std::size_t ProximalNewton::EntryHessian::heavy_columns(std::span<const std::size_t> support) const {
  constexpr double most_products = 20.0;
  double entries = 0.0;
  for (const std::size_t j : support) entries += static_cast<double>(rows_of(j).size());
  const double columns_of_a_row = entries / std::max(static_cast<double>(rows()), 1.0);
  const double share = 4.0 * most_products / std::max(columns_of_a_row, 1.0);
  return share >= 1.0 ? most_heavy_columns : static_cast<std::size_t>(share * most_heavy_columns);
}

void ProximalNewton::ValueHessian::multiply(std::span<const std::size_t> support,
                                            std::span<const double> direction, std::span<double> product) {
  product_.assign(rows(), 0.0);
  for (std::size_t k = 0; k < support.size(); ++k) add(support[k], direction[k], product_);
  for (std::size_t k = 0; k < support.size(); ++k) product[k] = sum_over(support[k], product_);
}

ProximalNewton::UniformHessian::UniformHessian(const SparseColumns& columns,
                                               std::span<const double> curvature, const Model& model,
                                               int threads)
    : EntryHessian(columns, curvature, model), threads_(threads), states_(rows()) {
  for (const double c : model.row_curvature) largest_ = std::max(largest_, c);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i] = {0.0F, static_cast<float>(model.row_curvature[i] / largest_)};
  }
}

// Lists the columns of each row anew if many of the support are not listed yet.
void ProximalNewton::UniformHessian::choose_listed(std::span<const std::size_t> support) {
  constexpr std::size_t min_share = 8;
  is_listed_.resize(model_.columns.size(), 0);
  not_listed_.clear();
  for (std::size_t k = 0; k < support.size(); ++k) {
    if (is_listed_[support[k]] == 0) not_listed_.push_back(k);
  }
  if (min_share * not_listed_.size() <= support.size()) return;
  not_listed_.clear();
  std::ranges::fill(is_listed_, 0);
  for (const std::size_t j : support) is_listed_[j] = 1;
  list_columns();
}

// Transposes the listed columns. A stretch of rows at a time, so that the lists being written stay in the
// cache.
void ProximalNewton::UniformHessian::list_columns() {
  constexpr std::int64_t rows_per_stretch = 8192;
  column_offsets_.assign(rows() + 1, 0);
  for (std::size_t j = 0; j < model_.columns.size(); ++j) {
    if (is_listed_[j] == 0) continue;
    for (const std::int32_t i : rows_of(j)) ++column_offsets_[static_cast<std::size_t>(i) + 1];
  }
  for (std::size_t i = 0; i < rows(); ++i) column_offsets_[i + 1] += column_offsets_[i];
  columns_of_rows_.resize(column_offsets_.back());
  const auto list_stretch = [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::size_t> next(column_offsets_.begin() + begin, column_offsets_.begin() + end);
    for (std::size_t j = 0; j < model_.columns.size(); ++j) {
      if (is_listed_[j] == 0) continue;
      const auto ids = rows_of(j);
      auto id = std::ranges::lower_bound(ids, static_cast<std::int32_t>(begin));
      for (; id != ids.end() && *id < end; ++id)
        columns_of_rows_[next[static_cast<std::size_t>(*id - begin)]++] = static_cast<std::int32_t>(j);
    }
  };
  parallel_ranges(threads_, static_cast<std::int64_t>(rows()), rows_per_stretch, list_stretch);
  column_states_.resize(count_blocks(rows()));
  for (auto& states : column_states_) states.resize(model_.columns.size());
}

void ProximalNewton::UniformHessian::multiply_rows(std::size_t begin, std::size_t end,
                                                   std::span<ColumnState> states) {
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t first = column_offsets_[i];
    const std::size_t count = column_offsets_[i + 1] - first;
    const std::int32_t* ids = columns_of_rows_.data() + first;
    const double sum = sum_of_terms(count, [&](std::size_t k) {
      return static_cast<double>(states[static_cast<std::size_t>(ids[k])].direction);
    });
    const double change = static_cast<double>(product_[i]) + sum;
    const auto value = static_cast<float>(change * static_cast<double>(states_[i].curvature));
    product_[i] = value;
    if (value == 0.0F) continue;
    for (std::size_t k = 0; k < count; ++k) states[static_cast<std::size_t>(ids[k])].sum += value;
  }
}

void ProximalNewton::UniformHessian::multiply(std::span<const std::size_t> support,
                                              std::span<const double> direction, std::span<double> product) {
  choose_listed(support);
  product_.assign(rows(), 0.0F);
  for (const std::size_t k : not_listed_) {
    const auto step = static_cast<float>(direction[k] * scale(support[k]));
    for (const std::int32_t i : rows_of(support[k])) product_[static_cast<std::size_t>(i)] += step;
  }
  const std::size_t blocks = column_states_.size();
  parallel_for(threads_, static_cast<std::int64_t>(blocks), [&](std::int64_t number) {
    const auto block = static_cast<std::size_t>(number);
    std::vector<ColumnState>& states = column_states_[block];
    std::ranges::fill(states, ColumnState{0.0F, 0.0F});
    for (std::size_t k = 0; k < support.size(); ++k)
      states[support[k]] = {static_cast<float>(direction[k] * scale(support[k])), 0.0F};
    multiply_rows(block * rows() / blocks, (block + 1) * rows() / blocks, states);
  });
  for (std::size_t k = 0; k < support.size(); ++k) {
    double sum = 0.0;
    for (const auto& states : column_states_) sum += static_cast<double>(states[support[k]].sum);
    product[k] = largest_ * scale(support[k]) * sum;
  }
  for (const std::size_t k : not_listed_) {
    const auto ids = rows_of(support[k]);
    const double sum = sum_of_terms(ids.size(), [&](std::size_t n) {
      return static_cast<double>(product_[static_cast<std::size_t>(ids[n])]);
    });
    product[k] = largest_ * scale(support[k]) * sum;
  }
}

}  // namespace unkernel::solve
