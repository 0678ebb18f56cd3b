// Compares the linear systems of the interior-point method with elimination, and checks its duality gap.
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "solve/dense_problem.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/interior_point.hpp"
#include "unkernel/solve/normal_system.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::solve;
using namespace dense_problem;

using Matrix = std::vector<std::vector<double>>;

// Gauss-Jordan elimination with partial pivoting.
std::vector<double> solve_by_elimination(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i) pivot = std::abs(a[i][k]) > std::abs(a[pivot][k]) ? i : pivot;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = 0; k < n; ++k) b[k] /= a[k][k];
  return b;
}

double uniform(Random& random) { return random.below(2001) / 1000.0 - 1.0; }

void test_cholesky_equals_elimination() {
  Random random(1);
  for (const std::size_t size : {1U, 2U, 7U, 70U, 150U}) {
    Matrix root(size, std::vector<double>(size));
    for (auto& row : root) {
      for (double& entry : row) entry = uniform(random);
    }
    Matrix matrix(size, std::vector<double>(size));
    Cholesky cholesky(size);
    CHECK(cholesky.size() == size);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        for (std::size_t k = 0; k < size; ++k) matrix[i][j] += root[i][k] * root[j][k];
        if (i == j) matrix[i][j] += 1.0;
        if (j <= i) cholesky.row(i)[j] = matrix[i][j];
      }
    }
    std::vector<double> x(size);
    for (double& entry : x) entry = uniform(random);
    const std::vector<double> expected = solve_by_elimination(matrix, x);
    cholesky.factor(1e-8);
    cholesky.solve(x);
    for (std::size_t i = 0; i < size; ++i) CHECK(close(x[i], expected[i], 1e-8));
  }
}

std::vector<std::int32_t> all_rows(const DenseRows& rows) {
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < rows.size(); ++i) all.push_back(i);
  return all;
}

// Returns df = Phi (I + Phi' E Phi)^-1 Phi' e by the formula.
std::vector<double> slow_change(const DenseRows& rows, const std::vector<double>& E,
                                const std::vector<double>& e) {
  Matrix normal(rows.width(), std::vector<double>(rows.width()));
  std::vector<double> right_side(rows.width());
  for (std::size_t k = 0; k < rows.width(); ++k) normal[k][k] = 1.0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (std::size_t k = 0; k < rows.width(); ++k) {
      right_side[k] += e[row] * rows.row(i)[k];
      for (std::size_t l = 0; l < rows.width(); ++l) normal[k][l] += E[row] * rows.row(i)[k] * rows.row(i)[l];
    }
  }
  const std::vector<double> change = solve_by_elimination(normal, right_side);
  std::vector<double> scores;
  for (std::int64_t i = 0; i < rows.size(); ++i) scores.push_back(rows.dot(i, change.data()));
  return scores;
}

void check_equal(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(close(a[i], b[i], 1e-7));
}

// Checks the change of the scores and, if the system returns it, the change of u: du = e - E df.
void check_change(const Change& change, const DenseRows& rows, const std::vector<double>& E,
                  const std::vector<double>& e, const std::vector<double>& expected) {
  check_equal(change.scores, expected);
  if (change.u.empty()) return;
  std::vector<double> w(rows.width(), 0.0);
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(i);
    CHECK(close(change.u[row], e[row] - E[row] * expected[row], 1e-6));
    rows.axpy(i, change.u[row], w.data());
  }
  for (std::int64_t i = 0; i < rows.size(); ++i)
    CHECK(close(rows.dot(i, w.data()), expected[static_cast<std::size_t>(i)], 1e-6));
}

void test_both_systems_equal_the_explicit_formula() {
  Random random(2);
  DenseRowsWithMap rows(60, 9, 1.0, 3);
  rows.clear_row(5);
  RowSystem by_rows(rows.gram(all_rows(rows), 1), 60);
  ColumnSystem by_columns(rows.mapped(), 1);
  ColumnSystem by_threads(rows.mapped(), 3);
  for (const double size : {0.01, 1.0, 1000.0}) {
    std::vector<double> E, e;
    for (int i = 0; i < 60; ++i) {
      E.push_back(i % 10 == 0 ? 1e-12 : size * (1e-3 + std::abs(uniform(random))));
      e.push_back(uniform(random));
    }
    by_rows.factor(E);
    by_columns.factor(E);
    by_threads.factor(E);
    const std::vector<double> expected = slow_change(rows, E, e);
    check_change(by_rows.solve(e), rows, E, e, expected);
    check_change(by_columns.solve(e), rows, E, e, expected);
    CHECK(by_threads.solve(e).scores == by_columns.solve(e).scores);
    const std::vector<double> scores = slow_change(rows, std::vector<double>(60, 0.0), e);
    check_equal(by_rows.scores(e), scores);
    check_equal(by_columns.scores(e), scores);
  }
}

template <class LossKind>
void test_reaches_the_optimum() {
  for (const double C : {0.01, 1.0, 1e4}) {
    DenseRowsWithMap rows(80, 6, 1.0, 4);
    rows.clear_row(3);
    rows.clear_row(7);
    rows.stretch_columns();
    Coordinates coordinates = costs_for(rows, C, 5);
    std::vector<Costs> costs;
    for (const Coordinate& c : coordinates) costs.push_back(c.costs);
    const std::vector<double> targets = targets_for<LossKind>(rows);
    const Monitor monitor;
    RowSystem by_rows(rows.gram(all_rows(rows), 1), costs.size());
    ColumnSystem by_columns(rows.mapped(), 1);
    for (NormalSystem* system :
         {static_cast<NormalSystem*>(&by_rows), static_cast<NormalSystem*>(&by_columns)}) {
      InteriorPoint solver(LossKind::name, costs, targets, *system, monitor);
      if (!solver.run(1e-7)) {  // it may give up only if rounding errors prevent further progress
        CHECK(C > 100.0 && system == &by_columns);
        continue;
      }
      const std::vector<double> u = solver.duals();
      for (std::size_t i = 0; i < u.size(); ++i) {
        coordinates[i].u = std::clamp(u[i], LossKind::low(costs[i]), LossKind::high(costs[i]));
      }
      const double upper = primal<LossKind>(rows, coordinates, weights_of(rows, coordinates));
      const double lower = dual<LossKind>(rows, coordinates);
      CHECK(upper >= lower - 1e-9 * upper && upper - lower <= 1e-6 * upper);
    }
  }
}

void test_a_stopped_monitor_interrupts() {
  const DenseRowsWithKernel rows(30, 4, 1.0, 6);
  std::vector<Costs> costs;
  for (const Coordinate& c : costs_for(rows, 1.0, 7)) costs.push_back(c.costs);
  RowSystem system(rows.gram(all_rows(rows), 1), 30);
  Monitor monitor;
  InteriorPoint solver(Loss::hinge, costs, {}, system, monitor);
  monitor.stop();
  CHECK_THROWS(solver.run(1e-9), Interrupted);
}

}  // namespace

int main() {
  test_cholesky_equals_elimination();
  test_both_systems_equal_the_explicit_formula();
  for_all_losses([]<class LossKind>(LossKind) { test_reaches_the_optimum<LossKind>(); });
  test_a_stopped_monitor_interrupts();
  return 0;
}
