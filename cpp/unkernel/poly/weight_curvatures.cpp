#include "unkernel/poly/weight_curvatures.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "unkernel/poly/conjunction_search.hpp"
#include "unkernel/poly/conjunction_visits.hpp"

namespace unkernel::poly {
namespace {

using kernels::Key;

// Writes the sums of all features and of some conjunctions for one score. Threads visit different ones. The
// conjunctions whose rarest feature is the same have neighbouring keys.
class SumsOfScore {
 public:
  SumsOfScore(std::span<const Key> keys, const kernels::ConjunctionIndex& index, WeightCurvatures& sums,
              std::size_t score, std::size_t scores)
      : keys_(keys), index_(index), sums_(sums), score_(score), scores_(scores) {}

  void visit_single(std::size_t rank, Key key, double sum) {
    begin_ = find(keys_.begin(), keys_.end(), key);
    end_ = find(begin_, keys_.end(), index_.block(rank + 1));
    sums_.features[rank * scores_ + score_] = sum;
    visit_several(key, sum);
  }
  void visit_several(Key key, double sum) {
    const auto place = find(begin_, end_, key);
    if (place == end_ || *place != key) return;
    sums_.conjunctions[static_cast<std::size_t>(place - keys_.begin()) * scores_ + score_] = sum;
  }
  bool should_extend(std::size_t, double) const { return begin_ != end_; }
  bool should_extend_pair(Key, double) const { return true; }

 private:
  using Place = std::span<const Key>::iterator;
  static Place find(Place begin, Place end, Key key) { return std::lower_bound(begin, end, key); }

  std::span<const Key> keys_;
  const kernels::ConjunctionIndex& index_;
  WeightCurvatures& sums_;
  std::size_t score_, scores_;
  Place begin_, end_;  // of the conjunctions of the feature that is visited
};

// Adds sum_i g_i x_i of each feature to the slopes of one score.
void add_slopes(const DistinctRows& examples, std::span<const double> gradients, std::size_t score,
                std::size_t scores, std::vector<double>& slopes) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    for (auto k = static_cast<std::size_t>(examples.offsets[i]);
         k < static_cast<std::size_t>(examples.offsets[i + 1]); ++k) {
      const double value = examples.binary() ? 1.0 : examples.values[k];
      slopes[static_cast<std::size_t>(examples.features[k]) * scores + score] += gradients[i] * value;
    }
  }
}

DistinctRows with_squared_values(const DistinctRows& examples) {
  DistinctRows squared = examples;
  for (double& value : squared.values) value *= value;
  return squared;
}

}  // namespace

WeightCurvatures weight_curvatures(const DistinctRows& examples, const SparseOptions& options,
                                   std::span<const Key> keys, std::span<const double> scores,
                                   const Monitor& monitor) {
  const auto rows = static_cast<std::size_t>(examples.rows());
  const std::size_t outputs = score_count(options);
  if (scores.size() != rows * outputs) throw std::invalid_argument("scores and rows differ in number");
  const kernels::FeatureMap monomials{options.map.degree, kernels::FeatureMap::Kind::plain, 1.0, 1.0};
  const DistinctRows squared = with_squared_values(examples);
  const ConjunctionSearch search(squared, monomials);
  const kernels::ConjunctionIndex index(options.map.degree, kernels::basis_of(examples.binary()));
  WeightCurvatures result;
  result.features.resize(examples.columns.size() * outputs, 0.0);
  result.conjunctions.resize(keys.size() * outputs, 0.0);
  result.slopes.resize(examples.columns.size() * outputs, 0.0);
  std::vector<double> gradients(rows);
  std::vector<double> curvatures(rows);
  for (std::size_t output = 0; output < outputs; ++output) {
    const bool is_joint = options.loss == SparseLoss::logistic;
    const auto loss = sparse_loss_of(examples, options, static_cast<std::int64_t>(output));
    const std::span<const double> of_problem = is_joint ? scores : scores.subspan(output * rows, rows);
    loss->derivatives(of_problem, is_joint ? output : 0, gradients, curvatures);
    add_slopes(examples, gradients, output, outputs, result.slopes);
    loss->wide_curvatures(of_problem, is_joint ? output : 0, curvatures);
    std::vector<SumsOfScore> threads(static_cast<std::size_t>(std::max(options.threads, 1)),
                                     SumsOfScore(keys, index, result, output, outputs));
    search.visit_all(curvatures, std::span(threads), monitor);
    result.intercept.push_back(std::accumulate(curvatures.begin(), curvatures.end(), 0.0));
  }
  return result;
}

}  // namespace unkernel::poly
