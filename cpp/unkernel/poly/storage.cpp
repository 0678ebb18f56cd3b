#include "unkernel/poly/storage.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "unkernel/base/error.hpp"
#include "unkernel/kernels/conjunction_index.hpp"
#include "unkernel/poly/condensed_rows.hpp"

namespace unkernel::poly {
namespace {

double binomial(double n, int k) {
  double result = 1.0;
  for (int i = 0; i < k; ++i) result *= (n - i) / (i + 1);
  return std::max(result, 0.0);
}

// Returns how many of the C(n, k) products of k different features would occur at least once if all features
// were equally likely: eq. (11).
double expected_products(const DistinctRows& examples, int k) {
  const auto n = static_cast<double>(examples.used_features());
  const double possible = binomial(n, k);
  if (possible <= 0.0) return 0.0;
  double log_absent = 0.0;
  double occurrences = 0.0;
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    const double products = binomial(static_cast<double>(examples.row_size(i)), k);
    occurrences += products;
    if (products >= possible) return possible;
    log_absent += std::log1p(-products / possible);
  }
  return std::min(possible * -std::expm1(log_absent), occurrences);
}

std::string describe_bytes(double bytes) {
  const char* unit = bytes < 1e9 ? " MB" : " GB";
  const double value = bytes < 1e9 ? bytes / 1e6 : bytes / 1e9;
  const double rounded = std::max(std::round(value * 10.0) / 10.0, 0.1);
  std::string text = std::to_string(rounded);
  return text.substr(0, text.find('.') + 2) + unit;
}

bool fits(double bytes, double memory) { return memory <= 0.0 || bytes <= memory; }

double min_bytes_of_weights(const StorageEstimate& estimate) {
  return std::min(estimate.on_the_fly_bytes, estimate.condensed_bytes);
}

[[noreturn]] void fail_for_memory(const std::string& what, double bytes, double memory) {
  throw NotEnoughMemory(what + " needs about " + describe_bytes(bytes) + " and " + describe_bytes(memory) +
                        " are available; drop rare features or lower the degree");
}

}  // namespace

void check_feature_count(const DistinctRows& examples, int degree) {
  const kernels::ConjunctionIndex index(degree, kernels::basis_of(examples.binary()));
  const auto features = static_cast<std::uint64_t>(examples.used_features());
  if (features > index.most_features()) {
    throw std::invalid_argument("too many features (" + std::to_string(features) + ") for degree " +
                                std::to_string(degree) + "; at most " +
                                std::to_string(index.most_features()) + " may occur");
  }
}

StorageEstimate estimate_storage(const DistinctRows& examples, int degree, int problems) {
  const bool binary = examples.binary();
  const kernels::ConjunctionIndex index(degree, kernels::basis_of(binary));
  const auto features = static_cast<std::uint64_t>(examples.used_features());
  check_feature_count(examples, degree);
  StorageEstimate estimate;
  const auto n = static_cast<double>(features);
  estimate.possible_columns = static_cast<double>(index.count(features));
  estimate.expected_columns = 1 + n;
  for (int k = 2; k <= degree; ++k) estimate.expected_columns += expected_products(examples, k);
  if (!binary) estimate.expected_columns += (degree >= 2 ? n : 0) + (degree >= 3 ? n * n : 0);
  estimate.expected_columns = std::min(estimate.expected_columns, estimate.possible_columns);
  estimate.mapped_nonzeros = mean_mapped_size(examples, degree) * static_cast<double>(examples.rows());

  const double vectors = std::max(problems, 1);  // all weight vectors stay in memory until the model is built
  const double model = estimate.expected_columns * (8.0 + 8.0 * vectors);
  double bytes_per_place = 0.0;
  if (degree > 1) bytes_per_place = longest_segment(examples, degree) <= most_short_places ? 2.0 : 4.0;
  estimate.on_the_fly_bytes = 8.0 * vectors * estimate.possible_columns + model;
  // The terms are columns and their keys, the model, and the occurrences of each feature.
  estimate.condensed_bytes = bytes_per_place * estimate.mapped_nonzeros +
                             estimate.expected_columns * (16.0 + 8.0 * vectors) + model +
                             12.0 * static_cast<double>(examples.features.size());
  return estimate;
}

// Estimates the memory of a kernel matrix, and whether it is fastest. If mapped rows have several times as
// many entries as there are rows, a step on weights takes longer than a step on the kernel matrix. But a
// model from the kernel matrix consists of support vectors, which predict more slowly than weights on 0/1
// data. And if there are few weights, training on weights is fast, too.
void estimate_kernel(const DistinctRows& examples, int problems, StorageEstimate& estimate) {
  constexpr double most_rows = 4096;  // 128 MiB
  constexpr double few_weights = 2e5;
  const auto rows = static_cast<double>(examples.rows());
  constexpr double panel = 256.0;  // columns of a panel in base/block_products.hpp
  const double vectors = std::max(problems, 1);
  estimate.kernel_bytes = 8.0 * rows * (rows + panel + vectors) +
                          12.0 * static_cast<double>(examples.features.size());  // the model
  const bool has_long_maps = estimate.mapped_nonzeros >= 4.0 * rows * rows;
  const bool has_many_weights = estimate.expected_columns * vectors >= few_weights;
  estimate.is_kernel_fastest = !examples.binary() && rows <= most_rows && has_long_maps && has_many_weights;
}

bool has_kernel_model(const kernels::FeatureMap& map) {
  return map.degree >= 2 && map.kind == kernels::FeatureMap::Kind::kernel;
}

double bytes_of_duals(const DistinctRows& examples, int problems, int copies) {
  return 8.0 * copies * static_cast<double>(examples.rows()) * std::max(problems, 1);
}

void check_duals(const DistinctRows& examples, int problems, int copies, double memory) {
  const double bytes = bytes_of_duals(examples, problems, copies);
  if (fits(bytes, memory)) return;
  throw NotEnoughMemory(std::to_string(examples.rows()) + " different rows times " +
                        std::to_string(problems) + " classes need about " + describe_bytes(bytes) + " and " +
                        describe_bytes(memory) +
                        " are available; merge rare classes, or train on fewer rows");
}

void check_weights(const StorageEstimate& estimate, double memory) {
  if (!fits(estimate.on_the_fly_bytes, memory)) {
    throw NotEnoughMemory("the weights of all features and classes need about " +
                          describe_bytes(estimate.on_the_fly_bytes) + " and " + describe_bytes(memory) +
                          " are available; merge rare classes, or drop rare features");
  }
}

double bytes_of(const StorageEstimate& estimate, Storage storage) {
  switch (storage) {
    case Storage::on_the_fly: return estimate.on_the_fly_bytes;
    case Storage::condensed: return estimate.condensed_bytes;
    case Storage::kernel: return estimate.kernel_bytes;
    default: return estimate.split.bytes;
  }
}

bool fits_without_kernel(const StorageEstimate& estimate, double memory) {
  return fits(std::min(min_bytes_of_weights(estimate), estimate.split.bytes), memory);
}

NotEnoughMemory refused_memory(const StorageEstimate& estimate, Storage storage, double bytes_of_duals) {
  return NotEnoughMemory("training needs about " +
                         describe_bytes(bytes_of(estimate, storage) + bytes_of_duals) +
                         ", which the system could not provide; free memory or raise the limit, drop rare "
                         "features, lower the degree, or train on fewer rows");
}

// Returns whether split rows are worth planning. They produce a model of support vectors, so they are used
// only if no other storage fits, or if all others need a lot of memory.
bool should_plan_split(Storage requested, const StorageEstimate& estimate, double memory) {
  constexpr double large_bytes = 16e9;  // for rare features, the estimate is several times too high
  const double bytes_of_weights = min_bytes_of_weights(estimate);
  const bool needs_much_memory = bytes_of_weights > large_bytes || !fits(bytes_of_weights, memory);
  return requested == Storage::split || (requested == Storage::automatic && needs_much_memory);
}

// Returns whether the rows can be split: splitting needs a polynomial kernel and binary features.
bool can_split(const DistinctRows& examples, const kernels::FeatureMap& map) {
  return has_kernel_model(map) && examples.binary();
}

Storage choose_storage(Storage requested, const StorageEstimate& estimate, double memory) {
  const auto fits = [&](double bytes) { return poly::fits(bytes, memory); };
  if (requested == Storage::on_the_fly) {
    if (!fits(estimate.on_the_fly_bytes))
      fail_for_memory("storage=\"on_the_fly\"", estimate.on_the_fly_bytes, memory);
    return requested;
  }
  if (requested == Storage::condensed) {
    if (!fits(estimate.condensed_bytes))
      fail_for_memory("storage=\"condensed\"", estimate.condensed_bytes, memory);
    return requested;
  }
  if (requested == Storage::split) {
    if (std::isinf(estimate.split.bytes)) {
      throw std::invalid_argument(
          "storage=\"split\" needs degree 2 or 3, feature_map=\"kernel\", and features that are 0 or 1, in "
          "rows of a few thousand features at most");
    }
    if (!fits(estimate.split.bytes)) fail_for_memory("storage=\"split\"", estimate.split.bytes, memory);
    return requested;
  }
  if (requested == Storage::kernel) {
    if (std::isinf(estimate.kernel_bytes)) {
      throw std::invalid_argument("storage=\"kernel\" needs degree 2 or 3 and feature_map=\"kernel\"");
    }
    if (!fits(estimate.kernel_bytes)) fail_for_memory("storage=\"kernel\"", estimate.kernel_bytes, memory);
    return requested;
  }
  if (estimate.is_kernel_fastest && fits(estimate.kernel_bytes)) return Storage::kernel;
  // A table that fits into the cache is fastest. A larger table is slower than condensed rows, whose weights
  // are few and contiguous.
  constexpr double cached_table_bytes = 4e6;
  const bool table_fits_into_cache = 8.0 * estimate.possible_columns <= cached_table_bytes;
  if (table_fits_into_cache && fits(estimate.on_the_fly_bytes)) return Storage::on_the_fly;
  const double bytes_of_weights = min_bytes_of_weights(estimate);
  const bool split_is_small = estimate.split.bytes <= 0.25 * bytes_of_weights || !fits(bytes_of_weights);
  if (should_plan_split(requested, estimate, memory) && fits(estimate.split.bytes) && split_is_small)
    return Storage::split;
  const bool condensed_is_small = estimate.condensed_bytes <= 4.0 * estimate.on_the_fly_bytes;
  if (condensed_is_small && fits(estimate.condensed_bytes)) return Storage::condensed;
  if (fits(estimate.on_the_fly_bytes)) return Storage::on_the_fly;
  if (fits(estimate.condensed_bytes)) return Storage::condensed;
  if (fits(estimate.kernel_bytes)) return Storage::kernel;
  fail_for_memory("training", std::min({bytes_of_weights, estimate.split.bytes, estimate.kernel_bytes}),
                  memory);
}

}  // namespace unkernel::poly
