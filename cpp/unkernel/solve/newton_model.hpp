// The quadratic model of a proximal Newton step. Only the sources of ProximalNewton include this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/solve/proximal_newton.hpp"

namespace unkernel::solve {

inline constexpr std::size_t most_heavy_columns = 500;
inline constexpr double tiny_ridge = 1e-12;  // prevents an infinite step of a column without curvature

struct ProximalNewton::Model {
  std::vector<std::int32_t> columns;
  std::vector<std::size_t> outputs;  // by column; a column may occur once per output
  std::vector<double> gradient;      // of the loss at d = 0
  std::vector<double> curvature;     // of the loss alone
  std::vector<double> weights;       // w_j
  std::vector<double> steps;         // d_j

  // Descent over entries only: the rows that are numbered, and where each column is not zero.
  std::vector<double> row_curvature;
  std::vector<std::span<const std::int32_t>> rows_of_columns;
  // Copies of the entries, if some rows are not numbered.
  std::vector<std::size_t> offsets{0};
  std::vector<std::int32_t> rows;
  std::vector<double> values;  // x_ij sqrt(curvature_i); empty if the columns are uniform
};

}  // namespace unkernel::solve
