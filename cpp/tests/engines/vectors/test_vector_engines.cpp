#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "engines/random_machine.hpp"
#include "engines/scoring.hpp"
#include "engines/vectors/vector_tables.hpp"
#include "random_rows.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/vectors/bitsliced_engine.hpp"
#include "unkernel/engines/vectors/inverted_engine.hpp"

namespace {

using unkernel::Random;
using unkernel::engines::Engine;
using unkernel::engines::make_bitsliced_engine;
using unkernel::engines::make_inverted_engine;
using unkernel::kernels::KernelFunction;
using Type = KernelFunction::Type;

constexpr double tolerance = 1e-11;
constexpr std::int64_t features = 400;

std::vector<KernelFunction> list_kernels() {
  std::vector<KernelFunction> kernels{
      {Type::linear, 0, 0.0, 0.0}, {Type::rbf, 0, 0.1, 0.0}, {Type::sigmoid, 0, 0.1, -0.5}};
  for (const int degree : {0, 1, 5, 9})
    kernels.push_back({Type::polynomial, degree, 0.5, degree == 5 ? -0.7 : 1.0});
  return kernels;
}

// Adds rows with about 255 features, the largest count of a byte, and rows with more.
template <class Index>
void add_long_rows(Random& random, Rows<Index>& rows) {
  for (const std::int64_t length : {254, 255, 256, 390}) {
    scoring::Entries ones, reals;
    for (std::int64_t column = 0; column < length; ++column) {
      ones.emplace_back(column, 1.0);
      reals.emplace_back(column, uniform(random));
    }
    scoring::add_entries(ones, rows);
    scoring::add_entries(reals, rows);
  }
}

template <class Index>
void check_engine(const Engine& engine, const RandomMachine& machine, const KernelFunction& kernel,
                  const Rows<Index>& rows) {
  CHECK(engine.scores() == machine.scores() && engine.bytes() > 0);
  scoring::check_scores(engine, rows, tolerance,
                        [&](const scoring::Row& row) { return machine.slow_scores(kernel, row); });
}

template <class Index>
void check_machine(const RandomMachine& machine, bool binary, const Rows<Index>& rows) {
  for (const KernelFunction& kernel : list_kernels()) {
    const InvertedArrays inverted(machine, kernel, binary);
    check_engine(*make_inverted_engine(inverted.view()), machine, kernel, rows);
    if (!binary) continue;
    for (const std::size_t frequent_from : {0U, 5U, 1'000'000U}) {
      const BitslicedArrays bitsliced(machine, kernel, frequent_from);
      check_engine(*make_bitsliced_engine(bitsliced.view()), machine, kernel, rows);
    }
  }
}

template <class Index>
Rows<Index> make_rows(Random& random) {
  Rows<Index> rows = rows_to_score<Index>({features, 30, true}, random);
  add_long_rows(random, rows);
  return rows;
}

// Block borders of the bit sets lie at multiples of 64 and 512 vectors.
void test_engines_equal_the_kernel_sum() {
  Random random(1);
  const auto narrow = make_rows<std::int32_t>(random);
  const auto wide = make_rows<std::int64_t>(random);
  for (const std::size_t vectors : {0U, 1U, 63U, 64U, 65U, 511U, 512U, 513U, 1030U}) {
    for (const bool binary : {true, false}) {
      const RandomMachine machine(vectors, {features, 12, binary}, 1 + vectors % 3, random);
      if (vectors < 100) check_machine(machine, binary, narrow);
      check_machine(machine, binary, wide);
    }
  }
}

// A vector and a row can have more features in common than a byte can count.
void test_overlaps_that_exceed_a_byte() {
  Random random(2);
  RandomMachine machine(70, {features, 12, true}, 2, random);
  std::vector<std::int32_t> columns(features);
  std::iota(columns.begin(), columns.end(), 0);
  machine.vectors.add(columns, std::vector<double>(columns.size(), 1.0));
  machine.coefficients.insert(machine.coefficients.end(), {0.5, -0.25});
  check_machine(machine, true, make_rows<std::int32_t>(random));
}

// Columns that occur in nearly all vectors are stored with their zeros. Blocks of rows end at multiples of 4
// and 16, blocks of vectors at multiples of 256.
void test_columns_of_nearly_all_vectors() {
  Random random(4);
  for (const std::int64_t columns : {1, 3, 4, 9}) {
    const RowKind dense{columns, 60, false};
    Rows<std::int32_t> rows = rows_to_score<std::int32_t>(dense, random);
    for (const std::size_t vectors : {1U, 255U, 256U, 258U, 300U}) {
      for (const std::size_t scores : {1U, 2U, 5U, 7U, 8U, 11U, 260U}) {
        if (scores > 11 && columns != 9) continue;
        const RandomMachine machine(vectors, dense, scores, random);
        for (const KernelFunction& kernel : list_kernels()) {
          if (scores > 5 && kernel.type != Type::rbf) continue;
          const InvertedArrays inverted(machine, kernel, false);
          check_engine(*make_inverted_engine(inverted.view()), machine, kernel, rows);
        }
      }
    }
  }
}

// Sets the coefficients of a vector in pairs of other classes to 0; they are not stored.
void zero_other_pairs(const std::vector<std::uint32_t>& begins, RandomMachine& machine) {
  const std::size_t classes = begins.size() - 1;
  for (std::size_t c = 0; c < classes; ++c) {
    for (std::size_t j = begins[c]; j < begins[c + 1]; ++j) {
      double* coefficients = machine.coefficients.data() + j * machine.scores();
      for (std::size_t low = 0; low < classes; ++low) {
        for (std::size_t high = low + 1; high < classes; ++high, ++coefficients) {
          if (low != c && high != c) *coefficients = 0.0;
        }
      }
    }
  }
}

// Returns the first vector of each class. Some classes have no vectors, some a few, and some more than a
// block.
std::vector<std::uint32_t> begins_of_classes(std::size_t classes, Random& random) {
  std::vector<std::uint32_t> begins{0};
  for (std::size_t c = 0; c < classes; ++c) {
    const std::uint32_t max_vectors = random.below(3) == 0 ? 400 : 9;
    begins.push_back(begins.back() + random.below(classes > 30 ? 9 : max_vectors));
  }
  return begins;
}

void test_one_against_one_classes() {
  Random random(5);
  for (const std::size_t classes : {2U, 3U, 5U, 9U, 10U, 26U, 100U}) {
    const std::vector<std::uint32_t> begins = begins_of_classes(classes, random);
    for (const bool binary : {true, false}) {
      const RowKind kind{binary ? 40 : 6, 20, binary};
      RandomMachine machine(begins.back(), kind, classes * (classes - 1) / 2, random);
      zero_other_pairs(begins, machine);
      const auto rows = rows_to_score<std::int32_t>(kind, random);
      const KernelFunction kernel{classes % 2 == 0 ? Type::rbf : Type::polynomial, 3, 0.2, 1.0};
      InvertedArrays inverted(machine, kernel, binary);
      inverted.sum.keep_pairs(begins);
      check_engine(*make_inverted_engine(inverted.view()), machine, kernel, rows);
      if (!binary) continue;
      BitslicedArrays bitsliced(machine, kernel, 5);
      bitsliced.sum.keep_pairs(begins);
      check_engine(*make_bitsliced_engine(bitsliced.view()), machine, kernel, rows);
    }
  }
}

// The scores of a row have the same bits whether it is scored alone or with other rows, at any position.
void test_scores_do_not_depend_on_other_rows() {
  Random random(6);
  const RowKind dense{7, 40, false};
  const std::vector<std::uint32_t> begins{0, 60, 60, 200, 211, 290};
  RandomMachine machine(290, dense, 10, random);
  zero_other_pairs(begins, machine);
  Rows<std::int32_t> rows;
  for (int row = 0; row < 41; ++row) {
    const auto [columns, values] = random_row<std::int32_t>(dense, random);
    rows.add(columns, values);
  }
  for (const KernelFunction& kernel : list_kernels()) {
    for (const bool by_class : {false, true}) {
      InvertedArrays arrays(machine, kernel, false);
      if (by_class) arrays.sum.keep_pairs(begins);
      const auto engine = make_inverted_engine(arrays.view());
      const std::vector<double> all_scores = scoring::scores_of(*engine, rows, 1);
      std::vector<double> row_scores(10);
      const auto worker = engine->worker();
      for (std::size_t row = 0; row < 41; ++row) {
        engine->score(
            unkernel::engines::SparseRow<std::int32_t>{
                std::span(rows.columns).subspan(rows.begin(row), rows.end(row) - rows.begin(row)),
                rows.values.data() + rows.begin(row)},
            *worker, row_scores.data());
        CHECK(std::equal(row_scores.begin(), row_scores.end(),
                         all_scores.begin() + static_cast<std::ptrdiff_t>(10 * row)));
      }
    }
  }
}

void test_invalid_classes_are_refused() {
  Random random(7);
  const RandomMachine machine(6, {5, 20, false}, 3, random);
  const KernelFunction rbf{Type::rbf, 0, 0.1, 0.0};
  const InvertedArrays dense(machine, rbf, false);
  InvertedArrays valid = dense;
  valid.sum.keep_pairs({0, 2, 2, 6});
  make_inverted_engine(valid.view());
  const std::vector<std::vector<std::uint32_t>> invalid_begins{
      {0, 2, 2, 5}, {1, 2, 2, 6}, {0, 3, 2, 6}, {0, 6}, {0}, {0, 2, 6}, {0, 2, 2, 2, 6}};
  for (const auto& begins : invalid_begins) {
    InvertedArrays arrays = valid;
    arrays.sum.class_begins = begins;
    CHECK_THROWS(make_inverted_engine(arrays.view()), std::invalid_argument);
  }
  InvertedArrays negative = dense;
  negative.sum.kernel.gamma = -0.1;
  CHECK_THROWS(make_inverted_engine(negative.view()), std::invalid_argument);
}

void check_threads(const Engine& engine, const Rows<std::int32_t>& rows) {
  const std::vector<double> expected = scoring::scores_of(engine, rows, 1);
  for (const int threads : {2, 5}) CHECK(scoring::scores_of(engine, rows, threads) == expected);
}

void test_results_do_not_depend_on_threads() {
  Random random(3);
  const RandomMachine machine(100, {features, 12, true}, 2, random);
  Rows<std::int32_t> rows;
  for (int row = 0; row < 2000; ++row) {
    const auto [columns, values] = random_row<std::int32_t>({features, 12, row > 1000}, random);
    rows.add(columns, values);
  }
  const KernelFunction rbf{Type::rbf, 0, 0.1, 0.0};
  const InvertedArrays inverted(machine, rbf, true);
  const BitslicedArrays bitsliced(machine, rbf, 5);
  check_threads(*make_inverted_engine(inverted.view()), rows);
  check_threads(*make_bitsliced_engine(bitsliced.view()), rows);
}

}  // namespace

int main() {
  test_engines_equal_the_kernel_sum();
  test_overlaps_that_exceed_a_byte();
  test_columns_of_nearly_all_vectors();
  test_one_against_one_classes();
  test_scores_do_not_depend_on_other_rows();
  test_invalid_classes_are_refused();
  test_results_do_not_depend_on_threads();
  return 0;
}
