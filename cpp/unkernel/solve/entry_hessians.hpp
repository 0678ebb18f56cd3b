// Products with the Hessian H = X'CX of a quadratic model, from the entries of its columns X. C is the
// diagonal of the rows' curvatures. joint_moves.hpp lists the functions of a Hessian.
//
// ValueHessian    stores V = sqrt(C) X, so that H = V'V.
// UniformHessian  is for columns whose entries are all equal, and stores no values. It keeps C X d as
//                 numbers of 32 bits next to the curvatures, so that a step of one column reads and writes
//                 8 bytes per entry. That is accurate enough: every Newton step starts from exact gradients,
//                 and rounding errors are relative to the step. Products with whole directions run through
//                 the rows instead, because the columns are far fewer than the rows and stay in the cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/gather.hpp"
#include "unkernel/base/large_array.hpp"
#include "unkernel/solve/newton_model.hpp"

namespace unkernel::solve {

// What both have in common.
class ProximalNewton::EntryHessian {
 public:
  EntryHessian(const SparseColumns& columns, std::span<const double> curvature, const Model& model)
      : columns_(columns), curvature_(curvature), model_(model) {}

  // Returns the largest number of heavy columns whose Hessian costs no more to form than a few products with
  // the whole support.
  std::size_t heavy_columns(std::span<const std::size_t> support) const;
  void fill_gram(WeightedGram& gram, std::span<const std::int32_t> columns) const {
    constexpr double slack = 0.2;  // a preconditioner needs no more accuracy
    gram.update(columns, curvature_, slack);
  }

 protected:
  std::size_t rows() const { return model_.row_curvature.size(); }
  std::span<const std::int32_t> rows_of(std::size_t j) const { return model_.rows_of_columns[j]; }

  const SparseColumns& columns_;
  std::span<const double> curvature_;  // of all rows
  const Model& model_;
};

class ProximalNewton::ValueHessian : public EntryHessian {
 public:
  ValueHessian(const SparseColumns& columns, std::span<const double> curvature, const Model& model)
      : EntryHessian(columns, curvature, model), residual_(rows(), 0.0) {}

  double gradient(std::size_t j) const { return model_.gradient[j] + sum_over(j, residual_); }
  void move(std::size_t j, double step) { add(j, step, residual_); }
  void multiply(std::span<const std::size_t> support, std::span<const double> direction,
                std::span<double> product);
  void move_by_product() {
    for (std::size_t i = 0; i < product_.size(); ++i) residual_[i] += product_[i];
  }

 private:
  const double* values(std::size_t j) const { return model_.values.data() + model_.offsets[j]; }
  double sum_over(std::size_t j, const std::vector<double>& table) const {
    const auto ids = rows_of(j);
    return gather<false>(table.data(), ids.data(), values(j), ids.size());
  }
  void add(std::size_t j, double step, std::vector<double>& table) const {
    const auto ids = rows_of(j);
    scatter<false>(table.data(), ids.data(), values(j), ids.size(), step);
  }

  std::vector<double> residual_;  // V d
  std::vector<double> product_;   // V times the last direction
};

class ProximalNewton::UniformHessian : public EntryHessian {
 public:
  UniformHessian(const SparseColumns& columns, std::span<const double> curvature, const Model& model,
                 int threads);

  double gradient(std::size_t j) const {
    const auto ids = rows_of(j);
    const double sum = sum_of_terms(ids.size(), [&](std::size_t k) {
      return static_cast<double>(states_[static_cast<std::size_t>(ids[k])].residual);
    });
    return model_.gradient[j] + largest_ * scale(j) * sum;
  }
  void move(std::size_t j, double step) {
    const auto scaled = static_cast<float>(step * scale(j));
    for (const std::int32_t i : rows_of(j)) {
      RowState& state = states_[static_cast<std::size_t>(i)];
      state.residual += scaled * state.curvature;
    }
  }
  void multiply(std::span<const std::size_t> support, std::span<const double> direction,
                std::span<double> product);
  void move_by_product() {
    for (std::size_t i = 0; i < product_.size(); ++i) states_[i].residual += product_[i];
  }

 private:
  struct RowState {
    float residual;   // of C X d
    float curvature;  // like the residual, in units of the largest curvature
  };
  struct ColumnState {
    float direction;
    float sum;
  };

  double scale(std::size_t j) const { return columns_.scale(static_cast<std::size_t>(model_.columns[j])); }
  void choose_listed(std::span<const std::size_t> support);
  void list_columns();
  void multiply_rows(std::size_t begin, std::size_t end, std::span<ColumnState> states);

  int threads_;
  double largest_ = 0.0;  // curvature
  std::vector<RowState> states_;
  std::vector<float> product_;  // C X times the last direction, in units of the largest curvature
  // The columns of each row, except those of the support that have a weight only since they were listed.
  std::vector<std::uint8_t> is_listed_;  // by column
  std::vector<std::size_t> not_listed_;  // places in the support
  std::vector<std::size_t> column_offsets_;
  LargeVector<std::int32_t> columns_of_rows_;
  std::vector<std::vector<ColumnState>> column_states_;  // by block of rows and column
};

}  // namespace unkernel::solve
