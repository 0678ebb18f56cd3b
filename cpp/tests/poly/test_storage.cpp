#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "poly/random_examples.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/poly/condensed_rows.hpp"
#include "unkernel/poly/on_the_fly_rows.hpp"
#include "unkernel/poly/storage.hpp"

namespace {

using unkernel::Monitor;
using unkernel::NotEnoughMemory;
using unkernel::kernels::FeatureMap;
using unkernel::poly::choose_storage;
using unkernel::poly::DistinctRows;
using unkernel::poly::estimate_storage;
using unkernel::poly::Storage;
using unkernel::poly::StorageEstimate;

// Two rows have three features each and two features in common, so all numbers can be counted by hand.
void test_estimates_equal_counts_by_hand() {
  RandomRows<std::int32_t> rows;
  rows.features = 10;
  const std::vector<double> ones(3, 1.0);
  rows.add(std::vector<std::int32_t>{1, 4, 6}, ones, 0, 1.0);
  rows.add(std::vector<std::int32_t>{1, 4, 9}, ones, 1, 1.0);
  const DistinctRows examples = rows.examples();
  const StorageEstimate degree_1 = estimate_storage(examples, 1, 1);
  CHECK(degree_1.possible_columns == 5 && degree_1.expected_columns == 5 && degree_1.mapped_nonzeros == 8);
  const StorageEstimate degree_2 = estimate_storage(examples, 2, 1);
  CHECK(degree_2.possible_columns == 11);                            // 1 + 4 + C(4, 2)
  CHECK(degree_2.mapped_nonzeros == 14);                             // 2 (1 + 3 + 3)
  CHECK(close(degree_2.expected_columns, 5 + 6 * (1 - 0.5 * 0.5)));  // each row has half of the six pairs
  const StorageEstimate degree_3 = estimate_storage(examples, 3, 1);
  CHECK(degree_3.possible_columns == 15 && degree_3.mapped_nonzeros == 16);
  CHECK(close(degree_3.expected_columns, degree_2.expected_columns + 4 * (1 - 0.75 * 0.75)));
}

template <int Degree, bool Binary>
void check_against_the_rows() {
  const DistinctRows examples = random_rows<std::int32_t>(800, {60, 12, Binary}, Degree).examples();
  const FeatureMap map{Degree, FeatureMap::Kind::kernel, 1.0, 1.0};
  const unkernel::poly::OnTheFlyRows<Degree, Binary> on_the_fly(examples, map);
  const Monitor monitor;
  const unkernel::poly::CondensedRows<Degree, Binary, std::uint32_t> condensed(examples, map, 1, monitor);
  const StorageEstimate make_estimate = estimate_storage(examples, Degree, 1);
  CHECK(make_estimate.possible_columns == static_cast<double>(on_the_fly.dimension()));
  CHECK(close(make_estimate.mapped_nonzeros,
              on_the_fly.mean_map_size() * static_cast<double>(examples.rows())));
  // Features are not equally likely, so slightly fewer conjunctions occur than eq. (11) predicts.
  const auto columns = static_cast<double>(condensed.dimension());
  CHECK(make_estimate.expected_columns >= columns && make_estimate.expected_columns <= 4.0 * columns);
  CHECK(make_estimate.expected_columns <= make_estimate.possible_columns);
  CHECK(make_estimate.on_the_fly_bytes >= 8.0 * make_estimate.possible_columns);
  CHECK(make_estimate.condensed_bytes >= 2.0 * make_estimate.mapped_nonzeros + 8.0 * columns);
  const StorageEstimate of_five_models = estimate_storage(examples, Degree, 5);
  CHECK(of_five_models.on_the_fly_bytes >= 8.0 * 5 * make_estimate.possible_columns);
  CHECK(of_five_models.condensed_bytes > make_estimate.condensed_bytes);
}

void test_no_rows() {
  RandomRows<std::int32_t> rows;
  rows.features = 5;
  const StorageEstimate make_estimate = estimate_storage(rows.examples(), 3, 1);
  CHECK(make_estimate.possible_columns == 1 && make_estimate.expected_columns == 1 &&
        make_estimate.mapped_nonzeros == 0);
  CHECK(std::isfinite(make_estimate.on_the_fly_bytes) && std::isfinite(make_estimate.condensed_bytes));
}

void test_too_many_features_are_refused() {
  DistinctRows examples;
  examples.offsets.push_back(0);
  examples.label_offsets.push_back(0);
  examples.columns.resize(3'000'001);
  CHECK_THROWS(estimate_storage(examples, 3, 1), std::invalid_argument);
  (void)estimate_storage(examples, 2, 1);
}

StorageEstimate make_estimate(double possible_columns, double on_the_fly_bytes, double condensed_bytes) {
  StorageEstimate result;
  result.possible_columns = possible_columns;
  result.on_the_fly_bytes = on_the_fly_bytes;
  result.condensed_bytes = condensed_bytes;
  return result;
}

void test_automatic_storage_depends_on_size_and_memory() {
  const auto automatic = [](const StorageEstimate& sizes, double memory) {
    return choose_storage(Storage::automatic, sizes, memory);
  };
  // A table that fits into the cache always wins, if there is memory for it.
  CHECK(automatic(make_estimate(1e5, 2e6, 1e3), 0.0) == Storage::on_the_fly);
  CHECK(automatic(make_estimate(1e5, 2e6, 1e3), 1e6) == Storage::condensed);
  // Condensed rows are preferred to a larger table, unless they are far larger than the table.
  CHECK(automatic(make_estimate(1e8, 1e9, 1e9), 0.0) == Storage::condensed);
  CHECK(automatic(make_estimate(1e8, 1e9, 3e9), 0.0) == Storage::condensed);
  CHECK(automatic(make_estimate(1e8, 1e9, 1e11), 0.0) == Storage::on_the_fly);
  // If only one of the two fits into memory, it is chosen.
  CHECK(automatic(make_estimate(1e8, 1e9, 3e9), 2e9) == Storage::on_the_fly);
  CHECK(automatic(make_estimate(1e10, 1e11, 3e9), 4e9) == Storage::condensed);
  CHECK(automatic(make_estimate(1e7, 1e8, 1e9), 1e9) == Storage::on_the_fly);
}

void check_refuses(Storage requested, const StorageEstimate& sizes, double memory,
                   const std::string& expected_text) {
  std::string message;
  try {
    (void)choose_storage(requested, sizes, memory);
  } catch (const NotEnoughMemory& error) { message = error.what(); }
  CHECK(message.find(expected_text) != std::string::npos);
}

void test_a_chosen_storage_is_used_or_refused() {
  const StorageEstimate sizes = make_estimate(1e8, 2.5e9, 7.5e8);
  for (const Storage requested : {Storage::on_the_fly, Storage::condensed}) {
    CHECK(choose_storage(requested, sizes, 0.0) == requested);
    CHECK(choose_storage(requested, sizes, 3e9) == requested);
  }
  check_refuses(Storage::on_the_fly, sizes, 1e9, "needs about 2.5 GB and 1.0 GB are available");
  check_refuses(Storage::condensed, sizes, 1e6, "needs about 750.0 MB and 1.0 MB are available");
  check_refuses(Storage::automatic, sizes, 5e8, "needs about 750.0 MB and 500.0 MB are available");
  CHECK(choose_storage(Storage::condensed, sizes, 1e9) == Storage::condensed);
}

}  // namespace

int main() {
  test_estimates_equal_counts_by_hand();
  check_against_the_rows<2, true>();
  check_against_the_rows<2, false>();
  check_against_the_rows<3, true>();
  check_against_the_rows<3, false>();
  test_no_rows();
  test_too_many_features_are_refused();
  test_automatic_storage_depends_on_size_and_memory();
  test_a_chosen_storage_is_used_or_refused();
  return 0;
}
