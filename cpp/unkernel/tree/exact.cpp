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

constexpr std::size_t first_examples = 1024;  // of each labelling
constexpr std::size_t fewest_to_add = 256;
constexpr double finest_pairs = 1e-7;  // the limit of kernels in single precision
// Per round: with kernels of very different magnitudes, the pair solver may never converge.
constexpr std::int64_t most_steps = 10'000'000;
constexpr double largest_kernel = 1e30;  // that single precision can handle

// The state of one labelling.
struct Problem {
  Problem(const Labelling& given, bool with_intercept)
      : labels(given.labels),
        costs(given.costs),
        alpha(given.labels.size(), 0.0),
        scores(given.labels.size(), 0.0),
        scored(given.labels.size(), false),
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

  // Returns how much an example violates its optimality condition.
  double violation(std::size_t i) const {
    const double slack = 1.0 - labels[i] * (scores[i] + intercept);
    if (slack > 0.0) return alpha[i] < costs[i] ? slack : 0.0;
    return alpha[i] > 0.0 ? -slack : 0.0;
  }

  const std::vector<signed char>& labels;
  const std::vector<double>& costs;
  std::vector<double> alpha;
  std::vector<double> scores;
  std::vector<bool> scored;  // in double precision, with these alpha
  bool fit_intercept;
  bool settled = false;  // the gap is small enough according to the current scores
  bool announced = false;
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
        square_(examples, room(examples.size(), options.memory), options.threads),
        self_(examples.self_kernels()) {
    if (!std::ranges::all_of(self_, [](double value) { return value <= largest_kernel; })) {
      throw std::invalid_argument(
          "the kernel of an example with itself is not finite, or above 1e30: lower the decay, or normalise "
          "the trees");
    }
    for (const Labelling& labelling : labellings) problems_.emplace_back(labelling, options.fit_intercept);
  }

  std::vector<Trained> run() {
    publish("kernels", 0);
    bring_in(first_choice());
    if (square_.size() == examples_.size()) {  // one round should suffice
      for (Problem& problem : problems_)
        problem.pair_tolerance = std::min(problem.pair_tolerance, 2.0 * options_.tolerance);
    }
    for (std::int64_t round = 1; round <= options_.max_rounds; ++round) {
      const std::vector<Problem*> problems = open();
      parallel_for(options_.threads, static_cast<std::int64_t>(problems.size()), [&](std::int64_t i) {
        Problem& problem = *problems[static_cast<std::size_t>(i)];
        solve(problem);
        problem.result.rounds = round;
      });
      score(open(), unworked());
      for (Problem* problem : open()) settle(*problem);
      if (open().empty() || round == options_.max_rounds) certify();  // may reopen some problems
      publish("training", round);
      for (Problem* problem : problems)
        problem->result.history.note({round, problem->result.objective, problem->result.dual_objective});
      if (open().empty()) break;
      const std::vector<std::int32_t> found = violators();
      if (!tighten(found.empty())) {
        certify();
        break;
      }
      bring_in(found);
    }
    std::vector<Trained> trained;
    for (Problem& problem : problems_) {
      problem.result.converged = problem.settled;
      problem.result.coefficients = std::move(problem.alpha);
      for (std::size_t i = 0; i < problem.labels.size(); ++i)
        problem.result.coefficients[i] *= problem.labels[i];
      trained.push_back(std::move(problem.result));
    }
    return trained;
  }

 private:
  static std::size_t room(std::size_t examples, std::size_t memory) {
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(memory) / sizeof(float)));
    return std::min(examples, std::max<std::size_t>(side, 64));
  }

  std::vector<Problem*> open() {
    std::vector<Problem*> found;
    for (Problem& problem : problems_) {
      if (!problem.settled) found.push_back(&problem);
    }
    return found;
  }

  void settle(Problem& problem) {
    problem.evaluate();
    problem.settled = problem.gap() <= options_.tolerance;
  }

  // Sets the accuracy of the next pair solution: higher as the gap closes, and if no other example violates
  // its condition. False if nothing more can be done within single precision.
  bool tighten(bool all_are_worked_with) {
    bool can_go_on = !all_are_worked_with;
    for (Problem* problem : open()) {
      double& tolerance = problem->pair_tolerance;
      can_go_on = can_go_on || tolerance > finest_pairs;
      tolerance = std::min(tolerance, std::max(0.1 * problem->gap(), 0.25 * options_.tolerance));
      if (all_are_worked_with) tolerance *= 0.25;
      tolerance = std::max(tolerance, finest_pairs);
    }
    return can_go_on;
  }

  // Scores the examples that are not yet scored with the current weights: the scores of the working set come
  // from a kernel matrix in single precision.
  void certify() {
    std::vector<Problem*> all;
    for (Problem& problem : problems_) all.push_back(&problem);
    std::vector<std::int32_t> examples;
    for (std::size_t i = 0; i < examples_.size(); ++i) {
      if (!std::ranges::all_of(problems_, [i](const Problem& problem) { return problem.scored[i]; }))
        examples.push_back(static_cast<std::int32_t>(i));
    }
    score(all, examples);
    for (Problem* problem : all) settle(*problem);
  }

  void publish(const char* stage, std::int64_t round) {
    for (Problem& problem : problems_) {
      if (problem.settled && !std::exchange(problem.announced, true)) monitor_.finish_one();
    }
    Progress progress;
    progress.stage = stage;
    progress.problems = static_cast<std::int64_t>(problems_.size());
    progress.problem = progress.problems - static_cast<std::int64_t>(open().size());
    progress.epoch = round;
    progress.active = static_cast<std::int64_t>(square_.size());
    progress.relative_gap = 0.0;
    for (const Problem& problem : problems_) {
      progress.relative_gap = std::max(progress.relative_gap, round == 0 ? 1.0 : problem.gap());
    }
    progress.objective = problems_.front().result.objective;
    progress.bound = problems_.front().result.dual_objective;
    monitor_.report(progress);
  }

  // Returns examples spread evenly over the set: as many of either label as there are, up to half of the
  // initial size.
  std::vector<std::int32_t> first_choice() const {
    const std::size_t n = examples_.size();
    std::vector<bool> chosen(n, n <= square_.capacity() && n <= first_examples * problems_.size());
    for (const Problem& problem : problems_) {
      for (const int label : {-1, 1}) {
        std::vector<std::size_t> of_label;
        for (std::size_t i = 0; i < n; ++i) {
          if (problem.labels[i] == label && problem.costs[i] > 0.0) of_label.push_back(i);
        }
        const std::size_t wanted =
            std::min({first_examples / 2, of_label.size(), square_.capacity() / (2 * problems_.size()) + 1});
        for (std::size_t k = 0; k < wanted; ++k) chosen[of_label[k * of_label.size() / wanted]] = true;
      }
    }
    std::vector<std::int32_t> examples;
    for (std::size_t i = 0; i < n && examples.size() < square_.capacity(); ++i) {
      if (chosen[i]) examples.push_back(static_cast<std::int32_t>(i));
    }
    return examples;
  }

  // Returns the examples with the largest violations over all labellings: at most three quarters of the
  // working set, as most early violators turn out not to matter.
  std::vector<std::int32_t> violators() const {
    std::vector<double> worst(examples_.size(), 0.0);
    for (const Problem& problem : problems_) {
      if (problem.settled) continue;
      for (std::size_t i = 0; i < worst.size(); ++i) worst[i] = std::max(worst[i], problem.violation(i));
    }
    std::vector<std::int32_t> found;
    for (std::size_t i = 0; i < worst.size(); ++i) {
      const auto example = static_cast<std::int32_t>(i);
      if (worst[i] > 0.5 * options_.tolerance && square_.place(example) < 0) found.push_back(example);
    }
    const std::size_t most =
        std::min(std::max(fewest_to_add, 3 * square_.size() / 4), square_.capacity() / 2);
    std::ranges::stable_sort(found, std::greater<>(), [&](std::int32_t i) { return worst[at(i)]; });
    if (found.size() > most) found.resize(most);
    std::ranges::sort(found);
    return found;
  }

  void bring_in(const std::vector<std::int32_t>& examples) {
    std::size_t count = examples.size();
    if (square_.size() + count > square_.capacity()) make_room(count);
    count = std::min(count, square_.capacity() - square_.size());
    square_.add(std::span(examples).first(count));
  }

  // Drops the examples that need the least work: those satisfied at a bound, the most satisfied first; then
  // those longest in the working set. Dropped examples keep their values, and return when their violations
  // are largest.
  void make_room(std::size_t wanted) {
    const auto examples = square_.examples();
    std::vector<double> content(examples.size(), std::numeric_limits<double>::infinity());
    for (std::size_t k = 0; k < examples.size(); ++k) {
      const std::size_t i = at(examples[k]);
      for (const Problem& problem : problems_) {
        if (problem.settled) continue;
        const bool at_bound = problem.alpha[i] <= 0.0 || problem.alpha[i] >= problem.costs[i];
        const double slack = std::abs(1.0 - problem.labels[i] * (problem.scores[i] + problem.intercept));
        content[k] = std::min(content[k], at_bound && problem.violation(i) == 0.0 ? slack : 0.0);
      }
    }
    std::vector<std::size_t> order(examples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t k) { return content[k]; });
    std::vector<bool> wanted_examples(examples_.size(), true);
    const std::size_t excess = square_.size() + wanted - square_.capacity();
    for (std::size_t k = 0; k < std::min(excess, order.size()); ++k)
      wanted_examples[at(examples[order[k]])] = false;
    square_.keep(wanted_examples);
  }

  void solve(Problem& problem) const {
    const auto examples = square_.examples();
    const std::size_t n = examples.size();
    std::vector<signed char> labels(n);
    std::vector<double> costs(n), alpha(n), gradient(n), diagonal(n);
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t i = at(examples[k]);
      labels[k] = problem.labels[i];
      costs[k] = problem.costs[i];
      alpha[k] = problem.alpha[i];
      gradient[k] = labels[k] * problem.scores[i] - 1.0;
      diagonal[k] = self_[i];
    }
    const solve::SmoProblem pairs{{square_.values(), square_.stride(), nullptr}, diagonal, labels, costs};
    const solve::PairOutcome outcome = solve::minimise_pairs(
        pairs, {problem.pair_tolerance, most_steps, options_.fit_intercept}, alpha, gradient, monitor_);
    problem.intercept = outcome.bias;
    problem.scored.assign(problem.scored.size(), false);
    for (std::size_t k = 0; k < n; ++k) {
      problem.alpha[at(examples[k])] = alpha[k];
      problem.scores[at(examples[k])] = labels[k] * (gradient[k] + 1.0);
    }
  }

  // Returns the examples whose scores the pair solver does not maintain.
  std::vector<std::int32_t> unworked() const {
    std::vector<std::int32_t> examples;
    for (std::size_t i = 0; i < examples_.size(); ++i) {
      if (square_.place(static_cast<std::int32_t>(i)) < 0) examples.push_back(static_cast<std::int32_t>(i));
    }
    return examples;
  }

  // One pass over those examples, for all the problems at once.
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
        problems[p]->scored[at(examples[k])] = true;
      }
    }
  }

  const TrainingExamples& examples_;
  ExactOptions options_;
  Monitor& monitor_;
  GramBlock square_;
  std::vector<double> self_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Trained> train_exact(const TrainingExamples& examples, std::span<const Labelling> labellings,
                                 const ExactOptions& options, Monitor& monitor) {
  return Decomposition(examples, labellings, options, monitor).run();
}

}  // namespace unkernel::tree
