// Products of blocks against plain sums, for any number of vectors and places, zeros, signs and threads.
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

Matrix random_entries(std::size_t vectors, std::size_t places, std::uint64_t seed) {
  Random random(seed);
  Matrix entries(vectors * places);
  for (double& entry : entries) entry = random.below(3) == 0 ? 0.0 : random.below(2001) / 1000.0 - 1.0;
  return entries;
}

Matrix product(const Matrix& entries, std::size_t vectors, std::size_t places, double sign, int threads) {
  Matrix matrix(vectors * vectors, 1.0);
  const auto fill = [&](Panel& panel, std::size_t begin, std::size_t end) {
    for (std::size_t i = 0; i < vectors; ++i) {
      for (std::size_t c = begin; c < end; ++c) {
        if (entries[i * places + c] != 0.0) panel.at(i, c - begin) = entries[i * places + c];
      }
    }
  };
  add_products(vectors, places, fill, sign, threads, {matrix.data(), vectors});
  return matrix;
}

void test_against_sums() {
  for (const std::size_t vectors : {1U, 7U, 8U, 9U, 33U}) {
    for (const std::size_t places : {0U, 1U, 5U, 255U, 256U, 257U, 700U}) {
      const Matrix entries = random_entries(vectors, places, 100 * vectors + places);
      const Matrix found = product(entries, vectors, places, -2.0, 1);
      for (std::size_t i = 0; i < vectors; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
          double sum = 1.0;
          for (std::size_t c = 0; c < places; ++c) {
            sum -= 2.0 * entries[i * places + c] * entries[j * places + c];
          }
          CHECK(close(found[i * vectors + j], sum, 1e-12));
        }
      }
    }
  }
}

void test_threads_change_nothing() {
  const Matrix entries = random_entries(50, 600, 1);
  CHECK(product(entries, 50, 600, 1.0, 1) == product(entries, 50, 600, 1.0, 4));
}

}  // namespace

int main() {
  test_against_sums();
  test_threads_change_nothing();
  return 0;
}
