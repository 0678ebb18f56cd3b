#include "unkernel/poly/train.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>

#include "unkernel/base/large_array.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/poly/costs.hpp"
#include "unkernel/poly/mapped_rows.hpp"
#include "unkernel/solve/dual_coordinate_descent.hpp"
#include "unkernel/solve/gram_rows.hpp"
#include "unkernel/solve/kernel_newton.hpp"
#include "unkernel/solve/likelihood_descent.hpp"

namespace unkernel::poly {
namespace {

// How many numbers solvers store per row and problem.
constexpr int duals_of_svm = 2;      // the dual variables and a copy
constexpr int duals_of_newton = 10;  // the vectors of a Newton step

MapOptions map_options(const TrainOptions& options) {
  return {options.map, options.storage, options.memory, options.threads};
}

// A training task: the costs of the rows in each problem and, in regression, the targets of the rows.
struct Task {
  const TrainOptions& options;
  const Regression* regression;  // null in classification

  int problems() const {
    return regression ? 1 : problem_count(static_cast<int>(options.class_weights.size()));
  }
  std::vector<solve::Costs> costs(const DistinctRows& examples, std::int64_t problem) const {
    if (regression) return costs_of_residuals(examples, options.C, regression->below, regression->above);
    return costs_against_rest(examples, {options.C, options.class_weights}, problem);
  }
  std::vector<double> targets(const DistinctRows& examples) const {
    std::vector<double> targets;
    if (!regression) return targets;
    for (const Label& label : examples.labels) {
      targets.push_back(regression->targets[static_cast<std::size_t>(label.code)]);
    }
    return targets;
  }
};

solve::Coordinates coordinates_of(std::span<const solve::Costs> costs) {
  solve::Coordinates coordinates(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) coordinates[i].costs = costs[i];
  return coordinates;
}

// Calls visit(i, duals of all problems) for each row that occurs in the warm start.
template <class Visit>
void for_each_warm_row(const DistinctRows& examples, const WarmStart& start, std::size_t problems,
                       const Visit& visit) {
  for (std::size_t i = 0; i < examples.hashes.size(); ++i) {
    const auto hash = std::lower_bound(start.hashes.begin(), start.hashes.end(), examples.hashes[i]);
    if (hash == start.hashes.end() || *hash != examples.hashes[i]) continue;
    const auto place = static_cast<std::size_t>(hash - start.hashes.begin());
    visit(i, start.duals.subspan(place * problems, problems));
  }
}

// Sets the dual variables u of the rows that occur in the warm start.
void set_warm_duals(const DistinctRows& examples, const WarmStart& start, std::int64_t problem,
                    std::int64_t problems, bool has_box, solve::Coordinates& coordinates) {
  for_each_warm_row(examples, start, static_cast<std::size_t>(problems),
                    [&](std::size_t i, std::span<const double> duals) {
                      solve::Coordinate& c = coordinates[i];
                      const double u = duals[static_cast<std::size_t>(problem)];
                      const double low = has_box || c.costs.negative == 0.0 ? -c.costs.negative : u;
                      const double high = has_box || c.costs.positive == 0.0 ? c.costs.positive : u;
                      c.u = std::clamp(u, std::min(low, high), std::max(low, high));
                    });
}

// Computes w += sum_i u_i phi(x_i).
void add_rows(const solve::RowPasses& rows, const solve::Coordinates& coordinates,
              std::span<double> weights) {
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    if (coordinates[i].u != 0.0) rows.axpy(static_cast<std::int64_t>(i), coordinates[i].u, weights.data());
  }
}

// The dual variables of a problem, and the targets of its rows (empty in classification).
struct Problem {
  const solve::Loss& loss;
  solve::Coordinates coordinates;
  const std::vector<double>& targets;
};

solve::Outcome solve_problem(const solve::RowPasses& rows, Problem& problem, std::span<double> weights,
                             const solve::DescentOptions& options, const Progress& progress,
                             Monitor& monitor) {
  solve::DualCoordinateDescent solver(rows, problem.loss, std::move(problem.coordinates), weights, options,
                                      monitor, problem.targets);
  const solve::Outcome outcome = solver.run(progress);
  problem.coordinates = solver.coordinates();
  return outcome;
}

// Returns the kernel matrix if training on it is faster than training on mapped rows, else null. All classes
// use the same matrix. After training, the weights are summed over the rows with non-zero dual variables.
std::unique_ptr<solve::GramRows> make_kernel_matrix_if_faster(const solve::RowPasses& rows,
                                                              const TrainOptions& options, double problems,
                                                              double memory) {
  if (rows.is_gram()) return nullptr;
  constexpr double most_rows = 4096;  // 128 MiB
  constexpr double usual_epochs = 20;
  const auto count = static_cast<double>(rows.size());
  constexpr double speed_of_kernel_steps = 3.0;  // these steps run over contiguous memory
  const bool has_cheaper_steps = count <= speed_of_kernel_steps * rows.mean_map_size();
  const bool saves_time = count * rows.mean_row_size() <= usual_epochs * problems * rows.mean_map_size();
  const bool fits = memory <= 0.0 || sizeof(double) * count * count <= memory;
  if (count > most_rows || !fits || !has_cheaper_steps || !saves_time) return nullptr;
  std::vector<std::int32_t> all_rows(static_cast<std::size_t>(rows.size()));
  std::iota(all_rows.begin(), all_rows.end(), 0);
  return std::make_unique<solve::GramRows>(rows.gram(all_rows, options.threads), all_rows.size());
}

// Returns the objective at weights that are the sum of u_i phi(x_i), computed from the scores.
double objective_at(std::span<const double> weights, const solve::RowPasses& rows, const Problem& problem) {
  const auto& [loss, coordinates, targets] = problem;
  double squared_weights = 0.0, losses = 0.0;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const double f = rows.dot(static_cast<std::int64_t>(i), weights.data());
    squared_weights += coordinates[i].u * f;
    losses += solve::loss_of(loss, coordinates[i].costs, targets.empty() ? f : f - targets[i]);
  }
  return 0.5 * squared_weights + losses;
}

solve::Outcome solve_on_kernel_matrix(const solve::RowPasses& rows, const solve::GramRows& gram,
                                      Problem& problem, std::span<double> weights,
                                      const solve::DescentOptions& options, const Progress& progress,
                                      Monitor& monitor) {
  const solve::PassesOver<solve::GramRows> passes(gram);
  std::vector<double> scores(problem.coordinates.size(), 0.0);
  add_rows(passes, problem.coordinates, scores);
  solve::Outcome outcome = solve_problem(passes, problem, scores, options, progress, monitor);
  add_rows(rows, problem.coordinates, weights);
  const double rounding = outcome.objective - outcome.solved_gap - outcome.dual_objective;
  constexpr double max_relative_rounding = 1e-6;
  if (outcome.converged && rounding <= max_relative_rounding * outcome.objective) return outcome;
  outcome.objective = objective_at(weights, rows, problem);
  if (!outcome.converged || outcome.relative_gap() <= options.tolerance) return outcome;
  // Sums of large kernel values are too inaccurate, so continue with sums of weights.
  return solve_problem(rows, problem, weights, options, progress, monitor);
}

// Returns the objective for several outputs. The dual variable of row i and output k is duals[i * outputs +
// k].
double objective_at(const WeightVectors& vectors, const solve::RowPasses& rows, const solve::ScoreLoss& loss,
                    std::span<const double> duals) {
  const auto count = static_cast<std::size_t>(rows.size());
  std::vector<double> scores(count * vectors.size());
  double squared_weights = 0.0;
  for (std::size_t k = 0; k < vectors.size(); ++k) {
    double* const output_scores = scores.data() + k * count;
    rows.dots(0, rows.size(), vectors[k].data(), output_scores);
    for (std::size_t i = 0; i < count; ++i)
      squared_weights += duals[i * vectors.size() + k] * output_scores[i];
  }
  return 0.5 * squared_weights + loss.value(scores);
}

void solve_all(const StoredRows& stored, const DistinctRows& examples, const Task& task,
               const WarmStart& start, double memory, Monitor& monitor, WeightVectors& vectors,
               Trained& trained) {
  const TrainOptions& options = task.options;
  const std::vector<double> targets = task.targets(examples);
  const solve::RowPasses& rows = stored.passes();
  const auto problems = static_cast<std::int64_t>(vectors.size());
  // Problems are solved in parallel. If there are more threads than problems, the remaining threads speed up
  // the full passes of each problem.
  const int threads_per_problem =
      std::max(1, options.threads / static_cast<int>(std::min<std::int64_t>(problems, 1024)));
  const std::unique_ptr<solve::GramRows> gram =
      make_kernel_matrix_if_faster(rows, options, static_cast<double>(problems), memory);
  const double memory_per_problem =
      memory / static_cast<double>(std::min<std::int64_t>(options.threads, problems));
  parallel_for(options.threads, problems, [&](std::int64_t problem) {
    const auto p = static_cast<std::size_t>(problem);
    Problem dual_problem{options.loss, coordinates_of(task.costs(examples, problem)), targets};
    set_warm_duals(examples, start, problem, problems, !options.loss.squared, dual_problem.coordinates);
    vectors[p] = LargeArray<double>(stored.dimension());
    const solve::DescentOptions solver_options{options.tolerance,   options.max_epochs, options.seed + p,
                                               threads_per_problem, memory_per_problem, options.finish};
    const Progress progress{"training", problem, problems, 0, 0, 0, 1.0};
    if (gram) {
      trained.outcomes[p] = solve_on_kernel_matrix(rows, *gram, dual_problem, vectors[p].span(),
                                                   solver_options, progress, monitor);
    } else {
      add_rows(rows, dual_problem.coordinates, vectors[p].span());
      solve::Outcome& outcome = trained.outcomes[p];
      outcome = solve_problem(rows, dual_problem, vectors[p].span(), solver_options, progress, monitor);
      outcome.converged = outcome.converged && outcome.relative_gap() <= options.tolerance;
    }
    for (std::size_t i = 0; i < dual_problem.coordinates.size(); ++i) {
      trained.duals[i * vectors.size() + p] = dual_problem.coordinates[i].u;
    }
    monitor.finish_one();
  });
}

// Decisions made before large arrays are allocated.
struct StoragePlan {
  int problems;
  Storage storage;
  SplitPlan split;
  double remaining_memory;  // for the solver's matrices; 0 for no limit
};

// Returns the memory that remains once rows and weights are stored. Returns at least 1 byte, because 0 means
// no limit.
double remaining_memory(double memory, double used) {
  return memory > 0.0 ? std::max(memory - used, 1.0) : 0.0;
}

Trained train_stored(const DistinctRows& examples, const Task& task, const WarmStart& start, Monitor& monitor,
                     const StoragePlan& plan) {
  const auto& [problems, storage, split, memory] = plan;
  Trained trained;
  trained.storage = storage;
  trained.outcomes.resize(static_cast<std::size_t>(problems));
  trained.duals.resize(examples.hashes.size() * static_cast<std::size_t>(problems));
  monitor.report({"expanding", 0, problems, 0, 0, examples.rows(), 1.0});
  const auto rows = store_rows(examples, map_options(task.options), trained.storage, split, monitor);
  WeightVectors vectors(static_cast<std::size_t>(problems));
  trained.dimension = rows->dimension();
  solve_all(*rows, examples, task, start, memory, monitor, vectors, trained);
  const bool has_dual_model = storage == Storage::split || storage == Storage::kernel;
  if (!has_dual_model) static_cast<Conjunctions&>(trained) = conjunctions_of(*rows, vectors);
  return trained;
}

bool have_converged(const Trained& trained) {
  return std::ranges::all_of(trained.outcomes, &solve::Outcome::converged);
}

Trained train_task(const DistinctRows& examples, const Task& task, const WarmStart& start, Monitor& monitor) {
  const TrainOptions& options = task.options;
  check_scale(options.map);
  const int problems = task.problems();
  check_duals(examples, problems, duals_of_svm, options.memory);
  StorageEstimate estimate = estimate_and_plan(examples, map_options(options), problems);
  if (options.map.degree == 1) check_weights(estimate, options.memory);
  const Storage storage = options.map.degree == 1 ? Storage::on_the_fly
                                                  : choose_storage(options.storage, estimate, options.memory);
  const double duals = bytes_of_duals(examples, problems, duals_of_svm);
  const auto train_in = [&](Storage used_storage, const WarmStart& from) {
    const double memory = remaining_memory(options.memory, bytes_of(estimate, used_storage) + duals);
    return train_stored(examples, task, from, monitor, {problems, used_storage, estimate.split, memory});
  };
  try {
    Trained trained = train_in(storage, start);
    const bool can_choose_again = options.storage == Storage::automatic && storage == Storage::kernel;
    if (!can_choose_again || have_converged(trained)) return trained;
    // Sums of large kernel values may be too inaccurate; sums of weights may still be accurate enough.
    if (!fits_without_kernel(estimate, options.memory)) return trained;
    estimate.is_kernel_fastest = false;
    return train_in(choose_storage(Storage::automatic, estimate, options.memory),
                    {examples.hashes, trained.duals});
  } catch (const std::bad_alloc&) { throw refused_memory(estimate, storage, duals); }
}

// A training task whose loss is a negative log-likelihood.
struct LikelihoodTask {
  solve::Likelihood likelihood;
  std::size_t outputs;
  std::vector<solve::Costs> costs;  // by row; with several outputs, there are none
  double constant;                  // of the loss
  std::unique_ptr<solve::ScoreLoss> loss;
};

LikelihoodTask logistic_task(const DistinctRows& examples, const TrainOptions& options) {
  const CostFactors factors{options.C, options.class_weights};
  const auto outputs =
      static_cast<std::size_t>(problem_count(static_cast<int>(options.class_weights.size())));
  std::vector<solve::Costs> costs;
  if (outputs == 1) costs = costs_against_rest(examples, factors, 0);
  return {solve::Likelihood::logistic, outputs, std::move(costs), 0.0, logistic_loss_of(examples, factors)};
}

LikelihoodTask poisson_task(const DistinctRows& examples, const TrainOptions& options,
                            std::span<const double> targets) {
  PoissonCosts costs = poisson_costs(examples, options.C, targets);
  auto loss = solve::poisson_loss(costs.rows, costs.constant);
  return {solve::Likelihood::poisson, 1, std::move(costs.rows), costs.constant, std::move(loss)};
}

// Trains a single output by dual coordinate descent, from the dual variables in `trained`. Returns early
// where Newton's method is faster.
solve::Outcome descend_to_likelihood(const StoredRows& stored, const LikelihoodTask& task,
                                     const TrainOptions& options, Monitor& monitor, WeightVectors& vectors,
                                     Trained& trained) {
  vectors[0] = LargeArray<double>(stored.dimension());
  solve::LikelihoodDescent solver(
      stored.passes(), task.likelihood, task.costs, trained.duals, vectors[0].span(),
      {options.tolerance, options.max_epochs, options.seed, options.threads, task.constant}, monitor);
  solve::Outcome outcome = solver.run({"training", 0, 1, 0, 0, 0, 1.0});
  trained.duals = solver.duals();
  return outcome;
}

// Trains any number of outputs by Newton's method, from the dual variables in `trained`, and continues
// `outcome`. options.memory is for the matrices of Newton's method.
void finish_by_newton(const StoredRows& stored, const LikelihoodTask& task, const TrainOptions& options,
                      Monitor& monitor, WeightVectors& vectors, Trained& trained, solve::Outcome& outcome) {
  const std::size_t outputs = vectors.size();
  const solve::RowPasses& rows = stored.passes();
  const auto count = static_cast<std::size_t>(rows.size());
  const solve::ScoreLoss& loss = *task.loss;
  std::vector<double> coefficients(count * outputs);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < outputs; ++k) coefficients[k * count + i] = trained.duals[i * outputs + k];
  }
  solve::KernelNewton solver(rows, loss, std::move(coefficients), stored.dimension(),
                             {options.threads, options.memory}, monitor);
  const solve::Outcome finished =
      solver.run(options.tolerance, options.max_epochs - outcome.epochs, {"training", 0, 1, 0, 0, 0, 1.0});
  for (std::size_t k = 0; k < outputs; ++k) {
    const std::span<const double> u = solver.coefficients(k);
    for (std::size_t i = 0; i < count; ++i) trained.duals[i * outputs + k] = u[i];
    vectors[k] = LargeArray<double>(stored.dimension());
    rows.add(0, static_cast<std::int64_t>(count), u.data(), vectors[k].data());
  }
  for (const History::Pass& pass : finished.history.passes())
    outcome.history.note({outcome.epochs + pass.number, pass.objective, pass.bound});
  outcome.epochs += finished.epochs;
  // Recompute the objective from the weights: the solver uses only kernel values, and if these are huge, its
  // result may differ.
  outcome.dual_objective = finished.dual_objective;
  outcome.objective = objective_at(vectors, rows, loss, trained.duals);
  outcome.converged = outcome.relative_gap() <= options.tolerance;
  outcome.history.note({outcome.epochs, outcome.objective, outcome.dual_objective});
}

Trained train_likelihood(const DistinctRows& examples, const LikelihoodTask& task,
                         const TrainOptions& options, const WarmStart& start, Monitor& monitor) {
  const std::size_t outputs = task.outputs;
  const auto count = static_cast<std::size_t>(examples.rows());
  const StorageEstimate estimate = estimate_storage(examples, options.map.degree, static_cast<int>(outputs));
  if (options.map.degree == 1) check_weights(estimate, options.memory);
  Trained trained;
  trained.storage = options.map.degree == 1 ? Storage::on_the_fly
                                            : choose_storage(options.storage, estimate, options.memory);
  trained.duals.resize(count * outputs, 0.0);
  for_each_warm_row(examples, start, outputs, [&](std::size_t i, std::span<const double> duals) {
    std::ranges::copy(duals, trained.duals.begin() + static_cast<std::ptrdiff_t>(i * outputs));
  });
  monitor.report({"expanding", 0, 1, 0, 0, examples.rows(), 1.0});
  const auto rows = store_rows(examples, map_options(options), trained.storage, SplitPlan{}, monitor);
  trained.dimension = rows->dimension();
  WeightVectors vectors(outputs);
  solve::Outcome outcome;
  if (outputs == 1) outcome = descend_to_likelihood(*rows, task, options, monitor, vectors, trained);
  if (!outcome.converged && outcome.epochs < options.max_epochs) {
    vectors = WeightVectors(outputs);
    const double used = bytes_of(estimate, trained.storage) +
                        bytes_of_duals(examples, static_cast<int>(outputs), duals_of_newton);
    TrainOptions newton_options = options;
    newton_options.memory = remaining_memory(options.memory, used);
    finish_by_newton(*rows, task, newton_options, monitor, vectors, trained, outcome);
  }
  trained.outcomes.push_back(std::move(outcome));
  static_cast<Conjunctions&>(trained) = conjunctions_of(*rows, vectors);
  return trained;
}

}  // namespace

int problem_count(int classes) { return classes == 2 ? 1 : classes; }

Trained train(const DistinctRows& examples, const TrainOptions& options, const WarmStart& start,
              Monitor& monitor) {
  return train_task(examples, {options, nullptr}, start, monitor);
}

Trained train_regression(const DistinctRows& examples, const TrainOptions& options,
                         const Regression& regression, const WarmStart& start, Monitor& monitor) {
  return train_task(examples, {options, &regression}, start, monitor);
}

Trained train_logistic(const DistinctRows& examples, const TrainOptions& options, const WarmStart& start,
                       Monitor& monitor) {
  check_scale(options.map);
  const int problems = problem_count(static_cast<int>(options.class_weights.size()));
  check_duals(examples, problems, duals_of_newton, options.memory);
  return train_likelihood(examples, logistic_task(examples, options), options, start, monitor);
}

Trained train_poisson(const DistinctRows& examples, const TrainOptions& options,
                      std::span<const double> targets, const WarmStart& start, Monitor& monitor) {
  check_scale(options.map);
  check_duals(examples, 1, duals_of_newton, options.memory);
  return train_likelihood(examples, poisson_task(examples, options, targets), options, start, monitor);
}

}  // namespace unkernel::poly
