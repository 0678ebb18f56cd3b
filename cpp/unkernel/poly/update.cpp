#include "unkernel/poly/update.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "unkernel/base/parallel.hpp"
#include "unkernel/poly/conjunction_search.hpp"
#include "unkernel/poly/update_problem.hpp"

namespace unkernel::poly {
namespace {

using kernels::Basis;
using kernels::ConjunctionIndex;
using kernels::Key;

void check_sizes(const DistinctRows& examples, const SparseOptions& options, const OldModel& model) {
  const std::size_t scores = score_count(options);
  const std::size_t weights = model.keys.size() * scores;
  if (model.intercept.size() != scores || model.intercept_curvatures.size() != scores ||
      model.weights.size() != weights || model.conjunction_curvatures.size() != weights ||
      model.feature_curvatures.size() > examples.columns.size() * scores ||
      model.feature_curvatures.size() % scores != 0 ||
      model.feature_slopes.size() != model.feature_curvatures.size())
    throw std::invalid_argument("the arrays of the old model do not fit together");
  if (!(model.kept >= 0.0 && model.kept <= 1.0))
    throw std::invalid_argument("the factor of the old rows must be from 0 to 1");
}

class ModelUpdate {
 public:
  ModelUpdate(const DistinctRows& examples, const SparseOptions& options, const OldModel& model,
              Monitor& monitor)
      : examples_(examples),
        options_(options),
        model_(model),
        monitor_(monitor),
        index_(options.map.degree, kernels::basis_of(examples.binary())),
        constants_(options.map, examples.binary(), equal_columns()),
        scores_(score_count(options)),
        problems_(options.loss == SparseLoss::logistic ? 1 : scores_) {
    for (std::size_t score = 0; score < scores_; ++score)
      old_rows_.emplace_back(model_, options_.penalty, index_, score);
  }

  Updated run() {
    std::vector<UpdatedWeights> solved = solve();
    std::vector<double> scores;
    for (UpdatedWeights& problem : solved)
      scores.insert(scores.end(), problem.scores.begin(), problem.scores.end());
    Updated updated;
    updated.trained = collect(solved);
    updated.curvatures = weight_curvatures(examples_, options_, updated.trained.keys, scores, monitor_);
    add_old_curvatures(updated);
    return updated;
  }

 private:
  EqualColumns equal_columns() const {
    return options_.penalty.l1 > 0.0 ? EqualColumns::largest_counts : EqualColumns::all_count;
  }
  std::size_t outputs() const { return scores_ / problems_; }

  std::vector<UpdatedWeights> solve() {
    const auto count = static_cast<std::int64_t>(problems_);
    const int threads = std::max(1, options_.threads / static_cast<int>(std::min<std::int64_t>(count, 1024)));
    const ConjunctionSearch search(examples_, options_.map, equal_columns());
    std::vector<UpdatedWeights> solved(problems_);
    parallel_for(options_.threads, count, [&](std::int64_t number) {
      const auto p = static_cast<std::size_t>(number);
      const auto first = old_rows_.begin() + static_cast<std::ptrdiff_t>(p);
      const std::vector<OldRows> old_rows(first, first + static_cast<std::ptrdiff_t>(outputs()));
      const UpdateProblem problem{examples_, options_, model_, old_rows, number, count, threads};
      solved[p] = options_.penalty.l1 > 0.0 ? update_with_l1(problem, search, monitor_)
                                            : update_without_l1(problem, monitor_);
      monitor_.finish_one();
    });
    return solved;
  }

  // Returns the model: the weights of the problems, and those of conjunctions that do not occur in new rows.
  Trained collect(std::vector<UpdatedWeights>& solved) const {
    Trained trained;
    trained.storage = Storage::on_the_fly;
    trained.intercept.assign(scores_, 0.0);
    trained.keys = list_keys(solved);
    trained.weights.assign(trained.keys.size() * scores_, 0.0);
    std::vector<std::uint8_t> is_solved(trained.weights.size(), 0);
    for (std::size_t p = 0; p < problems_; ++p) {
      write_weights(solved[p], p, trained, is_solved);
      trained.dimension = std::max(trained.dimension, solved[p].columns);
      trained.outcomes.push_back(std::move(solved[p].outcome));
    }
    write_old_weights(trained, is_solved);
    drop_zero_rows(trained);
    return trained;
  }

  // Returns the keys of all weights in ascending order, without the constant.
  std::vector<Key> list_keys(const std::vector<UpdatedWeights>& solved) const {
    std::vector<Key> new_keys;
    for (const UpdatedWeights& problem : solved)
      new_keys.insert(new_keys.end(), problem.keys.begin(), problem.keys.end());
    std::erase(new_keys, Key{0});
    std::sort(new_keys.begin(), new_keys.end());
    std::vector<Key> keys(new_keys.size() + model_.keys.size());
    std::merge(new_keys.begin(), new_keys.end(), model_.keys.begin(), model_.keys.end(), keys.begin());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }

  void write_weights(const UpdatedWeights& problem, std::size_t first_score, Trained& trained,
                     std::vector<std::uint8_t>& is_solved) const {
    const std::vector<Key>& keys = trained.keys;
    for (std::size_t j = 0; j < problem.keys.size(); ++j) {
      const auto row = std::lower_bound(keys.begin(), keys.end(), problem.keys[j]) - keys.begin();
      for (std::size_t k = 0; k < outputs(); ++k) {
        const double weight = problem.weights[k * problem.keys.size() + j];
        if (problem.keys[j] == 0) {
          trained.intercept[first_score + k] = weight;
          continue;
        }
        const std::size_t place = static_cast<std::size_t>(row) * scores_ + first_score + k;
        trained.weights[place] = weight;
        is_solved[place] = 1;
      }
    }
  }

  void write_old_weights(Trained& trained, const std::vector<std::uint8_t>& is_solved) const {
    std::size_t row = 0;
    for (std::size_t place = 0; place < model_.keys.size(); ++place) {
      const Key key = model_.keys[place];
      while (trained.keys[row] != key) ++row;
      for (std::size_t score = 0; score < scores_; ++score) {
        if (is_solved[row * scores_ + score] != 0) continue;
        const OldRows& old_rows = old_rows_[score];
        trained.weights[row * scores_ + score] =
            model_.kept == 1.0 ? old_rows.weight(key, place)
                               : old_rows.best_alone(key, place, constants_.of(index_.decode(key)));
      }
    }
  }

  void drop_zero_rows(Trained& trained) const {
    std::size_t kept = 0;
    for (std::size_t row = 0; row < trained.keys.size(); ++row) {
      const double* weights = trained.weights.data() + row * scores_;
      if (std::all_of(weights, weights + scores_, [](double weight) { return weight == 0.0; })) continue;
      trained.keys[kept] = trained.keys[row];
      std::copy_n(weights, scores_, trained.weights.data() + kept * scores_);
      ++kept;
    }
    trained.keys.resize(kept);
    trained.weights.resize(kept * scores_);
  }

  void add_old_curvatures(Updated& updated) const {
    WeightCurvatures& all = updated.curvatures;
    const auto add = [&](double& sum, double old_curvature) { sum += model_.kept * old_curvature; };
    for (std::size_t score = 0; score < scores_; ++score)
      add(all.intercept[score], model_.intercept_curvatures[score]);
    for (std::size_t k = 0; k < model_.feature_curvatures.size(); ++k)
      add(all.features[k], model_.feature_curvatures[k]);
    add_old_slopes(updated);
    const std::vector<Key>& keys = updated.trained.keys;
    std::size_t row = 0;
    for (std::size_t place = 0; place < model_.keys.size(); ++place) {
      while (row < keys.size() && keys[row] < model_.keys[place]) ++row;
      if (row == keys.size() || keys[row] != model_.keys[place]) continue;
      for (std::size_t score = 0; score < scores_; ++score)
        add(all.conjunctions[row * scores_ + score], model_.conjunction_curvatures[place * scores_ + score]);
    }
  }

  // Adds the slopes of the loss of the old rows at the new weights.
  void add_old_slopes(Updated& updated) const {
    const Trained& trained = updated.trained;
    for (std::size_t rank = 0; rank * scores_ < model_.feature_slopes.size(); ++rank) {
      const Key key = index_.block(rank);
      const double constant = constants_.of(index_.decode(key));
      if (constant == 0.0) continue;
      const auto old_place = std::lower_bound(model_.keys.begin(), model_.keys.end(), key);
      const std::size_t place = old_place != model_.keys.end() && *old_place == key
                                    ? static_cast<std::size_t>(old_place - model_.keys.begin())
                                    : OldRows::no_place;
      const auto row = std::lower_bound(trained.keys.begin(), trained.keys.end(), key);
      for (std::size_t score = 0; score < scores_; ++score) {
        const auto number = static_cast<std::size_t>(row - trained.keys.begin());
        const double weight =
            row != trained.keys.end() && *row == key ? trained.weights[number * scores_ + score] : 0.0;
        const solve::Anchor loss = old_rows_[score].anchor(key, place, constant);
        updated.curvatures.slopes[rank * scores_ + score] +=
            loss.slope + loss.curvature * (weight - loss.centre);
      }
    }
  }

  const DistinctRows& examples_;
  const SparseOptions& options_;
  const OldModel& model_;
  Monitor& monitor_;
  ConjunctionIndex index_;
  LinearConstants constants_;
  std::size_t scores_, problems_;
  std::vector<OldRows> old_rows_;  // one per score
};

}  // namespace

Updated update_model(const DistinctRows& examples, const SparseOptions& options, const OldModel& model,
                     Monitor& monitor) {
  check_scale(options.map);
  check_feature_count(examples, options.map.degree);
  check_sizes(examples, options, model);
  return ModelUpdate(examples, options, model, monitor).run();
}

}  // namespace unkernel::poly
