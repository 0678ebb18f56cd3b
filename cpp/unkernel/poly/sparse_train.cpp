#include "unkernel/poly/sparse_train.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/poly/costs.hpp"
#include "unkernel/poly/working_set.hpp"

namespace unkernel::poly {
namespace {

using kernels::Key;
using solve::ScoreLoss;

// One optimisation problem: all outputs of one loss.
class SparseProblem {
 public:
  SparseProblem(const ConjunctionSearch& search, const ScoreLoss& loss, const SparseOptions& options,
                bool binary, int threads, std::uint64_t seed, Monitor& monitor)
      : search_(search),
        loss_(loss),
        options_(options),
        threads_(threads),
        monitor_(monitor),
        working_(search, binary, binary && options.penalty.l2 == 0.0, options.memory),
        solver_(working_.columns(), loss, options.penalty, seed, threads, monitor) {}

  // Starts from the weights of an earlier model. `first_score` is the index in `start` of this problem's
  // first score.
  void resume(const SparseStart& start, std::size_t first_score) {
    const std::size_t scores = start.intercept.size();
    if (search_.constant_of(0) > 0.0) working_.add(0);
    for (std::size_t output = 0; output < loss_.outputs() && scores > 0; ++output) {
      set(0, output, start.intercept[first_score + output]);
    }
    for (std::size_t k = 0; k < start.keys.size(); ++k) {
      for (std::size_t output = 0; output < loss_.outputs(); ++output) {
        set(start.keys[k], output, start.weights[k * scores + first_score + output]);
      }
    }
  }

  solve::Outcome solve(Progress progress) {
    solve::Outcome outcome;
    outcome.dual_objective = 0.0;  // a lower bound, because losses and penalties are not negative
    solver_.evaluate();
    if (count_weighted_columns() == 0) start_with_features();
    while (true) {
      const std::vector<Candidate> candidates = strongest_violators();
      outcome.objective = solver_.objective();
      outcome.dual_objective = std::max(outcome.dual_objective, dual_over_all(candidates));
      outcome.epochs = solver_.steps();
      const double gap = outcome.objective - outcome.dual_objective;
      const double target_gap = options_.tolerance * outcome.objective;
      outcome.converged = gap <= target_gap;
      progress.epoch = outcome.epochs;
      progress.active = static_cast<std::int64_t>(working_.keys().size());
      progress.relative_gap = outcome.relative_gap();
      progress.objective = outcome.objective;
      progress.bound = outcome.dual_objective;
      monitor_.report(progress);
      outcome.history.note({outcome.epochs, outcome.objective, outcome.dual_objective});
      if (outcome.converged || outcome.epochs >= options_.max_steps) return outcome;
      const std::size_t max_added = max_new_columns();
      const std::size_t added = grow(candidates, max_added);
      const bool has_grown = added > 0;
      const double gap_of_round =
          has_grown ? std::max(0.2 * gap, 0.8 * target_gap) : 0.8 * std::min(gap, target_gap);
      const std::int64_t steps_left = options_.max_steps - outcome.epochs;
      const Effort effort =
          4 * added >= max_added ? effort_while_growing() : Effort{4, solve::ProximalNewton::all_passes};
      const bool reached_target = solver_.run(
          gap_of_round, has_grown ? std::min(steps_left, effort.steps) : steps_left, effort.passes);
      if (!has_grown && !reached_target && solver_.steps() < options_.max_steps) {
        if (solver_.steps() == outcome.epochs) return outcome;  // rounding errors prevent further progress
      }
    }
  }

  const std::vector<Key>& keys() const { return working_.keys(); }
  // Returns the weight that a model stores: per unit of the monomial, not of the column.
  double weight(std::size_t place, std::size_t output) const {
    return solver_.weights(output)[place] * working_.columns().scale(place);
  }
  std::size_t stored() const { return working_.keys().size(); }

 private:
  static constexpr std::size_t no_limit = std::size_t{1} << 60;

  void set(Key key, std::size_t output, double score_weight) {
    if (score_weight == 0.0 || search_.constant_of(key) == 0.0) return;
    const std::size_t place = working_.add(key);
    solver_.add_weight(place, output, score_weight / working_.columns().scale(place));
  }

  std::size_t count_weighted_columns() const {
    std::size_t count = 0;
    for (std::size_t j = 0; j < working_.keys().size(); ++j) {
      bool is_used = false;
      for (std::size_t output = 0; output < loss_.outputs(); ++output)
        is_used = is_used || solver_.weights(output)[j] != 0.0;
      count += is_used ? 1 : 0;
    }
    return count;
  }

  // The Newton steps between two searches, and the passes of each step. Steps are few: a search takes less
  // time than a step on many columns, and better columns lower the objective more than better weights.
  struct Effort {
    std::int64_t steps;
    int passes;
  };

  // While many columns are missing, exact minima of the models are not worth their time. Three passes end
  // before weights move together; one more has them move together once, which pays if columns are so many
  // that single weights hardly progress. With the squared hinge, minima take little time, because most rows
  // soon have no curvature.
  Effort effort_while_growing() const {
    constexpr std::size_t many_columns = 4096;
    const bool has_exponentials =
        options_.loss == SparseLoss::logistic || options_.loss == SparseLoss::poisson;
    if (!has_exponentials) return {2, solve::ProximalNewton::all_passes};
    return working_.keys().size() < many_columns ? Effort{3, 3} : Effort{2, 4};
  }

  // Fits the single features before any conjunctions. At first, a conjunction of frequent features seems
  // strong only because the features are: columns that are long and would get no weight.
  void start_with_features() {
    constexpr std::int64_t first_steps = 4;
    grow(strongest_in_any_output(no_limit, Extensions::skipped), no_limit);
    solver_.run(options_.tolerance * solver_.objective(), std::min(first_steps, options_.max_steps),
                effort_while_growing().passes);
  }

  std::size_t max_new_columns() const {
    constexpr std::size_t min_columns = 128;
    return std::max(min_columns, 3 * count_weighted_columns());
  }

  // Returns the conjunctions that violate their optimality condition in some output, the strongest first.
  // Includes conjunctions in use.
  std::vector<Candidate> strongest_violators() {
    // With l2, every violation lowers the dual objective.
    const bool needs_all = options_.penalty.l2 > 0.0;
    const std::size_t max_results = needs_all ? no_limit : max_new_columns() + working_.conjunctions() + 1;
    std::vector<Candidate> candidates = strongest_in_any_output(max_results, Extensions::visited);
    strengths_.clear();
    if (needs_all) {
      for (const Candidate& candidate : candidates) strengths_.push_back(candidate.strength);
    }
    return candidates;
  }

  std::vector<Candidate> strongest_in_any_output(std::size_t max_results, Extensions extensions) const {
    const std::size_t rows = loss_.rows();
    std::vector<Candidate> candidates;
    for (std::size_t output = 0; output < loss_.outputs(); ++output) {
      const auto violators =
          search_.strongest(solver_.gradients().subspan(output * rows, rows),
                            {options_.penalty.l1, max_results, threads_, extensions}, monitor_);
      candidates.insert(candidates.end(), violators.begin(), violators.end());
    }
    std::sort(candidates.begin(), candidates.end());
    return candidates;
  }

  double dual_over_all(const std::vector<Candidate>& candidates) {
    double largest = candidates.empty() ? 0.0 : candidates.front().strength;
    const std::size_t rows = loss_.rows();
    for (std::size_t output = 0; output < loss_.outputs(); ++output) {  // the search leaves out the constant
      double sum = 0.0;
      for (const double gradient : solver_.gradients().subspan(output * rows, rows)) sum += gradient;
      const double strength = search_.constant_of(0) * std::abs(sum);
      largest = std::max(largest, strength);
      if (strength > options_.penalty.l1) strengths_.push_back(strength);
    }
    return solve::best_dual(loss_, solver_.gradients(), options_.penalty, strengths_, largest);
  }

  // Adds the strongest candidates that are not in use, and returns how many were added.
  std::size_t grow(const std::vector<Candidate>& candidates, std::size_t max_added) {
    std::vector<Key> keys;
    FlatMap<Key, bool> is_chosen;  // several outputs may have the same candidate
    for (const Candidate& candidate : candidates) {
      if (keys.size() == max_added) break;
      if (working_.contains(candidate.key) || is_chosen.find(candidate.key) != nullptr) continue;
      is_chosen[candidate.key] = true;
      keys.push_back(candidate.key);
    }
    working_.add_new(keys, threads_);
    return keys.size();
  }

  const ConjunctionSearch& search_;
  const ScoreLoss& loss_;
  const SparseOptions& options_;
  int threads_;
  Monitor& monitor_;
  WorkingSet working_;
  solve::ProximalNewton solver_;
  std::vector<double> strengths_;
};

struct WeightEntry {
  Key key;
  std::size_t score;
  double weight;
};

// Writes the weights to `trained`: one row per conjunction, sorted by key.
void collect(std::vector<WeightEntry> entries, std::size_t scores, Trained& trained) {
  std::sort(entries.begin(), entries.end(),
            [](const WeightEntry& a, const WeightEntry& b) { return a.key < b.key; });
  trained.intercept.assign(scores, 0.0);
  for (const WeightEntry& entry : entries) {
    if (entry.key == 0) {
      trained.intercept[entry.score] = entry.weight;
      continue;
    }
    if (trained.keys.empty() || trained.keys.back() != entry.key) {
      trained.keys.push_back(entry.key);
      trained.weights.resize(trained.keys.size() * scores, 0.0);
    }
    trained.weights[(trained.keys.size() - 1) * scores + entry.score] = entry.weight;
  }
}

}  // namespace

bool is_regression(SparseLoss loss) {
  return loss == SparseLoss::squared_error || loss == SparseLoss::poisson;
}

std::size_t score_count(const SparseOptions& options) {
  if (is_regression(options.loss)) return 1;
  return static_cast<std::size_t>(problem_count(static_cast<int>(options.class_weights.size())));
}

std::unique_ptr<ScoreLoss> sparse_loss_of(const DistinctRows& examples, const SparseOptions& options,
                                          std::int64_t problem) {
  if (options.loss == SparseLoss::squared_error)
    return squared_error_loss_of(examples, options.C, options.targets, options.epsilon);
  if (options.loss == SparseLoss::poisson) {
    PoissonCosts costs = poisson_costs(examples, options.C, options.targets);
    return solve::poisson_loss(std::move(costs.rows), costs.constant);
  }
  const CostFactors factors{options.C, options.class_weights};
  if (options.loss == SparseLoss::logistic) return logistic_loss_of(examples, factors);
  return solve::squared_hinge_loss(costs_against_rest(examples, factors, problem));
}

Trained train_sparse(const DistinctRows& examples, const SparseOptions& options, const SparseStart& start,
                     Monitor& monitor) {
  check_scale(options.map);
  check_feature_count(examples, options.map.degree);
  const std::size_t scores = score_count(options);
  const auto problems = static_cast<std::int64_t>(options.loss == SparseLoss::logistic ? 1 : scores);
  const std::size_t outputs = scores / static_cast<std::size_t>(problems);
  const int threads_per_problem =
      std::max(1, options.threads / static_cast<int>(std::min<std::int64_t>(problems, 1024)));
  const ConjunctionSearch search(examples, options.map);
  std::vector<std::vector<WeightEntry>> weights(static_cast<std::size_t>(problems));
  Trained trained;
  trained.storage = Storage::on_the_fly;
  trained.outcomes.resize(static_cast<std::size_t>(problems));
  std::vector<std::size_t> stored(static_cast<std::size_t>(problems));
  parallel_for(options.threads, problems, [&](std::int64_t number) {
    const auto p = static_cast<std::size_t>(number);
    const auto loss = sparse_loss_of(examples, options, number);
    SparseProblem problem(search, *loss, options, examples.binary(), threads_per_problem, options.seed + p,
                          monitor);
    problem.resume(start, p);
    trained.outcomes[p] = problem.solve({"training", number, problems, 0, 0, 0, 1.0});
    for (std::size_t j = 0; j < problem.keys().size(); ++j) {
      for (std::size_t output = 0; output < outputs; ++output) {
        const double weight = problem.weight(j, output);
        if (weight != 0.0) weights[p].push_back({problem.keys()[j], p + output, weight});
      }
    }
    stored[p] = problem.stored();
    monitor.finish_one();
  });
  std::vector<WeightEntry> all;
  for (auto& part : weights) all.insert(all.end(), part.begin(), part.end());
  for (const std::size_t count : stored) trained.dimension = std::max(trained.dimension, count);
  collect(std::move(all), scores, trained);
  return trained;
}

}  // namespace unkernel::poly
