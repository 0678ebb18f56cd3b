// Solves the linear systems of the interior-point method in two forms: one over columns, one over rows.
//
// Given a weight E_i > 0 and a right-hand side e_i for each row, both forms solve du + E K du = e for the
// change du of u, where K is the kernel matrix. Both return the change of scores df = K du, and also du if it
// can be computed without cancellation. ColumnSystem factors a matrix over columns, for few conjunctions and
// many rows. RowSystem factors a matrix over rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::solve {

// A symmetric positive definite matrix, stored as its lower triangle row by row and factored in place.
class Cholesky {
 public:
  explicit Cholesky(std::size_t size) : size_(size), entries_(size * size, 0.0) {}

  std::size_t size() const { return size_; }
  double* row(std::size_t i) { return entries_.data() + i * size_; }
  const double* row(std::size_t i) const { return entries_.data() + i * size_; }
  void clear() { entries_.assign(entries_.size(), 0.0); }
  // Factors the matrix. Raises pivots to at least `least_pivot`, because smaller pivots come from rounding
  // errors or dependent rows.
  void factor(double least_pivot);
  void solve(std::span<double> x) const;  // in place

 private:
  std::size_t size_;
  std::vector<double> entries_;
};

struct Change {
  std::vector<double> u;  // empty if the caller must compute it from the scores
  std::vector<double> scores;
};

class NormalSystem {
 public:
  virtual ~NormalSystem() = default;
  virtual std::vector<double> scores(std::span<const double> u) const = 0;  // f_i = phi_i' sum_i u_i phi_i
  virtual void factor(std::span<const double> E) = 0;
  virtual Change solve(std::span<const double> e) const = 0;
};

// Mapped rows as explicit lists of columns and values; columns ascend in each row.
struct MappedRows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  std::size_t dimension = 0;
};

class ColumnSystem final : public NormalSystem {
 public:
  ColumnSystem(MappedRows rows, int threads);
  std::vector<double> scores(std::span<const double> u) const override;
  void factor(std::span<const double> E) override;
  Change solve(std::span<const double> e) const override;

 private:
  std::vector<double> combine_rows(std::span<const double> u) const;   // sum_i u_i phi_i
  std::vector<double> multiply_rows(std::span<const double> w) const;  // phi_i'w
  void add_row_by_row(std::span<const double> E);
  void add_by_blocks(std::span<const double> E);

  MappedRows rows_;
  int threads_;
  bool uses_blocks_;  // mapped rows are dense enough to be multiplied as dense blocks
  Cholesky matrix_;   // I + sum E_i phi_i phi_i'
};

class RowSystem final : public NormalSystem {
 public:
  RowSystem(std::vector<double> gram, std::size_t rows) : gram_(std::move(gram)), matrix_(rows) {}
  std::vector<double> scores(std::span<const double> u) const override;
  void factor(std::span<const double> E) override;
  Change solve(std::span<const double> e) const override;

 private:
  std::vector<double> gram_;
  std::vector<double> root_;  // sqrt(E_i)
  Cholesky matrix_;           // I + sqrt(E) K sqrt(E); well conditioned for every E
};

}  // namespace unkernel::solve
