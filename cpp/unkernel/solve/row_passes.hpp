// Type erasure of row views. Solvers make one virtual call per pass over many rows, so they are compiled once
// instead of once per kind of row view. The functions for a single row are slow; do not call them in inner
// loops.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "unkernel/solve/gram_rows.hpp"
#include "unkernel/solve/likelihood_sweep.hpp"
#include "unkernel/solve/loss.hpp"
#include "unkernel/solve/row_view.hpp"
#include "unkernel/solve/sweep.hpp"

namespace unkernel::solve {

class RowPasses {
 public:
  virtual ~RowPasses() = default;

  virtual std::int64_t size() const = 0;
  virtual double dot(std::int64_t i, const double* weights) const = 0;        // w' phi(x_i)
  virtual void axpy(std::int64_t i, double step, double* weights) const = 0;  // w += step phi(x_i)
  virtual double squared_norm(std::int64_t i) const = 0;                      // phi(x_i)' phi(x_i)

  // `dots` computes scores[i] = w' phi(x_i) for rows [begin, end); `add` computes w += sum_i steps[i]
  // phi(x_i).
  virtual void dots(std::int64_t begin, std::int64_t end, const double* weights, double* scores) const = 0;
  virtual void add(std::int64_t begin, std::int64_t end, const double* steps, double* weights) const = 0;

  // Run an epoch of dual coordinate descent (sweep.hpp, likelihood_sweep.hpp).
  virtual void sweep(const Loss& loss, SweepState& state) const = 0;
  virtual void sweep(LikelihoodState& state) const = 0;

  // --- Supported by some views only ---

  virtual bool has_kernel() const { return false; }  // gram, mean_map_size and mean_row_size are available
  virtual bool is_gram() const { return false; }     // the view is a kernel matrix already
  virtual bool has_map() const { return false; }     // mapped and dimension are available
  virtual std::vector<double> gram(std::span<const std::int32_t>, int) const {
    throw make_unsupported_error();
  }
  virtual double mean_map_size() const { throw make_unsupported_error(); }
  virtual double mean_row_size() const { throw make_unsupported_error(); }
  virtual MappedRows mapped() const { throw make_unsupported_error(); }
  virtual std::size_t dimension() const { throw make_unsupported_error(); }

 private:
  static std::logic_error make_unsupported_error() {
    return std::logic_error("this row view does not support the operation");
  }
};

// Passes over `rows`, which must outlive this object.
template <TrainingRows Rows>
class PassesOver final : public RowPasses {
 public:
  explicit PassesOver(const Rows& rows) : rows_(rows) {}

  std::int64_t size() const override { return rows_.size(); }
  double dot(std::int64_t i, const double* weights) const override { return rows_.dot(i, weights); }
  void axpy(std::int64_t i, double step, double* weights) const override { rows_.axpy(i, step, weights); }
  double squared_norm(std::int64_t i) const override { return rows_.squared_norm(i); }

  void dots(std::int64_t begin, std::int64_t end, const double* weights, double* scores) const override {
    for (std::int64_t i = begin; i < end; ++i) scores[i] = rows_.dot(i, weights);
  }
  void add(std::int64_t begin, std::int64_t end, const double* steps, double* weights) const override {
    for (std::int64_t i = begin; i < end; ++i) {
      if (steps[i] != 0.0) rows_.axpy(i, steps[i], weights);
    }
  }

  void sweep(const Loss& loss, SweepState& state) const override {
    with_loss(loss, [&]<class LossKind>(const LossKind&) {
      RowSweep<LossKind, Rows> sweep(loss, rows_, state);
      sweep.visit_awake_rows();
      sweep.revisit_busy_rows();
    });
  }
  void sweep(LikelihoodState& state) const override {
    LikelihoodSweep<Rows> sweep(rows_, state);
    sweep.visit_rows();
    sweep.revisit_busy_rows();
  }

  bool has_kernel() const override { return KernelView<Rows>; }
  bool is_gram() const override { return std::same_as<Rows, GramRows>; }
  bool has_map() const override { return MappedView<Rows>; }
  std::vector<double> gram(std::span<const std::int32_t> subset, int threads) const override {
    if constexpr (KernelView<Rows>) return rows_.gram(subset, threads);
    return RowPasses::gram(subset, threads);
  }
  double mean_map_size() const override {
    if constexpr (KernelView<Rows>) return rows_.mean_map_size();
    return RowPasses::mean_map_size();
  }
  double mean_row_size() const override {
    if constexpr (KernelView<Rows> && requires { rows_.mean_row_size(); }) return rows_.mean_row_size();
    return RowPasses::mean_row_size();
  }
  MappedRows mapped() const override {
    if constexpr (MappedView<Rows>) return rows_.mapped();
    return RowPasses::mapped();
  }
  std::size_t dimension() const override {
    if constexpr (MappedView<Rows>) return rows_.dimension();
    return RowPasses::dimension();
  }

 private:
  const Rows& rows_;
};

extern template class PassesOver<GramRows>;  // kernel_space.cpp

}  // namespace unkernel::solve
