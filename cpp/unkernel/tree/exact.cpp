#include "unkernel/tree/exact.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "unkernel/base/at.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/solve/smo.hpp"
#include "unkernel/tree/best_intercept.hpp"
#include "unkernel/tree/gram_block.hpp"

namespace unkernel::tree {
namespace {

constexpr std::size_t first_examples = 1024;  // per labelling
constexpr std::size_t min_added = 256;
constexpr double finest_pairs = 1e-7;  // the finest tolerance of SMO, because kernels are in single precision
// The most steps of SMO per round: with kernels of very different magnitudes, it may never converge.
constexpr std::int64_t most_steps = 10'000'000;
constexpr double largest_kernel = 1e30;  // above this, single precision overflows

// The state of one labelling.
struct Problem {
  Problem(const Labelling& labelling, bool with_intercept)
      : labels(labelling.labels),
        costs(labelling.costs),
        alpha(labelling.labels.size(), 0.0),
        scores(labelling.labels.size(), 0.0),
        has_exact_score(labelling.labels.size(), false),
        fit_intercept(with_intercept) {}

  // Computes P, D and b from the scores of all examples.
  void evaluate() {
    double squared = 0.0;
    double mass = 0.0;
    for (std::size_t i = 0; i < alpha.size(); ++i) {
      squared += alpha[i] * labels[i] * scores[i];
      mass += alpha[i];
    }
    const BestIntercept best = fit_intercept ? best_intercept(scores, labels, costs)
                                             : BestIntercept{0.0, hinge_loss(scores, labels, costs, 0.0)};
    result.intercept = best.intercept;
    result.objective = 0.5 * squared + best.loss;
    result.dual_objective = mass - 0.5 * squared;
  }

  double gap() const {
    return result.objective > 0.0 ? std::max(result.objective - result.dual_objective, 0.0) / result.objective
                                  : 0.0;
  }

  // Returns the amount by which an example violates its optimality condition.
  double violation(std::size_t i) const {
    const double slack = 1.0 - labels[i] * (scores[i] + intercept);
    if (slack > 0.0) return alpha[i] < costs[i] ? slack : 0.0;
    return alpha[i] > 0.0 ? -slack : 0.0;
  }

  const std::vector<signed char>& labels;
  const std::vector<double>& costs;
  std::vector<double> alpha;
  std::vector<double> scores;
  // Whether the score is in double precision and belongs to the current alpha.
  std::vector<bool> has_exact_score;
  bool fit_intercept;
  bool is_solved = false;  // whether the gap is small enough for the current scores
  bool is_reported = false;
  double intercept = 0.0;  // of the pair solver
  double pair_tolerance = 0.01;
  Trained result;
};

class Decomposition {
 public:
  Decomposition(const TrainingExamples& examples, std::span<const Labelling> labellings,
                const ExactOptions& options, Monitor& monitor)
      : examples_(examples),
        options_(options),
        monitor_(monitor),
        kernel_block_(examples, max_examples(examples.size(), options.memory), options.threads),
        self_kernels_(examples.self_kernels()) {
    if (!std::ranges::all_of(self_kernels_, [](double value) { return value <= largest_kernel; })) {
      throw std::invalid_argument(
          "the kernel of an example with itself is not finite, or above 1e30: lower the decay, or normalise "
          "the trees");
    }
    for (const Labelling& labelling : labellings) problems_.emplace_back(labelling, options.fit_intercept);
  }

  std::vector<Trained> run() {
    report_progress("kernels", 0);
    add_examples(choose_first_examples());
    if (kernel_block_.size() == examples_.size()) {  // one round should suffice
      for (Problem& problem : problems_)
        problem.pair_tolerance = std::min(problem.pair_tolerance, 2.0 * options_.tolerance);
    }
    for (std::int64_t round = 1; round <= options_.max_rounds; ++round) {
      const std::vector<Problem*> problems = unsolved();
      parallel_for(options_.threads, static_cast<std::int64_t>(problems.size()), [&](std::int64_t i) {
        Problem& problem = *problems[static_cast<std::size_t>(i)];
        solve(problem);
        problem.result.rounds = round;
      });
      score(unsolved(), examples_outside());
      for (Problem* problem : unsolved()) check_gap(*problem);
      if (unsolved().empty() || round == options_.max_rounds) certify();  // may reopen some problems
      report_progress("training", round);
      for (Problem* problem : problems)
        problem->result.history.note({round, problem->result.objective, problem->result.dual_objective});
      if (unsolved().empty()) break;
      const std::vector<std::int32_t> violators = find_violators();
      if (!tighten_tolerances(violators.empty())) {
        certify();
        break;
      }
      add_examples(violators);
    }
    std::vector<Trained> trained;
    for (Problem& problem : problems_) {
      problem.result.converged = problem.is_solved;
      problem.result.coefficients = std::move(problem.alpha);
      for (std::size_t i = 0; i < problem.labels.size(); ++i)
        problem.result.coefficients[i] *= problem.labels[i];
      trained.push_back(std::move(problem.result));
    }
    return trained;
  }

 private:
  static std::size_t max_examples(std::size_t examples, std::size_t memory) {
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(memory) / sizeof(float)));
    return std::min(examples, std::max<std::size_t>(side, 64));
  }

  std::vector<Problem*> unsolved() {
    std::vector<Problem*> problems;
    for (Problem& problem : problems_) {
      if (!problem.is_solved) problems.push_back(&problem);
    }
    return problems;
  }

  void check_gap(Problem& problem) {
    problem.evaluate();
    problem.is_solved = problem.gap() <= options_.tolerance;
  }

  // Sets the tolerance of SMO in the next round. It decreases with the gap, and further if no example outside
  // of the working set violates its condition. Returns false if single precision allows no more progress.
  bool tighten_tolerances(bool no_violators_left) {
    bool can_continue = !no_violators_left;
    for (Problem* problem : unsolved()) {
      double& tolerance = problem->pair_tolerance;
      can_continue = can_continue || tolerance > finest_pairs;
      tolerance = std::min(tolerance, std::max(0.1 * problem->gap(), 0.25 * options_.tolerance));
      if (no_violators_left) tolerance *= 0.25;
      tolerance = std::max(tolerance, finest_pairs);
    }
    return can_continue;
  }

  // Scores the examples that have no score in double precision for the current weights. (The scores of the
  // working set come from a kernel matrix in single precision.)
  void certify() {
    std::vector<Problem*> all;
    for (Problem& problem : problems_) all.push_back(&problem);
    std::vector<std::int32_t> examples;
    for (std::size_t i = 0; i < examples_.size(); ++i) {
      if (!std::ranges::all_of(problems_, [i](const Problem& problem) { return problem.has_exact_score[i]; }))
        examples.push_back(static_cast<std::int32_t>(i));
    }
    score(all, examples);
    for (Problem* problem : all) check_gap(*problem);
  }

  void report_progress(const char* stage, std::int64_t round) {
    for (Problem& problem : problems_) {
      if (problem.is_solved && !std::exchange(problem.is_reported, true)) monitor_.finish_one();
    }
    Progress progress;
    progress.stage = stage;
    progress.problems = static_cast<std::int64_t>(problems_.size());
    progress.problem = progress.problems - static_cast<std::int64_t>(unsolved().size());
    progress.epoch = round;
    progress.active = static_cast<std::int64_t>(kernel_block_.size());
    progress.relative_gap = 0.0;
    for (const Problem& problem : problems_) {
      progress.relative_gap = std::max(progress.relative_gap, round == 0 ? 1.0 : problem.gap());
    }
    progress.objective = problems_.front().result.objective;
    progress.bound = problems_.front().result.dual_objective;
    monitor_.report(progress);
  }

  // Returns examples spread evenly over the set: for each label up to half of the initial size.
  std::vector<std::int32_t> choose_first_examples() const {
    const std::size_t n = examples_.size();
    std::vector<bool> chosen(n, n <= kernel_block_.capacity() && n <= first_examples * problems_.size());
    for (const Problem& problem : problems_) {
      for (const int label : {-1, 1}) {
        std::vector<std::size_t> with_label;
        for (std::size_t i = 0; i < n; ++i) {
          if (problem.labels[i] == label && problem.costs[i] > 0.0) with_label.push_back(i);
        }
        const std::size_t count = std::min(
            {first_examples / 2, with_label.size(), kernel_block_.capacity() / (2 * problems_.size()) + 1});
        for (std::size_t k = 0; k < count; ++k) chosen[with_label[k * with_label.size() / count]] = true;
      }
    }
    std::vector<std::int32_t> examples;
    for (std::size_t i = 0; i < n && examples.size() < kernel_block_.capacity(); ++i) {
      if (chosen[i]) examples.push_back(static_cast<std::int32_t>(i));
    }
    return examples;
  }

  // Returns the examples with the largest violations over all labellings: at most three quarters of the size
  // of the working set, because most early violators are not support vectors in the end.
  std::vector<std::int32_t> find_violators() const {
    std::vector<double> largest_violation(examples_.size(), 0.0);
    for (const Problem& problem : problems_) {
      if (problem.is_solved) continue;
      for (std::size_t i = 0; i < largest_violation.size(); ++i)
        largest_violation[i] = std::max(largest_violation[i], problem.violation(i));
    }
    std::vector<std::int32_t> violators;
    for (std::size_t i = 0; i < largest_violation.size(); ++i) {
      const auto example = static_cast<std::int32_t>(i);
      if (largest_violation[i] > 0.5 * options_.tolerance && kernel_block_.place(example) < 0)
        violators.push_back(example);
    }
    const std::size_t max_violators =
        std::min(std::max(min_added, 3 * kernel_block_.size() / 4), kernel_block_.capacity() / 2);
    std::ranges::stable_sort(violators, std::greater<>(),
                             [&](std::int32_t i) { return largest_violation[at(i)]; });
    if (violators.size() > max_violators) violators.resize(max_violators);
    std::ranges::sort(violators);
    return violators;
  }

  void add_examples(const std::vector<std::int32_t>& examples) {
    std::size_t count = examples.size();
    if (kernel_block_.size() + count > kernel_block_.capacity()) drop_easiest(count);
    count = std::min(count, kernel_block_.capacity() - kernel_block_.size());
    kernel_block_.add(std::span(examples).first(count));
  }

  // Drops the examples whose variables are least likely to change, to make room for new examples: first
  // examples at a bound that satisfy their condition, in the order of descending slack; then the oldest
  // examples of the working set. Dropped examples keep their alpha; find_violators may choose them again.
  void drop_easiest(std::size_t new_examples) {
    const auto examples = kernel_block_.examples();
    std::vector<double> slack_of(examples.size(), std::numeric_limits<double>::infinity());
    for (std::size_t k = 0; k < examples.size(); ++k) {
      const std::size_t i = at(examples[k]);
      for (const Problem& problem : problems_) {
        if (problem.is_solved) continue;
        const bool at_bound = problem.alpha[i] <= 0.0 || problem.alpha[i] >= problem.costs[i];
        const double slack = std::abs(1.0 - problem.labels[i] * (problem.scores[i] + problem.intercept));
        slack_of[k] = std::min(slack_of[k], at_bound && problem.violation(i) == 0.0 ? slack : 0.0);
      }
    }
    std::vector<std::size_t> order(examples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t k) { return slack_of[k]; });
    std::vector<bool> is_kept(examples_.size(), true);
    const std::size_t excess = kernel_block_.size() + new_examples - kernel_block_.capacity();
    for (std::size_t k = 0; k < std::min(excess, order.size()); ++k) is_kept[at(examples[order[k]])] = false;
    kernel_block_.keep(is_kept);
  }

  void solve(Problem& problem) const {
    const auto examples = kernel_block_.examples();
    const std::size_t n = examples.size();
    std::vector<signed char> labels(n);
    std::vector<double> costs(n), alpha(n), gradient(n), diagonal(n);
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t i = at(examples[k]);
      labels[k] = problem.labels[i];
      costs[k] = problem.costs[i];
      alpha[k] = problem.alpha[i];
      gradient[k] = labels[k] * problem.scores[i] - 1.0;
      diagonal[k] = self_kernels_[i];
    }
    const solve::SmoProblem pairs{
        {kernel_block_.values(), kernel_block_.stride(), nullptr}, diagonal, labels, costs};
    const solve::PairOutcome outcome = solve::minimise_pairs(
        pairs, {problem.pair_tolerance, most_steps, options_.fit_intercept}, alpha, gradient, monitor_);
    problem.intercept = outcome.bias;
    problem.has_exact_score.assign(problem.has_exact_score.size(), false);
    for (std::size_t k = 0; k < n; ++k) {
      problem.alpha[at(examples[k])] = alpha[k];
      problem.scores[at(examples[k])] = labels[k] * (gradient[k] + 1.0);
    }
  }

  // Returns the examples whose scores the pair solver does not maintain.
  std::vector<std::int32_t> examples_outside() const {
    std::vector<std::int32_t> examples;
    for (std::size_t i = 0; i < examples_.size(); ++i) {
      if (kernel_block_.place(static_cast<std::int32_t>(i)) < 0)
        examples.push_back(static_cast<std::int32_t>(i));
    }
    return examples;
  }

  // Scores these examples for all problems in one pass.
  void score(const std::vector<Problem*>& problems, const std::vector<std::int32_t>& examples) {
    if (problems.empty() || examples.empty()) return;
    Support support{{}, {}, problems.size()};
    for (std::size_t i = 0; i < examples_.size(); ++i) {
      if (std::ranges::none_of(problems, [&](const Problem* problem) { return problem->alpha[i] > 0.0; }))
        continue;
      support.examples.push_back(static_cast<std::int32_t>(i));
      for (const Problem* problem : problems)
        support.coefficients.push_back(problem->alpha[i] * problem->labels[i]);
    }
    const std::vector<double> scores = examples_.scores(std::move(support), examples);
    for (std::size_t k = 0; k < examples.size(); ++k) {
      for (std::size_t p = 0; p < problems.size(); ++p) {
        problems[p]->scores[at(examples[k])] = scores[k * problems.size() + p];
        problems[p]->has_exact_score[at(examples[k])] = true;
      }
    }
  }

  const TrainingExamples& examples_;
  ExactOptions options_;
  Monitor& monitor_;
  GramBlock kernel_block_;
  std::vector<double> self_kernels_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Trained> train_exact(const TrainingExamples& examples, std::span<const Labelling> labellings,
                                 const ExactOptions& options, Monitor& monitor) {
  return Decomposition(examples, labellings, options, monitor).run();
}

}  // namespace unkernel::tree
