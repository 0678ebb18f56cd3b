// Rows are packed in the narrowest layout that holds them, and invalid rows are rejected.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "data/rows/packed_example.hpp"
#include "random_rows.hpp"
#include "unkernel/cutplane/linear_rows.hpp"
#include "unkernel/data/rows/row_loops.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace {

using namespace packed_example;
using unkernel::cutplane::LinearRows;
using unkernel::data::BlockLease;
using unkernel::data::entry_bytes;
using unkernel::data::pack;
using unkernel::data::PackedRows;
using unkernel::data::row_of;
using unkernel::data::RowBlock;
using unkernel::data::with_types;

template <class Index = std::int32_t>
Rows<Index> one_row(std::vector<Index> columns, std::vector<double> values, std::int64_t features) {
  Rows<Index> rows;
  rows.features = features;
  rows.add(columns, values);
  return rows;
}

ValueKind kind_of(const std::vector<double>& values) {
  std::vector<std::int32_t> columns;
  for (std::size_t k = 0; k < values.size(); ++k) columns.push_back(static_cast<std::int32_t>(k));
  return pack(one_row(columns, values, 1000).view(), 1).whole().layout.values;
}

// Returns row i of a block, unpacked.
std::vector<std::pair<std::int64_t, double>> entries_of(const RowBlock& block, std::int64_t i) {
  std::vector<std::pair<std::int64_t, double>> entries;
  with_types(block, [&](const auto* columns, const auto* values) {
    const auto row = row_of(block, columns, values, i);
    for (std::size_t k = 0; k < row.size; ++k) entries.emplace_back(row.columns[k], row.value(k));
  });
  return entries;
}

void test_values_are_stored_in_the_smallest_exact_kind() {
  CHECK(kind_of({}) == ValueKind::ones);
  CHECK(kind_of({1.0, 1.0}) == ValueKind::ones);
  CHECK(kind_of({1.0, 0.0}) == ValueKind::single);
  CHECK(kind_of({1.0, 0.5, -3.0}) == ValueKind::single);
  CHECK(kind_of({1.0, 0.1}) == ValueKind::full);
  CHECK(kind_of({16'777'217.0}) == ValueKind::full);
  for (const double value : {1e300, -1e39, 1e-300, -1e-46, std::numeric_limits<double>::denorm_min()})
    CHECK(kind_of({0.5, value}) == ValueKind::full);
}

void test_columns_are_narrow_if_they_fit() {
  const PackedRows narrow = pack(one_row({0, 65'535}, {1.0, 1.0}, max_narrow_features).view(), 1);
  const PackedRows wide = pack(one_row({0, 65'536}, {1.0, 1.0}, max_narrow_features + 1).view(), 1);
  CHECK(narrow.whole().layout.columns == ColumnKind::narrow &&
        entries_of(narrow.whole(), 0)[1].first == 65'535);
  CHECK(wide.whole().layout.columns == ColumnKind::wide && entries_of(wide.whole(), 0)[1].first == 65'536);
}

// Columns that exceed int32 are packed; columns that exceed uint32 are refused.
void test_columns_of_64_bits() {
  const std::int64_t max_features = std::numeric_limits<std::uint32_t>::max();
  const PackedRows packed =
      pack(one_row<std::int64_t>({5, max_features - 1}, {1.0, 2.0}, max_features).view(), 1);
  CHECK(packed.features() == static_cast<std::size_t>(max_features) &&
        entries_of(packed.whole(), 0)[1].first == max_features - 1);
  CHECK_THROWS(pack(one_row<std::int64_t>({5}, {1.0}, max_features + 1).view(), 1), std::invalid_argument);
}

// Invalid entries are found in each of the pieces that threads check separately.
void test_invalid_columns_and_values_are_refused() {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto rows = rows_for(layouts[2], {50'000, 20, 6}, 1);
  for (const std::size_t position : {std::size_t{0}, rows.columns.size() / 2, rows.columns.size() - 1}) {
    for (const int threads : {1, 3}) {
      for (const std::int32_t column : {-1, 20, std::numeric_limits<std::int32_t>::min()}) {
        auto invalid = rows;
        invalid.columns[position] = column;
        CHECK_THROWS(pack(invalid.view(), threads), std::invalid_argument);
      }
      for (const double value : {infinite, -infinite, std::numeric_limits<double>::quiet_NaN()}) {
        auto invalid = rows;
        invalid.values[position] = value;
        CHECK_THROWS(pack(invalid.view(), threads), std::invalid_argument);
      }
    }
  }
}

void test_blocks_contain_every_row_once() {
  for (const Layout& layout : layouts) {
    const std::int64_t features = layout.columns == ColumnKind::narrow ? 30 : max_narrow_features + 30;
    for (const std::int64_t count : {1, 2048, 2049, 5000}) {
      const auto rows = rows_for(layout, {count, features, 5}, 2);
      const PackedRows packed = pack(rows.view(), 2);
      CHECK(packed.rows() == count && packed.features() == static_cast<std::size_t>(features));
      CHECK(packed.entries() == static_cast<std::int64_t>(rows.columns.size()));
      std::int64_t next = 0;
      for (std::int64_t b = 0; b < packed.blocks(); ++b) {
        const BlockLease block = packed.block(b);
        CHECK(block->first_row == next && block->rows() > 0);
        for (std::int64_t i = 0; i < block->rows(); ++i, ++next) {
          const auto row = static_cast<std::size_t>(next);
          const auto entries = entries_of(*block, i);
          CHECK(entries.size() == rows.end(row) - rows.begin(row));
          for (std::size_t k = 0; k < entries.size(); ++k) {
            CHECK(entries[k].first == rows.columns[rows.begin(row) + k] &&
                  entries[k].second == rows.values[rows.begin(row) + k]);
          }
        }
      }
      CHECK(next == count);
    }
  }
}

void test_bytes_per_entry() {
  const std::vector<std::size_t> expected = {2, 6, 10, 4, 8, 12};
  for (std::size_t k = 0; k < layouts.size(); ++k) CHECK(entry_bytes(layouts[k]) == expected[k]);
  const auto rows = rows_for(layouts[1], {100, 10, 5}, 3);
  CHECK(pack(rows.view(), 1).bytes() == 6 * rows.columns.size() + 8 * 101);
}

void test_a_store_without_rows() {
  const PackedRows packed = pack(Rows<std::int32_t>{}.view(), 1);
  CHECK(packed.rows() == 0 && packed.entries() == 0 && packed.blocks() == 0 && packed.features() == 0);
}

// The view for the dual solver has the same rows.
void test_linear_rows_equal_the_packed_rows() {
  for (const Layout& layout : layouts) {
    const std::int64_t features = layout.columns == ColumnKind::narrow ? 10 : max_narrow_features + 10;
    const auto rows = rows_for(layout, {40, features, 6}, 4);
    const PackedRows packed = pack(rows.view(), 1);
    for (const double intercept : {0.0, 0.5}) {
      const LinearRows view(packed, intercept);
      std::vector<double> w(view.dimension());
      for (std::size_t k = 0; k < w.size(); ++k) w[k] = 0.25 * static_cast<double>(k % 7) - 0.5;
      const std::vector<double> scores = plain_scores(rows, intercept, w);
      for (std::int64_t i = 0; i < view.size(); ++i) {
        std::vector<double> unit(40, 0.0);
        unit[static_cast<std::size_t>(i)] = 1.0;
        const std::vector<double> row = plain_transposed(rows, intercept, unit);
        double norm = 0.0;
        for (const double x : row) norm += x * x;
        CHECK(close(view.squared_norm(i), norm) &&
              close(view.dot(i, w.data()), scores[static_cast<std::size_t>(i)]));
        std::vector<double> sum(w.size(), 0.0);
        view.axpy(i, 1.0, sum.data());
        CHECK(sum == row);
        view.prefetch_header(i);
        view.prefetch(i);
      }
    }
  }
}

}  // namespace

int main() {
  test_values_are_stored_in_the_smallest_exact_kind();
  test_columns_are_narrow_if_they_fit();
  test_columns_of_64_bits();
  test_invalid_columns_and_values_are_refused();
  test_blocks_contain_every_row_once();
  test_bytes_per_entry();
  test_a_store_without_rows();
  test_linear_rows_equal_the_packed_rows();
  return 0;
}
