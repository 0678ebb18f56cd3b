// Compares X w and X'c in all six layouts with plain loops, in one piece or several, on one thread or
// several.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "data/rows/packed_example.hpp"
#include "random_rows.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/cutplane/passes.hpp"
#include "unkernel/data/rows/row_store.hpp"

namespace {

using namespace packed_example;
using unkernel::Interrupted;
using unkernel::Monitor;
using unkernel::cutplane::Passes;
using unkernel::data::BlockLease;
using unkernel::data::PackedRows;
using unkernel::data::RowStore;
using Vector = std::vector<double>;

Vector random_vector(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  Vector values(size);
  for (double& value : values) value = random.below(4) == 0 ? 0.0 : uniform(random) / 3.0;
  return values;
}

Vector scores_of(const RowStore& store, double intercept, int threads, const Vector& weights) {
  const Monitor monitor;
  Vector scores(static_cast<std::size_t>(store.rows()), 99.0);
  Passes(store, intercept, {threads, &monitor}).scores(weights, scores);
  return scores;
}

Vector transposed_of(const RowStore& store, double intercept, int threads, const Vector& c) {
  const Monitor monitor;
  Passes passes(store, intercept, {threads, &monitor});
  Vector sums(passes.dimension(), 0.0);
  passes.add_transposed(c, sums);
  return sums;
}

void check_close(const Vector& computed, const Vector& expected) {
  CHECK(computed.size() == expected.size());
  for (std::size_t k = 0; k < computed.size(); ++k) CHECK(close(computed[k], expected[k], 1e-10));
}

void check_passes(const Layout& layout, const Shape& shape, double intercept) {
  const auto rows = rows_for(layout, shape, 1);
  const PackedRows packed = unkernel::data::pack(rows.view(), 1);
  CHECK(packed.whole().layout.columns == layout.columns && packed.whole().layout.values == layout.values);
  const Vector w = random_vector(static_cast<std::size_t>(shape.features) + (intercept != 0.0 ? 1 : 0), 2);
  const Vector c = random_vector(static_cast<std::size_t>(shape.rows), 3);
  const Vector scores = scores_of(packed, intercept, 1, w);
  const Vector sums = transposed_of(packed, intercept, 1, c);
  check_close(scores, plain_scores(rows, intercept, w));
  check_close(sums, plain_transposed(rows, intercept, c));
  for (const int threads : {0, 2, 3, 20}) {
    CHECK(scores_of(packed, intercept, threads, w) == scores);
    CHECK(transposed_of(packed, intercept, threads, c) == sums);
  }
}

// Rows in narrow layouts have up to 16 pieces, rows in wide layouts two: a piece must have several times as
// many entries as there are columns.
void test_all_layouts() {
  for (const Layout& layout : layouts) {
    const bool narrow = layout.columns == ColumnKind::narrow;
    for (const double intercept : {0.0, 1.0, -2.5}) {
      check_passes(layout, {1, narrow ? 3 : max_narrow_features + 1, 3}, intercept);
      check_passes(layout, {2049, narrow ? max_narrow_features : max_narrow_features + 1, 9}, intercept);
      check_passes(layout,
                   {narrow ? 40'000 : 6200, narrow ? 11 : max_narrow_features + 1, narrow ? 9U : 350U},
                   intercept);
    }
  }
}

void test_products_are_added_to_existing_sums() {
  const auto rows = rows_for(layouts[1], {30'000, 5, 4}, 4);
  const PackedRows packed = unkernel::data::pack(rows.view(), 1);
  const Vector c(30'000, 0.5);  // eighths and halves: sums are exact
  const Monitor monitor;
  Passes passes(packed, 1.0, {2, &monitor});
  Vector sums(6, 1000.0);
  passes.add_transposed(c, sums);
  const Vector plain = plain_transposed(rows, 1.0, c);
  for (std::size_t k = 0; k < 6; ++k) CHECK(sums[k] == 1000.0 + plain[k]);
  passes.add_transposed(c, sums);  // reuses the buffers
  for (std::size_t k = 0; k < 6; ++k) CHECK(sums[k] == 1000.0 + 2.0 * plain[k]);
}

void test_a_store_without_rows() {
  Rows<std::int32_t> none;
  none.features = 4;
  const PackedRows packed = unkernel::data::pack(none.view(), 1);
  CHECK(scores_of(packed, 1.0, 2, Vector(5, 1.0)).empty());
  CHECK(transposed_of(packed, 1.0, 2, {}) == Vector(5, 0.0));
}

// A store that fails at one block, like a file on a disk that has been removed.
class FailingStore final : public RowStore {
 public:
  FailingStore(const PackedRows& rows, std::int64_t failing_block)
      : rows_(rows), failing_block_(failing_block) {}
  std::int64_t rows() const override { return rows_.rows(); }
  std::size_t features() const override { return rows_.features(); }
  std::int64_t entries() const override { return rows_.entries(); }
  std::int64_t blocks() const override { return rows_.blocks(); }
  BlockLease block(std::int64_t k) const override {
    if (k == failing_block_) throw std::out_of_range("gone");
    return rows_.block(k);
  }

 private:
  const PackedRows& rows_;
  std::int64_t failing_block_;
};

void test_a_failing_block_ends_the_pass() {
  const auto rows = rows_for(layouts[2], {60'000, 5, 4}, 5);
  const PackedRows packed = unkernel::data::pack(rows.view(), 1);
  const Vector w(5, 1.0);
  const Vector c(60'000, 1.0);
  for (const std::int64_t failing_block : {std::int64_t{0}, std::int64_t{13}, packed.blocks() - 1}) {
    for (const int threads : {1, 2, 5}) {
      CHECK_THROWS(scores_of(FailingStore(packed, failing_block), 0.0, threads, w), std::out_of_range);
      CHECK_THROWS(transposed_of(FailingStore(packed, failing_block), 0.0, threads, c), std::out_of_range);
    }
  }
  const FailingStore intact(packed, -1);
  CHECK(scores_of(intact, 0.0, 2, w) == scores_of(packed, 0.0, 1, w));
  CHECK(transposed_of(intact, 0.0, 2, c) == transposed_of(packed, 0.0, 1, c));
}

void test_a_stopped_monitor_interrupts() {
  const auto rows = rows_for(layouts[0], {30'000, 5, 4}, 6);
  const PackedRows packed = unkernel::data::pack(rows.view(), 1);
  Monitor monitor;
  monitor.stop();
  for (const int threads : {1, 3}) {
    Passes passes(packed, 0.0, {threads, &monitor});
    Vector scores(30'000);
    Vector sums(5);
    CHECK_THROWS(passes.scores(sums, scores), Interrupted);
    CHECK_THROWS(passes.add_transposed(scores, sums), Interrupted);
  }
}

}  // namespace

int main() {
  test_all_layouts();
  test_products_are_added_to_existing_sums();
  test_a_store_without_rows();
  test_a_failing_block_ends_the_pass();
  test_a_stopped_monitor_interrupts();
  return 0;
}
