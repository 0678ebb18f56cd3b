#include <algorithm>
#include <utility>

#include "unkernel/poly/condensed_rows.hpp"
#include "unkernel/poly/conjunction_search.hpp"
#include "unkernel/poly/mapped_rows.hpp"
#include "unkernel/poly/update_problem.hpp"
#include "unkernel/solve/kernel_newton.hpp"

namespace unkernel::poly {
namespace {

using kernels::Key;

std::vector<Key> keys_of(const StoredRows& rows) {
  if (rows.columns() != nullptr) return rows.columns()->keys;
  std::vector<Key> keys(rows.dimension());
  for (std::size_t column = 0; column < keys.size(); ++column) keys[column] = column;
  return keys;
}

// Returns the place of a key among the old keys.
std::size_t find_place(const OldModel& model, Key key) {
  const auto place = std::lower_bound(model.keys.begin(), model.keys.end(), key);
  if (place == model.keys.end() || *place != key) return OldRows::no_place;
  return static_cast<std::size_t>(place - model.keys.begin());
}

// The weights to which the old rows pull, and how strongly, output-major; and their penalty plus the loss of
// the old rows.
struct Targets {
  std::vector<double> weights, factors;
  double value = 0.0;
};

Targets list_targets(const UpdateProblem& problem, const std::vector<Key>& keys) {
  const bool binary = problem.examples.binary();
  const kernels::ConjunctionIndex index(problem.options.map.degree, kernels::basis_of(binary));
  const LinearConstants constants(problem.options.map, binary, EqualColumns::all_count);
  Targets targets;
  for (const OldRows& old_rows : problem.old_rows) {
    for (const Key key : keys) {
      const std::size_t place = find_place(problem.model, key);
      const double constant = constants.of(index.decode(key));
      const double curvature = problem.model.kept * old_rows.curvature(key, place);
      targets.weights.push_back(constant == 0.0 ? 0.0 : old_rows.best_alone(key, place, constant));
      if (constant != 0.0) targets.value += old_rows.value(key, place, constant, targets.weights.back());
      targets.factors.push_back(1.0 / (problem.options.penalty.l2 + curvature * constant * constant));
    }
  }
  return targets;
}

}  // namespace

UpdatedWeights update_without_l1(const UpdateProblem& problem, Monitor& monitor) {
  const SparseOptions& options = problem.options;
  const std::size_t outputs = problem.old_rows.size();
  const MappedRows mapped(problem.examples,
                          {options.map, Storage::condensed, options.memory, problem.threads},
                          static_cast<int>(6 * outputs), monitor);
  const solve::RowPasses& rows = mapped.stored().passes();
  const auto count = static_cast<std::size_t>(rows.size());
  const std::size_t dimension = mapped.stored().dimension();
  UpdatedWeights updated;
  updated.keys = keys_of(mapped.stored());
  updated.columns = dimension;
  Targets targets = list_targets(problem, updated.keys);
  updated.weights = std::move(targets.weights);
  solve::Pull pull{std::vector<double>(count * outputs), targets.factors, targets.value};
  for (std::size_t k = 0; k < outputs; ++k)
    rows.dots(0, rows.size(), updated.weights.data() + k * dimension, pull.offsets.data() + k * count);
  const auto loss = sparse_loss_of(problem.examples, options, problem.number);
  solve::KernelNewton solver(rows, *loss, std::move(pull), dimension, monitor);
  updated.outcome = solver.run(options.tolerance, options.max_steps,
                               {"training", problem.number, problem.problems, 0, 0, 0, 1.0});
  updated.scores.assign(solver.scores().begin(), solver.scores().end());
  LargeArray<double> change(dimension);
  for (std::size_t k = 0; k < outputs; ++k) {
    std::fill_n(change.data(), dimension, 0.0);
    rows.add(0, rows.size(), solver.coefficients(k).data(), change.data());
    for (std::size_t j = 0; j < dimension; ++j)
      updated.weights[k * dimension + j] += targets.factors[k * dimension + j] * change.data()[j];
  }
  return updated;
}

}  // namespace unkernel::poly
