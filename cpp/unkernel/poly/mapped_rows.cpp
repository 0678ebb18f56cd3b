#include "unkernel/poly/mapped_rows.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "unkernel/poly/condensed_rows.hpp"
#include "unkernel/poly/split_rows.hpp"
#include "unkernel/solve/row_sums.hpp"

namespace unkernel::poly {
namespace {

using kernels::Key;

// Returns the columns in the order of their keys. Only columns of the same condensed segment have to be
// sorted.
std::vector<std::pair<Key, std::size_t>> order_columns(const Columns& columns) {
  std::vector<std::pair<Key, std::size_t>> order;
  order.reserve(columns.keys.size());
  for (std::size_t column = 1; column < columns.keys.size(); ++column) {
    order.emplace_back(columns.keys[column], column);
  }
  for (std::size_t s = 0; s + 1 < columns.segments.size(); ++s) {
    std::sort(order.begin() + columns.segments[s] - 1, order.begin() + columns.segments[s + 1] - 1);
  }
  return order;
}

void append_if_used(Key key, std::size_t column, const WeightVectors& vectors, Conjunctions& conjunctions) {
  bool is_used = false;
  for (const auto& vector : vectors) is_used = is_used || vector.data()[column] != 0.0;
  if (!is_used) return;
  conjunctions.keys.push_back(key);
  for (const auto& vector : vectors) conjunctions.weights.push_back(vector.data()[column]);
}

}  // namespace

void check_scale(const kernels::FeatureMap& map) {
  constexpr double smallest_constant = 1e-250, largest_constant = 1e250;
  const double constant = map.monomial(map.degree, 1);
  if (!(constant > smallest_constant && constant < largest_constant)) {
    throw std::invalid_argument(
        "gamma to the power of the degree is too small or too large to compute with: scale the features");
  }
  for (int size = 0; size < map.degree; ++size) {
    if (!(map.monomial(size, 1) < largest_constant)) {
      throw std::invalid_argument(
          "coef0 to the power of the degree is too large to compute with: lower coef0");
    }
  }
}

StorageEstimate estimate_and_plan(const DistinctRows& examples, const MapOptions& options, int problems) {
  StorageEstimate estimate = estimate_storage(examples, options.map.degree, problems);
  if (should_plan_split(options.storage, estimate, options.memory) && can_split(examples, options.map)) {
    estimate.split = plan_split(examples, options.map.degree, problems, options.memory);
  }
  if (has_kernel_model(options.map)) estimate_kernel(examples, problems, estimate);
  return estimate;
}

std::unique_ptr<StoredRows> store_rows(const DistinctRows& examples, const MapOptions& options,
                                       Storage storage, const SplitPlan& split, const Monitor& monitor) {
  switch (options.map.degree == 1 ? Storage::on_the_fly : storage) {
    case Storage::condensed: return store_condensed(examples, options.map, options.threads, monitor);
    case Storage::kernel: return store_kernel(examples, options.map, options.threads);
    case Storage::split: return store_split(examples, options.map, split, options.threads, monitor);
    default: return store_on_the_fly(examples, options.map);
  }
}

Conjunctions conjunctions_of(const StoredRows& rows, const WeightVectors& vectors) {
  Conjunctions conjunctions;
  for (const auto& vector : vectors) conjunctions.intercept.push_back(vector.data()[0]);
  if (rows.columns() != nullptr) {
    for (const auto& [key, column] : order_columns(*rows.columns())) {
      append_if_used(key, column, vectors, conjunctions);
    }
    return conjunctions;
  }
  for (std::size_t column = 1; column < rows.dimension(); ++column) {
    append_if_used(column, column, vectors, conjunctions);
  }
  return conjunctions;
}

MappedRows::MappedRows(const DistinctRows& examples, const MapOptions& options, int vectors_per_row,
                       const Monitor& monitor) {
  constexpr int weight_vectors = 2;  // one for the sum of a cut, one for the result
  check_scale(options.map);
  check_duals(examples, 1, vectors_per_row, options.memory);
  const StorageEstimate estimate = estimate_and_plan(examples, options, weight_vectors);
  if (options.map.degree == 1) check_weights(estimate, options.memory);
  storage_ = options.map.degree == 1 ? Storage::on_the_fly
                                     : choose_storage(options.storage, estimate, options.memory);
  try {
    stored_ = store_rows(examples, options, storage_, estimate.split, monitor);
  } catch (const std::bad_alloc&) {
    throw refused_memory(estimate, storage_, bytes_of_duals(examples, 1, vectors_per_row));
  }
}

LargeArray<double> MappedRows::sum(std::span<const double> coefficients, Threads threads) const {
  if (coefficients.size() != static_cast<std::size_t>(stored_->passes().size()))
    throw std::invalid_argument("there must be one coefficient per distinct row");
  LargeArray<double> weights(stored_->dimension());
  solve::sum_rows(stored_->passes(), coefficients, weights.span(), threads);
  return weights;
}

std::vector<double> MappedRows::scores(std::span<const double> coefficients, Threads threads) const {
  const LargeArray<double> weights = sum(coefficients, threads);
  std::vector<double> scores(coefficients.size());
  solve::score_rows(stored_->passes(), {weights.data(), stored_->dimension()}, scores, threads);
  return scores;
}

Conjunctions MappedRows::weights_of(std::span<const double> coefficients, Threads threads) const {
  WeightVectors vectors;
  vectors.push_back(sum(coefficients, threads));
  return conjunctions_of(*stored_, vectors);
}

}  // namespace unkernel::poly
