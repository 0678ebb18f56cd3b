// Compares products of blocks with plain sums, for various numbers of vectors, columns and threads.
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "unkernel/base/block_products.hpp"
#include "unkernel/base/random.hpp"

namespace {

using unkernel::add_products;
using unkernel::Panel;
using unkernel::Random;
using Matrix = std::vector<double>;

Matrix random_entries(std::size_t vectors, std::size_t columns, std::uint64_t seed) {
  Random random(seed);
  Matrix entries(vectors * columns);
  for (double& entry : entries) entry = random.below(3) == 0 ? 0.0 : random.below(2001) / 1000.0 - 1.0;
  return entries;
}

Matrix product(const Matrix& entries, std::size_t vectors, std::size_t columns, double sign, int threads) {
  Matrix matrix(vectors * vectors, 1.0);
  const auto fill = [&](Panel& panel, std::size_t begin, std::size_t end) {
    for (std::size_t i = 0; i < vectors; ++i) {
      for (std::size_t c = begin; c < end; ++c) {
        if (entries[i * columns + c] != 0.0) panel.at(i, c - begin) = entries[i * columns + c];
      }
    }
  };
  add_products(vectors, columns, fill, sign, threads, {matrix.data(), vectors});
  return matrix;
}

void test_products_equal_plain_sums() {
  for (const std::size_t vectors : {1U, 7U, 8U, 9U, 33U}) {
    for (const std::size_t columns : {0U, 1U, 5U, 255U, 256U, 257U, 700U}) {
      const Matrix entries = random_entries(vectors, columns, 100 * vectors + columns);
      const Matrix products = product(entries, vectors, columns, -2.0, 1);
      for (std::size_t i = 0; i < vectors; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
          double sum = 1.0;
          for (std::size_t c = 0; c < columns; ++c) {
            sum -= 2.0 * entries[i * columns + c] * entries[j * columns + c];
          }
          CHECK(close(products[i * vectors + j], sum, 1e-12));
        }
      }
    }
  }
}

void test_results_do_not_depend_on_threads() {
  const Matrix entries = random_entries(50, 600, 1);
  CHECK(product(entries, 50, 600, 1.0, 1) == product(entries, 50, 600, 1.0, 4));
}

}  // namespace

int main() {
  test_products_equal_plain_sums();
  test_results_do_not_depend_on_threads();
  return 0;
}
