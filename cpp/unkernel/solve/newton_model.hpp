// The quadratic model of a proximal Newton step. Only the sources of ProximalNewton include this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unkernel/solve/proximal_newton.hpp"

namespace unkernel::solve {

inline constexpr std::size_t most_heavy_columns = 500;
inline constexpr double ridge = 1e-12;  // prevents an infinite step of a column without curvature

struct ProximalNewton::Model {
  std::vector<std::int32_t> columns;
  std::vector<std::size_t> outputs;  // by column; a column may occur once per output
  std::vector<std::size_t> offsets{0};
  std::vector<std::int32_t> rows;     // of the entries; only rows with a curvature are numbered
  std::vector<double> row_curvature;  // of the renumbered rows
  std::vector<double> values;         // x_ij sqrt(curvature_i); empty if the columns are uniform
  std::vector<double> gradient;       // of the loss at d = 0
  std::vector<double> curvature;      // of the loss alone
  std::vector<double> weights;        // w_j
  std::vector<double> steps;          // d_j
  std::vector<double> residual;  // sum_j values_j d_j; if the columns are uniform, curvature_i sum_j x_ij d_j
};

}  // namespace unkernel::solve
