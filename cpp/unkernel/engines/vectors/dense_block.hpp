// Computes products of a block of rows with dense columns: the inner loops of engines that store support
// vectors. Processes four rows and four columns at a time, so that each loaded number is used four times. The
// inner loop runs along the columns and is vectorised.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace unkernel::engines {

inline constexpr std::size_t max_block_width = 256;

// A column of zeros, to pad the number of columns to a multiple of four.
inline constexpr std::array<double, max_block_width> zero_column{};

struct DenseBlock {
  std::size_t rows;
  const double* x;  // rows x columns
  std::size_t x_stride;
  std::span<const double* const> columns;  // `width` numbers each; a multiple of four columns
  std::size_t width;
  double* out;  // rows x width
  std::size_t out_stride;
};

// Computes out[r][j] += sum_c x[r][c] columns[c][j]. Adds in the order of the columns, so the result for a
// row does not depend on the other rows of the block.
void add_products(const DenseBlock& block);

// Computes out[r][j] += sum_c (x[r][c] - columns[c][j])^2, also in the order of the columns.
void add_squared_differences(const DenseBlock& block);

}  // namespace unkernel::engines
