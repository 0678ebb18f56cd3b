// Compares DistinctRows with a map from rows to the weights of their classes.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "poly/random_examples.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/poly/distinct_rows.hpp"

namespace {

using unkernel::Random;
using unkernel::poly::DistinctRows;

using Row = std::vector<std::pair<std::int64_t, double>>;            // column and value, ascending, no zeros
using WeightsByRow = std::map<Row, std::map<std::int32_t, double>>;  // row -> class -> weight

template <class Index>
Row row_of(const RandomRows<Index>& rows, std::int64_t i) {
  Row row;
  for (auto k = static_cast<std::size_t>(rows.offsets[static_cast<std::size_t>(i)]);
       k < static_cast<std::size_t>(rows.offsets[static_cast<std::size_t>(i) + 1]); ++k) {
    if (rows.values[k] != 0.0) row.emplace_back(rows.columns[k], rows.values[k]);
  }
  return row;
}

template <class Index>
WeightsByRow slow_distinct(const RandomRows<Index>& rows) {
  WeightsByRow distinct;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const double weight = rows.weights.empty() ? 1.0 : rows.weights[static_cast<std::size_t>(i)];
    if (weight > 0.0) distinct[row_of(rows, i)][rows.classes[static_cast<std::size_t>(i)]] += weight;
  }
  return distinct;
}

// Converts ranks back to columns.
Row row_of(const DistinctRows& examples, std::int64_t i) {
  Row row;
  for (auto k = examples.offsets[static_cast<std::size_t>(i)];
       k < examples.offsets[static_cast<std::size_t>(i) + 1]; ++k) {
    const auto position = static_cast<std::size_t>(k);
    if (k > examples.offsets[static_cast<std::size_t>(i)])
      CHECK(examples.features[position] > examples.features[position - 1]);
    row.emplace_back(examples.columns[static_cast<std::size_t>(examples.features[position])],
                     examples.binary() ? 1.0 : examples.values[position]);
  }
  std::sort(row.begin(), row.end());
  return row;
}

WeightsByRow weights_by_row(const DistinctRows& examples) {
  WeightsByRow rows;
  CHECK(examples.offsets.size() == static_cast<std::size_t>(examples.rows()) + 1);
  CHECK(std::is_sorted(examples.hashes.begin(), examples.hashes.end()));
  for (std::int64_t i = 0; i < examples.rows(); ++i) {
    std::map<std::int32_t, double> labels;
    double sum = 0.0;
    for (const auto& label : examples.labels_of(i)) {
      CHECK(labels.emplace(label.code, label.weight).second);
      sum += label.weight;
    }
    CHECK(close(examples.weight(i), sum));
    const Row row = row_of(examples, i);
    CHECK(examples.row_size(i) == static_cast<std::int64_t>(row.size()));
    CHECK(rows.emplace(row, labels).second);  // no repeated rows
  }
  return rows;
}

// Ranks are ordered by the descending number of distinct rows that have the feature; ties by column.
void check_ranks(const DistinctRows& examples, const WeightsByRow& distinct) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const auto& entry : distinct) {
    for (const auto& [column, value] : entry.first) ++counts[column];
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  for (const auto& [column, count] : counts) order.emplace_back(-count, column);
  std::sort(order.begin(), order.end());
  CHECK(examples.used_features() == static_cast<std::int64_t>(order.size()));
  for (std::size_t rank = 0; rank < order.size(); ++rank) CHECK(examples.columns[rank] == order[rank].second);
}

void check_equal(const DistinctRows& a, const DistinctRows& b) {
  CHECK(a.offsets == b.offsets && a.features == b.features && a.values == b.values && a.hashes == b.hashes);
  CHECK(a.columns == b.columns && a.label_offsets == b.label_offsets && a.labels.size() == b.labels.size());
  for (std::size_t i = 0; i < a.labels.size(); ++i) {
    CHECK(a.labels[i].code == b.labels[i].code && a.labels[i].weight == b.labels[i].weight);
  }
}

template <class Index>
RandomRows<Index> permute_rows(const RandomRows<Index>& rows, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows.size()));
  std::iota(order.begin(), order.end(), 0);
  Random(seed).shuffle(std::span(order));
  RandomRows<Index> result;
  result.features = rows.features;
  for (const std::int64_t i : order) {
    const auto k = static_cast<std::size_t>(i);
    const auto begin = static_cast<std::size_t>(rows.offsets[k]);
    const auto size = static_cast<std::size_t>(rows.offsets[k + 1]) - begin;
    result.add(std::span(rows.columns).subspan(begin, size), std::span(rows.values).subspan(begin, size),
               rows.classes[k], rows.weights[k]);
  }
  return result;
}

template <class Index>
void test_equal_rows_are_merged(bool binary) {
  // Few features and short rows: most rows occur many times, with all classes.
  RandomRows<Index> rows = random_rows<Index>(3000, {8, 4, binary}, 1);
  for (std::size_t i = 0; i < rows.weights.size(); i += 3) rows.weights[i] = 0.0;
  const DistinctRows examples = rows.examples();
  const WeightsByRow expected = slow_distinct(rows);
  CHECK(examples.binary() == binary);
  CHECK(expected.size() < 1500 && expected.contains(Row{}));
  CHECK(weights_by_row(examples) == expected);
  check_ranks(examples, expected);
}

template <class Index>
void test_results_do_not_depend_on_order_or_threads() {
  for (const bool binary : {true, false}) {
    const RandomRows<Index> rows = random_rows<Index>(12'000, {40, 5, binary}, 2);
    const DistinctRows examples = rows.examples();
    check_equal(rows.examples(3), examples);
    check_equal(permute_rows(rows, 3).examples(), examples);
    check_equal(permute_rows(rows, 4).examples(2), examples);
    CHECK(weights_by_row(examples) == slow_distinct(rows));
  }
}

void test_weights_equal_repetitions_of_rows() {
  RandomRows<std::int32_t> rows = random_rows<std::int32_t>(500, {10, 5, true}, 5);
  RandomRows<std::int32_t> repeated;
  repeated.features = rows.features;
  for (std::size_t i = 0; i < rows.weights.size(); ++i) {
    const auto begin = static_cast<std::size_t>(rows.offsets[i]);
    const auto size = static_cast<std::size_t>(rows.offsets[i + 1]) - begin;
    for (double w = 0; w < rows.weights[i]; ++w) {
      repeated.add(std::span(rows.columns).subspan(begin, size), std::span(rows.values).subspan(begin, size),
                   rows.classes[i], 1.0);
    }
  }
  check_equal(repeated.examples(), rows.examples());
  repeated.weights.clear();  // all ones
  check_equal(repeated.examples(), rows.examples());
}

void test_explicit_zeros_are_dropped() {
  RandomRows<std::int32_t> rows;
  rows.features = 9;
  rows.add(std::vector<std::int32_t>{1, 3, 5}, std::vector<double>{1.0, 0.0, 1.0}, 0, 1.0);
  rows.add(std::vector<std::int32_t>{1, 5, 8}, std::vector<double>{1.0, 1.0, -0.0}, 1, 2.0);
  rows.add(std::vector<std::int32_t>{4}, std::vector<double>{0.0}, 1, 3.0);
  rows.add(std::vector<std::int32_t>{}, std::vector<double>{}, 1, 4.0);
  const DistinctRows examples = rows.examples();
  CHECK(examples.binary() && examples.rows() == 2 && examples.used_features() == 2);
  const WeightsByRow expected{{Row{}, {{1, 7.0}}}, {Row{{1, 1.0}, {5, 1.0}}, {{0, 1.0}, {1, 2.0}}}};
  CHECK(weights_by_row(examples) == expected);
}

// A row of weight zero must not influence whether the rows count as binary, or which features there are.
void test_rows_of_weight_zero_are_ignored() {
  RandomRows<std::int32_t> rows = random_rows<std::int32_t>(50, {10, 5, true}, 6);
  const DistinctRows examples = rows.examples();
  rows.add(std::vector<std::int32_t>{2, 9}, std::vector<double>{0.5, 3.0}, 0, 0.0);
  check_equal(rows.examples(), examples);
  CHECK(rows.examples().binary());
}

void test_columns_of_64_bits() {
  RandomRows<std::int64_t> rows;
  rows.features = std::int64_t{1} << 50;
  const std::int64_t last_column = rows.features - 1;
  rows.add(std::vector<std::int64_t>{3, last_column}, std::vector<double>{2.0, 0.5}, 0, 1.0);
  rows.add(std::vector<std::int64_t>{3}, std::vector<double>{2.0}, 1, 1.0);
  rows.add(std::vector<std::int64_t>{last_column - 7, last_column}, std::vector<double>{0.0, 0.5}, 1, 1.0);
  rows.add(std::vector<std::int64_t>{}, std::vector<double>{}, 1, 1.0);
  const DistinctRows examples = rows.examples();
  CHECK((examples.columns == std::vector<std::int64_t>{3, last_column}));
  CHECK(weights_by_row(examples) == slow_distinct(rows));
}

void test_no_rows_and_no_entries() {
  RandomRows<std::int32_t> rows;
  rows.features = 4;
  CHECK(rows.examples().rows() == 0);
  rows.add(std::vector<std::int32_t>{}, std::vector<double>{}, 0, 1.0);
  CHECK(rows.examples().rows() == 1 && rows.examples().used_features() == 0 && rows.examples().binary());
}

void test_bad_columns_are_refused() {
  for (const std::vector<std::int32_t>& columns :
       {std::vector{3, 2}, std::vector{2, 2}, std::vector{0, 4}, std::vector{-1, 2}}) {
    RandomRows<std::int32_t> rows;
    rows.features = 4;
    rows.add(columns, std::vector<double>{1.0, 1.0}, 0, 1.0);
    CHECK_THROWS(rows.examples(), std::invalid_argument);
  }
}

void test_variance_equals_that_of_the_dense_matrix() {
  for (const bool binary : {true, false}) {
    const RandomRows<std::int32_t> rows = random_rows<std::int32_t>(200, {7, 5, binary}, 7);
    double count = 0.0;
    double sum = 0.0;
    double squares = 0.0;
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      const double weight = rows.weights[static_cast<std::size_t>(i)];
      count += 7 * weight;
      for (const auto& [column, value] : row_of(rows, i)) {
        sum += weight * value;
        squares += weight * value * value;
      }
    }
    const double mean = sum / count;
    CHECK(close(unkernel::poly::weighted_variance(rows.examples(), 7), squares / count - mean * mean));
  }
  RandomRows<std::int32_t> none;
  none.features = 3;
  CHECK(unkernel::poly::weighted_variance(none.examples(), 3) == 0.0);
}

}  // namespace

int main() {
  for (const bool binary : {true, false}) {
    test_equal_rows_are_merged<std::int32_t>(binary);
    test_equal_rows_are_merged<std::int64_t>(binary);
  }
  test_results_do_not_depend_on_order_or_threads<std::int32_t>();
  test_results_do_not_depend_on_order_or_threads<std::int64_t>();
  test_weights_equal_repetitions_of_rows();
  test_explicit_zeros_are_dropped();
  test_columns_of_64_bits();
  test_no_rows_and_no_entries();
  test_bad_columns_are_refused();
  test_variance_equals_that_of_the_dense_matrix();
  test_rows_of_weight_zero_are_ignored();
  return 0;
}
