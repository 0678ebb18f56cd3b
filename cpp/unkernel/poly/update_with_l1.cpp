#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/poly/update_problem.hpp"
#include "unkernel/poly/working_set.hpp"
#include "unkernel/solve/anchored_loss.hpp"
#include "unkernel/solve/proximal_newton.hpp"

namespace unkernel::poly {
namespace {

using kernels::Key;

class SparseUpdate {
 public:
  SparseUpdate(const UpdateProblem& problem, const ConjunctionSearch& search, Monitor& monitor)
      : problem_(problem), search_(search), monitor_(monitor), keys_{0} {
    keys_.insert(keys_.end(), problem.model.keys.begin(), problem.model.keys.end());
    add_old_features();
    weights_.resize(outputs() * keys_.size());
    for (std::size_t k = 0; k < outputs(); ++k) {
      for (std::size_t j = 0; j < keys_.size(); ++j)
        weights_[k * keys_.size() + j] = problem.old_rows[k].weight(keys_[j], place_of(j));
    }
  }

  UpdatedWeights solve() {
    Progress progress{"training", problem_.number, problem_.problems, 0, 0, 0, 1.0};
    UpdatedWeights updated;
    while (!solve_for_keys(progress, updated)) {}
    return updated;
  }

 private:
  // Adds the features without a weight: their slopes are known, and the search does not see them.
  void add_old_features() {
    const kernels::ConjunctionIndex index(problem_.options.map.degree, problem_.examples.binary()
                                                                           ? kernels::Basis::sets
                                                                           : kernels::Basis::monomials);
    const std::span<const Key> old_keys = problem_.model.keys;
    for (std::size_t rank = 0; rank * problem_.model.scores() < problem_.model.feature_slopes.size();
         ++rank) {
      const Key key = index.block(rank);
      if (!std::binary_search(old_keys.begin(), old_keys.end(), key)) keys_.push_back(key);
    }
  }

  struct Columns {
    WorkingSet working;
    solve::AnchoredLoss loss;  // of the new rows and, as one row per key, of the old rows
  };

  std::size_t rows() const { return static_cast<std::size_t>(problem_.examples.rows()); }
  std::size_t outputs() const { return problem_.old_rows.size(); }
  // Returns the place of keys_[j] among the old keys, which follow the constant.
  std::size_t place_of(std::size_t j) const {
    return j > 0 && j <= problem_.model.keys.size() ? j - 1 : OldRows::no_place;
  }

  Columns make_columns() const {
    if (rows() + keys_.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw std::invalid_argument("an update has too many rows and weights");
    const SparseOptions& options = problem_.options;
    const bool binary = problem_.examples.binary();
    Columns columns{WorkingSet(search_, binary, binary && options.penalty.l2 == 0.0, options.memory),
                    solve::AnchoredLoss(sparse_loss_of(problem_.examples, options, problem_.number))};
    std::vector<solve::Anchor> anchors = list_anchors();
    columns.working.add_occurring(keys_, list_anchor_rows(anchors), problem_.threads);
    for (std::size_t place = 0; place < anchors.size(); ++place) {
      if (!columns.working.contains(keys_[place % keys_.size()])) anchors[place] = {0.0, 0.0, 0.0};
    }
    columns.loss.set(1.0, keys_.size(), std::move(anchors));
    return columns;
  }

  std::vector<solve::Anchor> list_anchors() const {
    std::vector<solve::Anchor> anchors(outputs() * keys_.size(), {0.0, 0.0, 0.0});
    for (std::size_t k = 0; k < outputs(); ++k) {
      for (std::size_t j = 0; j < keys_.size(); ++j) {
        const double constant = search_.constant_of(keys_[j]);
        if (constant == 0.0) continue;
        const solve::Anchor anchor = problem_.old_rows[k].anchor(keys_[j], place_of(j), constant);
        if (anchor.curvature > 0.0) anchors[k * keys_.size() + j] = anchor;
      }
    }
    return anchors;
  }

  std::vector<std::int32_t> list_anchor_rows(const std::vector<solve::Anchor>& anchors) const {
    std::vector<std::int32_t> anchor_rows(keys_.size(), WorkingSet::no_anchor);
    for (std::size_t place = 0; place < anchors.size(); ++place) {
      const std::size_t j = place % keys_.size();
      if (anchors[place].curvature > 0.0) anchor_rows[j] = static_cast<std::int32_t>(rows() + j);
    }
    return anchor_rows;
  }

  // Solves the problem for the current keys. Returns whether the solution is certified or cannot be improved;
  // otherwise, adds keys for the next solution.
  bool solve_for_keys(Progress& progress, UpdatedWeights& updated) {
    const Columns columns = make_columns();
    const SparseOptions& options = problem_.options;
    solve::ProximalNewton solver(columns.working.columns(), columns.loss, options.penalty, options.seed,
                                 problem_.threads, monitor_);
    move_to_weights(columns.working, solver);
    solve::Outcome& outcome = updated.outcome;
    run(columns, solver, options.max_steps - outcome.epochs);
    const std::vector<Candidate> violators = list_violators(columns, solver);
    outcome.epochs += solver.steps();
    outcome.objective = solver.objective();
    outcome.dual_objective = find_bound(columns, solver, violators);
    outcome.converged = outcome.objective - outcome.dual_objective <= options.tolerance * outcome.objective;
    report(progress, outcome, columns.working.keys().size());
    store_weights(columns.working, solver);
    if (!outcome.converged && outcome.epochs < options.max_steps && !violators.empty()) {
      add_keys(violators);
      return false;
    }
    finish(columns, solver, updated);
    return true;
  }

  // Runs the solver to half of the tolerance, which leaves the other half to conjunctions that are not in
  // use.
  void run(const Columns& columns, solve::ProximalNewton& solver, std::int64_t most_steps) const {
    solver.evaluate();
    while (solver.steps() < most_steps) {
      const double gap = solver.objective() - find_bound(columns, solver, {});
      const std::int64_t steps_before = solver.steps();
      if (gap <= 0.5 * problem_.options.tolerance * solver.objective()) return;
      const double objective_before = solver.objective();
      solver.run(0.0, 1);
      if (solver.steps() == steps_before || solver.objective() >= objective_before) return;
    }
  }

  void move_to_weights(const WorkingSet& working, solve::ProximalNewton& solver) const {
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      const auto column = working.place_of(keys_[j]);
      if (!column) continue;
      for (std::size_t k = 0; k < outputs(); ++k) {
        const double weight = weights_[k * keys_.size() + j];
        if (weight != 0.0) solver.add_weight(*column, k, weight / working.columns().scale(*column));
      }
    }
  }

  // Returns the conjunctions that are not in use and violate their optimality condition, the strongest first.
  std::vector<Candidate> list_violators(const Columns& columns, const solve::ProximalNewton& solver) const {
    const std::size_t max_results = 4 * keys_.size() + 1024;
    std::vector<Candidate> violators;
    for (std::size_t k = 0; k < outputs(); ++k) {
      const auto found =
          search_.strongest(solver.gradients().subspan(k * columns.loss.rows(), rows()),
                            {problem_.options.penalty.l1, max_results, problem_.threads}, monitor_);
      violators.insert(violators.end(), found.begin(), found.end());
    }
    std::erase_if(violators,
                  [&](const Candidate& candidate) { return columns.working.contains(candidate.key); });
    std::sort(violators.begin(), violators.end());
    return violators;
  }

  // Returns a lower bound of the optimum over all conjunctions. Those not in use are in `violators`, or
  // satisfy their optimality condition.
  double find_bound(const Columns& columns, const solve::ProximalNewton& solver,
                    const std::vector<Candidate>& violators) const {
    const solve::Penalty& penalty = problem_.options.penalty;
    std::vector<double> strengths;
    for (const Candidate& violator : violators) strengths.push_back(violator.strength);
    for (std::size_t k = 0; k < outputs(); ++k) {
      for (const double gradient : solver.column_gradients(k)) strengths.push_back(std::abs(gradient));
    }
    const double largest = strengths.empty() ? 0.0 : *std::max_element(strengths.begin(), strengths.end());
    std::erase_if(strengths, [&](double strength) { return strength <= penalty.l1; });
    return std::max(solve::best_dual(columns.loss, solver.gradients(), penalty, strengths, largest),
                    find_bound_by_anchors(columns, solver, violators));
  }

  // Returns the dual objective that is best for the anchors, given the dual variables of the new rows. The
  // weight of a column with an anchor satisfies its constraint by the dual variable of the anchor, so only
  // the other columns determine the scale of the new rows.
  double find_bound_by_anchors(const Columns& columns, const solve::ProximalNewton& solver,
                               const std::vector<Candidate>& violators) const {
    const double l1 = problem_.options.penalty.l1;
    double largest = violators.empty() ? 0.0 : violators.front().strength;
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      const auto column = columns.working.place_of(keys_[j]);
      for (std::size_t k = 0; column && k < outputs(); ++k) {
        if (columns.loss.anchor(k, j).curvature == 0.0)
          largest = std::max(largest, std::abs(solver.column_gradients(k)[*column]));
      }
    }
    const double scale = largest > l1 ? l1 / largest : 1.0;
    double bound = columns.loss.part_dual(solver.gradients(), scale);
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      const auto column = columns.working.place_of(keys_[j]);
      for (std::size_t k = 0; column && k < outputs(); ++k) {
        const solve::Anchor& anchor = columns.loss.anchor(k, j);
        if (anchor.curvature == 0.0) continue;
        const double constant = columns.working.columns().scale(*column);
        const double of_anchor = solver.gradients()[k * columns.loss.rows() + rows() + j];
        const double of_rows = scale * (solver.column_gradients(k)[*column] - constant * of_anchor);
        const double best = anchor.curvature * anchor.centre - anchor.slope;
        bound += anchor.dual(std::clamp(best, (of_rows - l1) / constant, (of_rows + l1) / constant));
      }
    }
    return bound;
  }

  void report(Progress& progress, solve::Outcome& outcome, std::size_t columns) const {
    progress.epoch = outcome.epochs;
    progress.active = static_cast<std::int64_t>(columns);
    progress.relative_gap = outcome.relative_gap();
    progress.objective = outcome.objective;
    progress.bound = outcome.dual_objective;
    monitor_.report(progress);
    outcome.history.note({outcome.epochs, outcome.objective, outcome.dual_objective});
  }

  void store_weights(const WorkingSet& working, const solve::ProximalNewton& solver) {
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      const auto column = working.place_of(keys_[j]);
      if (!column) continue;
      const bool represents = working.keys()[*column] == keys_[j];
      for (std::size_t k = 0; k < outputs(); ++k) {
        weights_[k * keys_.size() + j] =
            represents ? solver.weights(k)[*column] * working.columns().scale(*column) : 0.0;
      }
    }
  }

  void add_keys(const std::vector<Candidate>& violators) {
    const std::size_t old_size = keys_.size();
    const std::size_t max_size = old_size + std::max<std::size_t>(1024, 2 * old_size);
    FlatMap<Key, bool> is_added;  // several outputs may have the same violator
    for (const Candidate& violator : violators) {
      if (keys_.size() == max_size) break;
      if (is_added.find(violator.key) != nullptr) continue;
      is_added[violator.key] = true;
      keys_.push_back(violator.key);
    }
    std::vector<double> weights(outputs() * keys_.size(), 0.0);
    for (std::size_t k = 0; k < outputs(); ++k) {
      for (std::size_t j = 0; j < old_size; ++j) weights[k * keys_.size() + j] = weights_[k * old_size + j];
    }
    weights_ = std::move(weights);
  }

  void finish(const Columns& columns, const solve::ProximalNewton& solver, UpdatedWeights& updated) const {
    updated.columns = columns.working.keys().size();
    std::vector<std::size_t> in_use;
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      if (columns.working.contains(keys_[j])) in_use.push_back(j);
    }
    for (const std::size_t j : in_use) updated.keys.push_back(keys_[j]);
    for (std::size_t k = 0; k < outputs(); ++k) {
      for (const std::size_t j : in_use) updated.weights.push_back(weights_[k * keys_.size() + j]);
      const auto scores = solver.scores().subspan(k * columns.loss.rows(), rows());
      updated.scores.insert(updated.scores.end(), scores.begin(), scores.end());
    }
  }

  const UpdateProblem& problem_;
  const ConjunctionSearch& search_;
  Monitor& monitor_;
  std::vector<Key> keys_;        // the constant, the old keys, and keys that were added
  std::vector<double> weights_;  // output-major
};

}  // namespace

UpdatedWeights update_with_l1(const UpdateProblem& problem, const ConjunctionSearch& search,
                              Monitor& monitor) {
  return SparseUpdate(problem, search, monitor).solve();
}

}  // namespace unkernel::poly
