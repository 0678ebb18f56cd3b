#include <cstdint>
#include <numeric>
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

std::vector<KernelFunction> some_kernels() {
  std::vector<KernelFunction> kernels{
      {Type::linear, 0, 0.0, 0.0}, {Type::rbf, 0, 0.1, 0.0}, {Type::sigmoid, 0, 0.1, -0.5}};
  for (const int degree : {0, 1, 5, 9})
    kernels.push_back({Type::polynomial, degree, 0.5, degree == 5 ? -0.7 : 1.0});
  return kernels;
}

// Longer than the 255 features that bytes can count, of ones and of other values.
template <class Index>
void add_long_rows(Random& random, Rows<Index>& rows) {
  for (const std::int64_t length : {254, 255, 256, 390}) {
    scoring::Entries ones, others;
    for (std::int64_t column = 0; column < length; ++column) {
      ones.emplace_back(column, 1.0);
      others.emplace_back(column, uniform(random));
    }
    scoring::add_entries(ones, rows);
    scoring::add_entries(others, rows);
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
  for (const KernelFunction& kernel : some_kernels()) {
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
Rows<Index> many_rows(Random& random) {
  Rows<Index> rows = rows_to_score<Index>({features, 30, true}, random);
  add_long_rows(random, rows);
  return rows;
}

// Block borders of the bit sets lie at multiples of 64 and 512 vectors.
void test_equal_the_kernel_sum() {
  Random random(1);
  const auto narrow = many_rows<std::int32_t>(random);
  const auto wide = many_rows<std::int64_t>(random);
  for (const std::size_t vectors : {0U, 1U, 63U, 64U, 65U, 511U, 512U, 513U, 1030U}) {
    for (const bool binary : {true, false}) {
      const RandomMachine machine(vectors, {features, 12, binary}, 1 + vectors % 3, random);
      if (vectors < 100) check_machine(machine, binary, narrow);
      check_machine(machine, binary, wide);
    }
  }
}

// Overlaps up to the most that fit into a byte, and beyond.
void test_vectors_as_long_as_rows() {
  Random random(2);
  RandomMachine machine(70, {features, 12, true}, 2, random);
  std::vector<std::int32_t> columns(features);
  std::iota(columns.begin(), columns.end(), 0);
  machine.vectors.add(columns, std::vector<double>(columns.size(), 1.0));
  machine.coefficients.insert(machine.coefficients.end(), {0.5, -0.25});
  check_machine(machine, true, many_rows<std::int32_t>(random));
}

void check_threads(const Engine& engine, const Rows<std::int32_t>& rows) {
  const std::vector<double> alone = scoring::scores_of(engine, rows, 1);
  for (const int threads : {2, 5}) CHECK(scoring::scores_of(engine, rows, threads) == alone);
}

void test_threads_change_nothing() {
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
  test_equal_the_kernel_sum();
  test_vectors_as_long_as_rows();
  test_threads_change_nothing();
  return 0;
}
