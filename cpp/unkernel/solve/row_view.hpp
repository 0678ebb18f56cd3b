// The interface between solvers and training sets.
//
// A row view represents the mapped rows phi(x_0) .. phi(x_{l-1}), which may be stored, condensed, or computed
// on demand. The weight vector is not part of the view, so several problems (classes) can share one view.
//
// Weights are in *score space*: with phi_T(x) = c_T m_T(x), where c_T is a constant of the map and m_T the
// plain monomial, the stored vector is v_T = c_T w_T. A score is then a plain sum of v_T m_T, and a step w +=
// a phi(x) becomes v_T += a c_T^2 m_T, without square roots.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/solve/normal_system.hpp"

namespace unkernel::solve {

template <class Rows>
concept TrainingRows =
    requires(const Rows& rows, std::int64_t i, double step, const double* scores, double* weights) {
      { rows.size() } -> std::same_as<std::int64_t>;
      { rows.dot(i, scores) } -> std::same_as<double>;   // w' phi(x_i)
      rows.axpy(i, step, weights);                       // w += step phi(x_i)
      { rows.squared_norm(i) } -> std::same_as<double>;  // phi(x_i)' phi(x_i)
      rows.prefetch_header(i);                           // where the row is stored
      rows.prefetch(i);                                  // the row itself
    };

// A row view that can also evaluate the kernel of its rows, and reports the size of its mapped rows.
template <class Rows>
concept KernelView =
    TrainingRows<Rows> && requires(const Rows& rows, std::span<const std::int32_t> subset, int threads) {
      { rows.gram(subset, threads) } -> std::same_as<std::vector<double>>;  // row-major, symmetric
      { rows.mean_map_size() } -> std::same_as<double>;                     // non-zeros of phi(x)
    };

// A row view that can also list its mapped rows phi(x) explicitly, for problems with few columns.
template <class Rows>
concept MappedView = KernelView<Rows> && requires(const Rows& rows) {
  { rows.mapped() } -> std::same_as<MappedRows>;
  { rows.dimension() } -> std::same_as<std::size_t>;
};

}  // namespace unkernel::solve
