#include "unkernel/tree/sampled.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "unkernel/base/at.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/solve/simplex_qp.hpp"

namespace unkernel::tree {
namespace {

// The precision of the small dual, as a share of the requested precision: practically exact. A less precise
// solution would depend on rounding, and so would the examples of later cuts.
constexpr double dual_precision_share = 1e-9;

// Draws examples in proportion to their importance. If all are requested and have equal importance, all are
// drawn.
class Sampler {
 public:
  Sampler(std::span<const double> importances, std::int64_t size, std::uint64_t seed)
      : importances_(importances),
        size_(static_cast<std::size_t>(size)),
        largest_(*std::ranges::max_element(importances)),
        random_(seed) {
    uniform_ = std::ranges::all_of(importances, [&](double importance) { return importance == largest_; });
  }

  std::vector<std::int32_t> draw() {
    std::vector<std::int32_t> sample;
    const auto n = static_cast<std::uint32_t>(importances_.size());
    if (uniform_ && size_ >= importances_.size()) {
      sample.resize(importances_.size());
      std::iota(sample.begin(), sample.end(), 0);
      return sample;
    }
    while (sample.size() < size_) {
      const std::uint32_t i = random_.below(n);
      const double chance = static_cast<double>(random_.next() >> 11) * 0x1p-53;
      if (chance * largest_ < importances_[i]) sample.push_back(static_cast<std::int32_t>(i));
    }
    std::ranges::sort(sample);
    return sample;
  }

 private:
  std::span<const double> importances_;
  std::size_t size_;
  double largest_;
  bool uniform_;
  Random random_;
};

// The small dual of all cuts, with a constant feature if an intercept is requested.
class CutProgram {
 public:
  CutProgram(double mass, bool fit_intercept) : mass_(mass), fit_intercept_(fit_intercept) {}

  // `products` are the inner products of the cut with all cuts, itself last; `pull` is the sum of its
  // coefficients.
  void add(std::span<const double> products, double offset, double pull) {
    const std::size_t size = offsets_.size() + 1;
    std::vector<double> gram(size * size);
    pulls_.push_back(pull);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        if (i + 1 < size && j + 1 < size) {
          gram[i * size + j] = gram_[i * (size - 1) + j];
        } else {
          gram[i * size + j] = products[std::min(i, j)] + (fit_intercept_ ? pulls_[i] * pulls_[j] : 0.0);
        }
      }
    }
    gram_ = std::move(gram);
    offsets_.push_back(offset);
    alphas_.push_back(0.0);
  }

  void solve(double accuracy) {
    dual_objective_ = solve::maximise_on_simplex(
        {offsets_.size(), gram_.data(), offsets_.size(), offsets_.data(), mass_}, alphas_, accuracy);
  }

  // Returns max_t (d_t - w'g_t), at least 0.
  double slack() const {
    double largest = 0.0;
    for (std::size_t t = 0; t < offsets_.size(); ++t) largest = std::max(largest, offsets_[t] - product(t));
    return largest;
  }
  double squared_norm() const {
    double sum = 0.0;
    for (std::size_t t = 0; t < offsets_.size(); ++t) sum += alphas_[t] * product(t);
    return sum;
  }
  double intercept() const {
    return fit_intercept_ ? std::inner_product(alphas_.begin(), alphas_.end(), pulls_.begin(), 0.0) : 0.0;
  }
  double objective() const { return 0.5 * squared_norm() + mass_ * slack(); }
  double dual_objective() const { return dual_objective_; }
  // Returns the remaining gain: 0 once the problem of the cuts is solved.
  double gap() const { return objective() - dual_objective_; }
  const std::vector<double>& alphas() const { return alphas_; }

 private:
  double product(std::size_t t) const {
    return std::inner_product(alphas_.begin(), alphas_.end(),
                              gram_.begin() + static_cast<std::ptrdiff_t>(t * offsets_.size()), 0.0);
  }

  double mass_;
  bool fit_intercept_;
  double dual_objective_ = 0.0;
  std::vector<double> gram_;
  std::vector<double> offsets_;
  std::vector<double> pulls_;
  std::vector<double> alphas_;
};

// Returns the examples of the sample that are inside the margin, each once.
Cut most_violated_cut(const Sample& sample, std::span<const double> scores) {
  Cut cut;
  const double share = 1.0 / static_cast<double>(sample.examples.size());
  for (std::size_t k = 0; k < sample.examples.size(); ++k) {
    const double label = sample.labels[k];
    if (label * (scores[k] + sample.intercept) >= 1.0) continue;
    cut.offset += share;
    if (!cut.examples.empty() && cut.examples.back() == sample.examples[k]) {
      cut.coefficients.back() += label * share;
    } else {
      cut.examples.push_back(sample.examples[k]);
      cut.coefficients.push_back(label * share);
    }
  }
  return cut;
}

double violation_of(const Cut& cut, const Sample& sample, std::span<const double> scores) {
  double product = 0.0;
  for (std::size_t k = 0, s = 0; k < cut.examples.size(); ++k) {
    while (sample.examples[s] != cut.examples[k]) ++s;
    product += cut.coefficients[k] * (scores[s] + sample.intercept);
  }
  return cut.offset - product;
}

}  // namespace

Trained train_sampled(Cuts& cuts, const Labelling& labelling, const SampledOptions& options,
                      Progress progress, Monitor& monitor) {
  const double total = std::accumulate(labelling.costs.begin(), labelling.costs.end(), 0.0);
  CutProgram program(options.C * total, options.fit_intercept);
  Sampler sampler(labelling.costs, options.sample_size, options.seed);
  Trained trained;
  progress.stage = "sampling";
  for (std::int64_t problem = 0; problem < progress.problem; ++problem) monitor.finish_one();
  for (std::int64_t round = 1; round <= options.max_rounds && !trained.converged; ++round) {
    const std::vector<std::int32_t> sampled = sampler.draw();
    std::vector<signed char> labels;
    for (const std::int32_t example : sampled) labels.push_back(labelling.labels[at(example)]);
    const Sample sample{sampled, labels, program.intercept()};
    std::vector<double> scores(sampled.size(), 0.0);
    if (round > 1) cuts.score(program.alphas(), sample, scores);
    Cut cut = most_violated_cut(sample, scores);
    const double slack = program.slack();
    const double violation = violation_of(cut, sample, scores);
    // The slack is meaningful only if the small dual has been solved.
    trained.converged = round > 1 && violation <= slack + options.epsilon &&
                        program.gap() <= options.epsilon * options.C * total;
    if (!cut.examples.empty()) {
      const double offset = cut.offset;
      const double pull = std::accumulate(cut.coefficients.begin(), cut.coefficients.end(), 0.0);
      const std::vector<double> products = cuts.add(std::move(cut));
      if (!std::ranges::all_of(products, [](double product) { return std::isfinite(product); })) {
        throw std::invalid_argument(
            "the kernel of an example is not finite: lower the decay, or normalise the trees");
      }
      program.add(products, offset, pull);
      program.solve(dual_precision_share * options.epsilon * options.C * total);
    }
    trained.rounds = round;
    progress.epoch = round;
    progress.active = static_cast<std::int64_t>(cuts.cuts().size());
    progress.relative_gap = std::max(0.0, violation - slack);
    progress.objective = program.objective();
    progress.bound = program.dual_objective();
    monitor.report(progress);
    trained.history.note({round, progress.objective, progress.bound});
    monitor.throw_if_stopped();
  }
  trained.coefficients.assign(labelling.labels.size(), 0.0);
  for (std::size_t t = 0; t < cuts.cuts().size(); ++t) {
    const Cut& cut = cuts.cuts()[t];
    for (std::size_t k = 0; k < cut.examples.size(); ++k) {
      trained.coefficients[at(cut.examples[k])] += program.alphas()[t] * cut.coefficients[k];
    }
  }
  trained.intercept = program.intercept();
  trained.objective = progress.objective;
  trained.dual_objective = program.dual_objective();
  return trained;
}

}  // namespace unkernel::tree
