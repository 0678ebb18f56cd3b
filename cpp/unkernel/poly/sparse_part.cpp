#include "unkernel/poly/sparse_part.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "unkernel/base/error.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/poly/conjunction_columns.hpp"
#include "unkernel/poly/mapped_rows.hpp"
#include "unkernel/poly/storage.hpp"
#include "unkernel/solve/proximal_newton.hpp"

namespace unkernel::poly {

using kernels::Key;

std::vector<double> conjunction_constants(const kernels::FeatureMap& map, bool binary, EqualColumns equal,
                                          std::span<const Key> keys) {
  const kernels::ConjunctionIndex index(map.degree, kernels::basis_of(binary));
  const LinearConstants constants(map, binary, equal);
  std::vector<double> result;
  for (const Key key : keys) result.push_back(constants.of(index.decode(key)));
  return result;
}

SparsePart::SparsePart(const DistinctRows& examples, const SparseOptions& options, std::int64_t problem)
    : examples_(examples),
      options_(options),
      search_(examples, options.map,
              options.penalty.l1 > 0.0 ? EqualColumns::largest_counts : EqualColumns::all_count),
      loss_(sparse_loss_of(examples, options, problem)),
      columns_(examples.binary()) {
  check_scale(options.map);
  check_feature_count(examples, options.map.degree);
  use({});
}

void SparsePart::use(std::span<const Key> keys) {
  const bool extends_keys =
      keys.size() >= keys_.size() && std::ranges::equal(keys.first(keys_.size()), keys_);
  if (!extends_keys) {
    keys_.clear();
    columns_ = solve::SparseColumns(examples_.binary());
  }
  const auto rows = static_cast<std::size_t>(examples_.rows());
  if (rows + keys.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw std::invalid_argument("one part has too many rows and conjunctions in use");
  ConjunctionSearch::ColumnWriter writer(search_);
  for (const Key key : keys.subspan(keys_.size())) {
    const auto anchor = static_cast<std::int32_t>(rows + keys_.size());
    writer.append_entries(key, columns_);
    columns_.add_one(anchor);
    columns_.finish(search_.constant_of(key));
    if (options_.memory > 0.0 && columns_.bytes() > options_.memory) {
      throw NotEnoughMemory(
          "the columns of a sparse model do not fit into a worker's memory; lower C, drop rare features, or "
          "use more workers");
    }
    keys_.push_back(key);
  }
  remove_anchors();
  move_to(std::vector<double>(keys_.size() * outputs(), 0.0));
}

// Sets the anchors to zero, so that the loss covers only the rows of this part.
void SparsePart::remove_anchors() {
  loss_.set(1.0, keys_.size(), std::vector<solve::Anchor>(keys_.size() * outputs(), {0.0, 0.0, 0.0}));
}

std::span<const double> SparsePart::check_weights_size(std::span<const double> weights) const {
  if (weights.size() != keys_.size() * outputs())
    throw std::invalid_argument("weights and directions need one number per conjunction in use and output");
  return weights;
}

std::vector<double> SparsePart::scores_of(std::span<const double> weights) const {
  std::vector<double> scores(loss_.rows() * outputs(), 0.0);
  for (std::size_t k = 0; k < outputs(); ++k) {
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      const double weight = weights[k * keys_.size() + j];
      if (weight != 0.0) columns_.axpy(j, weight, scores.data() + k * loss_.rows());
    }
  }
  return scores;
}

void SparsePart::move_to(std::span<const double> weights) {
  check_weights_size(weights);
  weights_.assign(weights.begin(), weights.end());
  scores_ = scores_of(weights);
  gradients_.resize(scores_.size());
  curvatures_.resize(scores_.size());
  for (std::size_t k = 0; k < outputs(); ++k) {
    loss_.derivatives(scores_, k, std::span(gradients_).subspan(k * loss_.rows(), loss_.rows()),
                      std::span(curvatures_).subspan(k * loss_.rows(), loss_.rows()));
  }
}

double SparsePart::loss() const { return loss_.value(scores_); }

// Returns the gradient in the weights, given the gradient in the scores.
std::vector<double> SparsePart::sum_by_weight(std::span<const double> row_gradients) const {
  std::vector<double> result;
  for (std::size_t k = 0; k < outputs(); ++k) {
    for (std::size_t j = 0; j < keys_.size(); ++j)
      result.push_back(columns_.dot(j, row_gradients.data() + k * loss_.rows()));
  }
  return result;
}

std::vector<double> SparsePart::gradients() const { return sum_by_weight(gradients_); }

std::vector<double> SparsePart::hessian_product(std::span<const double> direction) const {
  std::vector<double> changes = scores_of(check_weights_size(direction));
  multiply_by_curvatures(changes);
  return sum_by_weight(changes);
}

// Multiplies the score changes t of each row by the row's Hessian, diag(a) - a a'/n. Output k of a row gets
// a_k (t_k - a't / n).
void SparsePart::multiply_by_curvatures(std::span<double> changes) const {
  const std::size_t rows = loss_.rows();
  if (outputs() == 1) {
    for (std::size_t i = 0; i < rows; ++i) changes[i] *= curvatures_[i];
    return;
  }
  std::vector<double> a(changes.size());
  loss_.joint_curvatures(scores_, a);
  for (std::size_t i = 0; i < rows; ++i) {
    const double* row_curvatures = a.data() + i * outputs();
    double total = std::numeric_limits<double>::min();
    double mean = 0.0;
    for (std::size_t k = 0; k < outputs(); ++k) {
      total += row_curvatures[k];
      mean += row_curvatures[k] * changes[k * rows + i];
    }
    for (std::size_t k = 0; k < outputs(); ++k)
      changes[k * rows + i] = row_curvatures[k] * (changes[k * rows + i] - mean / total);
  }
}

std::vector<double> SparsePart::curvatures() const {
  std::vector<double> result;
  for (std::size_t k = 0; k < outputs(); ++k) {
    const double* row_curvatures = curvatures_.data() + k * loss_.rows();
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      const auto rows = columns_.rows(j);
      const double* values = columns_.values(j);
      double sum = 0.0;
      for (std::size_t n = 0; n < rows.size(); ++n) {
        const double value = values != nullptr ? values[n] : 1.0;
        sum += row_curvatures[static_cast<std::size_t>(rows[n])] * value * value;
      }
      result.push_back(columns_.scale(j) * columns_.scale(j) * sum);
    }
  }
  return result;
}

std::vector<double> SparsePart::duals(std::span<const double> scales) const {
  std::vector<double> result;
  for (const double scale : scales) result.push_back(loss_.dual(gradients_, scale));
  return result;
}

std::vector<double> SparsePart::losses_along(std::span<const double> direction,
                                             std::span<const double> steps) const {
  const std::vector<double> change = scores_of(check_weights_size(direction));
  std::vector<double> result;
  for (const double step : steps) result.push_back(loss_.value_along(scores_, change, step));
  return result;
}

std::vector<double> SparsePart::propose(const TotalLoss& all, std::int64_t steps, Monitor& monitor) {
  check_weights_size(all.gradients);
  check_weights_size(all.curvatures);
  const std::vector<double> part_gradients = gradients();
  const std::vector<double> part_curvatures = curvatures();
  double total_curvature = 0.0;
  double part_curvature = 0.0;
  for (std::size_t p = 0; p < part_curvatures.size(); ++p) {
    total_curvature += all.curvatures[p];
    part_curvature += part_curvatures[p];
  }
  const double factor = part_curvature > 0.0 ? total_curvature / part_curvature : 0.0;
  std::vector<solve::Anchor> anchors(weights_.size());
  for (std::size_t p = 0; p < weights_.size(); ++p) {
    const double scale = columns_.scale(p % keys_.size());
    const double missing_curvature =
        std::max(all.curvatures[p] - factor * part_curvatures[p], all.damping * all.curvatures[p]);
    anchors[p] = {(all.gradients[p] - factor * part_gradients[p]) / scale,
                  missing_curvature / (scale * scale), scale * weights_[p]};
  }
  loss_.set(factor, keys_.size(), std::move(anchors));
  solve::ProximalNewton solver(columns_, loss_, options_.penalty, options_.seed, options_.threads, monitor);
  for (std::size_t p = 0; p < weights_.size(); ++p) {
    if (weights_[p] != 0.0) solver.add_weight(p % keys_.size(), p / keys_.size(), weights_[p]);
  }
  // An exact minimum of this model is not worth its time if only some of the rows are here.
  const int most_passes = part_curvature < total_curvature ? 6 : solve::ProximalNewton::all_passes;
  solver.run(0.0, steps, most_passes);
  remove_anchors();
  std::vector<double> proposal;
  for (std::size_t k = 0; k < outputs(); ++k) {
    const auto weights = solver.weights(k);
    proposal.insert(proposal.end(), weights.begin(), weights.end());
  }
  return proposal;
}

std::span<const double> SparsePart::row_gradients(std::size_t output) const {
  return std::span(gradients_).subspan(output * loss_.rows(), loss_.part_rows());
}

void SparsePart::check_live(std::size_t output, const LiveConjunctions& live) const {
  if (output >= outputs()) throw std::out_of_range("there is no such output");
  if (live.features.size() != static_cast<std::size_t>(examples_.used_features()))
    throw std::invalid_argument("there must be one flag per feature");
}

FeatureBounds SparsePart::feature_bounds(std::size_t output, const Monitor& monitor) const {
  if (output >= outputs()) throw std::out_of_range("there is no such output");
  return poly::feature_bounds(search_, row_gradients(output),
                              static_cast<std::size_t>(examples_.used_features()), options_.threads, monitor);
}

BucketBounds SparsePart::bucket_bounds(std::size_t output, const LiveConjunctions& live, std::size_t buckets,
                                       const Monitor& monitor) const {
  check_live(output, live);
  return poly::bucket_bounds(search_, row_gradients(output), live, buckets, options_.threads, monitor);
}

ConjunctionSums SparsePart::sums_in_buckets(std::size_t output, const LiveConjunctions& live,
                                            std::span<const std::uint8_t> requested_buckets,
                                            const Monitor& monitor) const {
  check_live(output, live);
  return poly::sums_in_buckets(search_, row_gradients(output), live, requested_buckets, options_.threads,
                               monitor);
}

std::vector<Key> SparsePart::occurring(const Monitor& monitor) const {
  // Find the conjunctions with a non-zero sum. With random row weights, a sum is zero only if the conjunction
  // does not occur.
  Random random(0);
  std::vector<double> row_weights(loss_.part_rows());
  for (double& weight : row_weights) weight = 1.0 + 0x1p-64 * static_cast<double>(random.next());
  const std::vector<std::uint8_t> features(static_cast<std::size_t>(examples_.used_features()), 1);
  const std::vector<std::uint8_t> one_bucket(1, 1);
  return poly::sums_in_buckets(search_, row_weights, {features, one_bucket}, one_bucket, options_.threads,
                               monitor)
      .keys;
}

}  // namespace unkernel::poly
