#include "unkernel/cutplane/ordinal_oracle.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "unkernel/base/parallel.hpp"
#include "unkernel/base/radix_argsort.hpp"
#include "unkernel/cutplane/binned_pairs.hpp"

namespace unkernel::cutplane {
namespace {

// Weights by rank, with sums over all lower ranks in O(log R).
class RankSums {
 public:
  explicit RankSums(std::size_t ranks) : tree_(ranks + 1, 0.0) {}

  void add(std::int32_t rank, double weight) {
    total_ += weight;
    for (auto k = static_cast<std::size_t>(rank) + 1; k < tree_.size(); k += k & (~k + 1)) tree_[k] += weight;
  }
  double below(std::int32_t rank) const {
    double sum = 0.0;
    for (auto k = static_cast<std::size_t>(rank); k > 0; k &= k - 1) sum += tree_[k];
    return sum;
  }
  double above(std::int32_t rank) const { return total_ - below(rank + 1); }
  void clear() {
    std::ranges::fill(tree_, 0.0);
    total_ = 0.0;
  }

 private:
  std::vector<double> tree_;
  double total_ = 0.0;
};

// Counts pairs like the class above if each pair of classes has a weight, with sums over all ranks in O(R).
class WeightedRankSums {
 public:
  WeightedRankSums(std::size_t ranks, std::span<const double> pair_weights)
      : pair_weights_(pair_weights), sums_(ranks, 0.0) {}

  void add(std::int32_t rank, double weight) { sums_[static_cast<std::size_t>(rank)] += weight; }
  double below(std::int32_t rank) const {
    const auto high = static_cast<std::size_t>(rank);
    double sum = 0.0;
    for (std::size_t low = 0; low < high; ++low) sum += pair_weights_[high * sums_.size() + low] * sums_[low];
    return sum;
  }
  double above(std::int32_t rank) const {
    const auto low = static_cast<std::size_t>(rank);
    double sum = 0.0;
    for (std::size_t high = low + 1; high < sums_.size(); ++high)
      sum += pair_weights_[high * sums_.size() + low] * sums_[high];
    return sum;
  }
  void clear() { std::ranges::fill(sums_, 0.0); }

 private:
  std::span<const double> pair_weights_;
  std::vector<double> sums_;
};

// The contiguous rows of a group. Its ranks are renumbered, so that a small group has a small tree.
struct Group {
  std::size_t begin;
  std::size_t end;
  std::int32_t ranks;
  std::size_t table;  // where its table begins in pair_weights_
};

class GroupedRows {
 public:
  explicit GroupedRows(const Ranking& ranking)
      : pair_weights_(ranking.pair_weights.begin(), ranking.pair_weights.end()) {
    const std::size_t count = ranking.ranks.size();
    rows_.resize(count);
    std::iota(rows_.begin(), rows_.end(), 0U);
    const auto group_of = [&](std::uint32_t i) { return ranking.groups.empty() ? 0 : ranking.groups[i]; };
    std::ranges::stable_sort(rows_, {},
                             [&](std::uint32_t i) { return std::pair(group_of(i), ranking.ranks[i]); });
    for (const std::uint32_t i : rows_) {
      ranks_.push_back(ranking.ranks[i]);
      weights_.push_back(ranking.weights.empty() ? 1.0 : ranking.weights[i]);
    }
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin + 1;
      while (end < count && group_of(rows_[end]) == group_of(rows_[begin])) ++end;
      add_group(begin, end, ranking);
      begin = end;
    }
  }

  std::span<const Group> groups() const { return groups_; }
  double total_weight() const { return std::accumulate(weights_.begin(), weights_.end(), 0.0); }
  bool weighs_pairs() const { return !pair_weights_.empty(); }

  std::span<const std::uint32_t> rows_of(const Group& group) const { return part(rows_, group); }
  std::span<const std::int32_t> ranks_of(const Group& group) const { return part(ranks_, group); }
  std::span<const double> weights_of(const Group& group) const { return part(weights_, group); }

  // Calls f(sums) with an empty structure for `rank_count` ranks, or for all ranks of the group if pairs have
  // weights.
  template <class F>
  void with_sums(const Group& group, std::int32_t rank_count, const F& f) const {
    const auto ranks = static_cast<std::size_t>(rank_count);
    if (pair_weights_.empty()) {
      RankSums sums(ranks);
      f(sums);
    } else {
      WeightedRankSums sums(ranks, std::span(pair_weights_).subspan(group.table, ranks * ranks));
      f(sums);
    }
  }

 private:
  template <class T>
  static std::span<const T> part(const std::vector<T>& all, const Group& group) {
    return std::span(all).subspan(group.begin, group.end - group.begin);
  }

  // Groups with a single rank have no pairs and are left out.
  void add_group(std::size_t begin, std::size_t end, const Ranking& ranking) {
    const auto ranks = std::span(ranks_).subspan(begin, end - begin);
    if (ranks.front() == ranks.back()) return;
    // If classes of pairs have weights, all groups share one table of them, with the original ranks.
    const bool keeps_ranks = !ranking.pair_weights.empty();
    const std::int32_t rank_count = keeps_ranks ? ranking.rank_count : renumber_ranks(ranks);
    groups_.push_back({begin, end, rank_count, keeps_ranks ? 0 : pair_weights_.size()});
    if (!ranking.gains.empty()) add_differences(groups_.back(), ranking);
  }

  // Appends the weight of each pair of ranks in a group: the difference of gains times the difference of
  // discounts.
  void add_differences(const Group& group, const Ranking& ranking) {
    const auto ranks = static_cast<std::size_t>(group.ranks);
    std::vector<std::uint32_t> row_of(ranks);
    for (std::size_t k = group.begin; k < group.end; ++k)
      row_of[static_cast<std::size_t>(ranks_[k])] = rows_[k];
    for (std::size_t high = 0; high < ranks; ++high) {
      for (std::size_t low = 0; low < ranks; ++low) {
        const std::uint32_t i = row_of[high], j = row_of[low];
        pair_weights_.push_back((ranking.gains[i] - ranking.gains[j]) *
                                (ranking.discounts[i] - ranking.discounts[j]));
      }
    }
  }

  static std::int32_t renumber_ranks(std::span<std::int32_t> ascending_ranks) {
    std::int32_t number = 0;
    std::int32_t previous = ascending_ranks.front();
    for (std::int32_t& rank : ascending_ranks) {
      number += rank != previous;
      previous = std::exchange(rank, number);
    }
    return number + 1;
  }

  std::vector<double> pair_weights_;  // one table for all groups, or one for each
  std::vector<std::uint32_t> rows_;   // by group, then by rank
  std::vector<std::int32_t> ranks_;   // in the order of rows_
  std::vector<double> weights_;
  std::vector<Group> groups_;
};

void check(const Ranking& ranking) {
  const std::size_t rows = ranking.ranks.size();
  const auto count = static_cast<std::size_t>(std::max(ranking.rank_count, 0));
  const bool is_valid =
      (ranking.groups.empty() || ranking.groups.size() == rows) &&
      (ranking.weights.empty() || ranking.weights.size() == rows) &&
      (ranking.pair_weights.empty() || ranking.pair_weights.size() == count * count) &&
      (ranking.gains.empty() || (ranking.gains.size() == rows && ranking.pair_weights.empty())) &&
      ranking.discounts.size() == ranking.gains.size();
  if (!is_valid) throw std::invalid_argument("there must be one rank, one group and one weight per row");
  for (const std::int32_t rank : ranking.ranks) {
    if (rank < 0 || rank >= ranking.rank_count) throw std::invalid_argument("a rank is outside of its range");
  }
}

double sum_pair_weights(const GroupedRows& grouped) {
  double pairs = 0.0;
  for (const Group& group : grouped.groups()) {
    grouped.with_sums(group, group.ranks, [&](auto& sums) {
      const auto ranks = grouped.ranks_of(group);
      const auto weights = grouped.weights_of(group);
      for (std::size_t k = 0; k < ranks.size(); ++k) sums.add(ranks[k], weights[k]);
      for (std::size_t k = 0; k < ranks.size(); ++k) pairs += weights[k] * sums.below(ranks[k]);
    });
  }
  return pairs;
}

class OrdinalOracle final : public JointOracle {
 public:
  OrdinalOracle(const Ranking& ranking, double accuracy)
      : rows_(static_cast<std::int64_t>(ranking.ranks.size())), accuracy_(accuracy), grouped_(ranking) {
    const double pairs = sum_pair_weights(grouped_);
    if (!(pairs > 0.0)) {
      throw std::invalid_argument(
          "there is no pair to order: in each group, rows are of one class only, or have no weight");
    }
    scale_ = grouped_.total_weight() / pairs;
    for (const Group& group : grouped_.groups()) {
      const bool by_bins =
          accuracy > 0.0 && !grouped_.weighs_pairs() && group.end - group.begin >= rows_for_bins;
      blocks_.push_back(by_bins ? rank_blocks(grouped_.ranks_of(group)) : std::vector<RankBlock>());
    }
  }

  std::int64_t rows() const override { return rows_; }

 protected:
  Evaluation evaluate(std::span<const double> scores, std::span<double> coefficients, int threads) override {
    std::ranges::fill(coefficients, 0.0);
    const auto count = static_cast<std::int64_t>(grouped_.groups().size());
    // Small groups are processed in batches.
    const std::int64_t batch = std::max<std::int64_t>(1, count / 64);
    std::vector<Evaluation> parts(static_cast<std::size_t>((count + batch - 1) / batch));
    spaces_.resize(static_cast<std::size_t>(std::max(threads, 1)));
    parallel_slots(threads, static_cast<std::int64_t>(parts.size()),
                   [&](std::size_t slot, std::int64_t piece) {
                     Evaluation& part = parts[static_cast<std::size_t>(piece)];
                     for (std::int64_t g = piece * batch; g < std::min(count, (piece + 1) * batch); ++g) {
                       const Evaluation group_result =
                           evaluate_group(static_cast<std::size_t>(g), scores, coefficients, spaces_[slot]);
                       part.offset += scale_ * group_result.offset;
                       part.uncertainty += scale_ * group_result.uncertainty;
                     }
                   });
    Evaluation total;
    for (const Evaluation& part : parts) {
      total.offset += part.offset;
      total.uncertainty += part.uncertainty;
    }
    return total;
  }

 private:
  static constexpr std::size_t rows_for_bins = 4096;
  static constexpr std::int64_t fewest_bins_per_unit = 128;
  static constexpr std::int64_t most_bins_per_unit = 2048;

  struct Workspace {
    BinnedPairs bins;
    RadixArgsort order;
    std::vector<double> scores;        // of the group, by rank
    std::vector<double> coefficients;  // of the group, by rank
    std::vector<double> sorted;
    std::vector<std::int32_t> ranks;
    std::vector<double> weights;
  };

  // Computes the coefficients c+ - c- of the group; the offset is the sum of c+, as each pair has margin 1.
  Evaluation evaluate_group(std::size_t g, std::span<const double> scores, std::span<double> coefficients,
                            Workspace& space) const {
    const Group& group = grouped_.groups()[g];
    const auto rows = grouped_.rows_of(group);
    space.scores.resize(rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) space.scores[k] = scores[rows[k]];
    space.coefficients.assign(rows.size(), 0.0);
    Evaluation result;
    if (!evaluate_by_bins(g, space, result))
      result = {evaluate_by_sorting(group, 0, rows.size(), space), 0.0};
    for (std::size_t k = 0; k < rows.size(); ++k) coefficients[rows[k]] = scale_ * space.coefficients[k];
    return result;
  }

  // Returns false, without effect, if bins would be too coarse or too many.
  bool evaluate_by_bins(std::size_t g, Workspace& space, Evaluation& result) const {
    const std::vector<RankBlock>& blocks = blocks_[g];
    if (blocks.empty()) return false;
    const Group& group = grouped_.groups()[g];
    const auto weights = grouped_.weights_of(group);
    for (std::int64_t bins = fewest_bins_per_unit; bins <= most_bins_per_unit; bins *= 2) {
      if (!space.bins.prepare(blocks, space.scores, weights, bins)) break;
      result = {space.bins.coefficients(weights, space.coefficients), space.bins.uncertainty()};
      double risk = result.offset;
      for (std::size_t k = 0; k < space.scores.size(); ++k) risk -= space.coefficients[k] * space.scores[k];
      if (result.uncertainty > accuracy_ * risk) continue;
      for (const RankBlock& block : blocks) {
        if (block.has_several_ranks)
          result.offset += evaluate_by_sorting(group, block.begin, block.end, space);
      }
      return true;
    }
    std::ranges::fill(space.coefficients, 0.0);  // clears the results of bins that were too coarse
    return false;
  }

  // Adds the pairs among rows begin .. end of the group, and returns the sum of c+.
  double evaluate_by_sorting(const Group& group, std::size_t begin, std::size_t end, Workspace& space) const {
    const auto order = space.order.sort(std::span(space.scores).subspan(begin, end - begin));
    const auto ranks = grouped_.ranks_of(group);
    const std::int32_t first_rank = grouped_.weighs_pairs() ? 0 : ranks[begin];
    collect_sorted(group, begin, first_rank, order, space);
    const std::int32_t rank_count = grouped_.weighs_pairs() ? group.ranks : ranks[end - 1] - first_rank + 1;
    double offset = 0.0;
    grouped_.with_sums(group, rank_count, [&](auto& sums) {
      for (std::size_t k = 0; k < order.size(); ++k) sums.add(space.ranks[k], space.weights[k]);
      auto all_rows = sums;
      sums.clear();
      double* const c = space.coefficients.data() + begin;
      offset = add_higher(space, all_rows, sums, [&](std::size_t k, double count) { c[order[k]] += count; });
      sums.clear();
      subtract_lower(space, all_rows, sums, [&](std::size_t k, double count) { c[order[k]] -= count; });
    });
    return offset;
  }

  void collect_sorted(const Group& group, std::size_t begin, std::int32_t first_rank,
                      std::span<const std::uint32_t> order, Workspace& space) const {
    const auto ranks = grouped_.ranks_of(group);
    const auto weights = grouped_.weights_of(group);
    space.sorted.resize(order.size());
    space.ranks.resize(order.size());
    space.weights.resize(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      space.sorted[k] = space.scores[begin + order[k]];
      space.ranks[k] = ranks[begin + order[k]] - first_rank;
      space.weights[k] = weights[begin + order[k]];
    }
  }

  // Returns all - part, or zero if the two are equal up to rounding.
  static double difference(double all, double part) { return all - part > 1e-14 * all ? all - part : 0.0; }

  // Calls add_count(k, c) with the weight c of the pairs in which row k is the higher one and which are not
  // ordered. Returns the sum. A pair (i above j) is ordered iff s_j <= s_i - 1. This sweep and subtract_lower
  // use the same rounded s_i - 1, because a pair that only one of them counted would make a cut that excludes
  // the optimum.
  template <class Sums, class AddCount>
  static double add_higher(const Workspace& space, const Sums& all_rows, Sums& in_order,
                           const AddCount& add_count) {
    double total = 0.0;
    std::size_t next_lower = 0;
    for (std::size_t k = 0; k < space.sorted.size(); ++k) {
      const double margin = space.sorted[k] - 1.0;
      for (; next_lower < space.sorted.size() && space.sorted[next_lower] <= margin; ++next_lower)
        in_order.add(space.ranks[next_lower], space.weights[next_lower]);
      const double count =
          space.weights[k] * difference(all_rows.below(space.ranks[k]), in_order.below(space.ranks[k]));
      total += count;
      if (count != 0.0) add_count(k, count);
    }
    return total;
  }

  // Does the same for the pairs in which row k is the lower one.
  template <class Sums, class AddCount>
  static void subtract_lower(const Workspace& space, const Sums& all_rows, Sums& in_order,
                             const AddCount& add_count) {
    std::size_t next_higher = space.sorted.size();
    for (std::size_t k = space.sorted.size(); k-- > 0;) {
      for (; next_higher > 0 && space.sorted[k] <= space.sorted[next_higher - 1] - 1.0; --next_higher)
        in_order.add(space.ranks[next_higher - 1], space.weights[next_higher - 1]);
      const double count =
          space.weights[k] * difference(all_rows.above(space.ranks[k]), in_order.above(space.ranks[k]));
      if (count != 0.0) add_count(k, count);
    }
  }

  std::int64_t rows_;
  double accuracy_;
  GroupedRows grouped_;
  std::vector<std::vector<RankBlock>> blocks_;  // of each group; empty if its rows are sorted
  double scale_ = 0.0;
  std::vector<Workspace> spaces_;  // one per thread
};

}  // namespace

std::unique_ptr<Oracle> ordinal_oracle(const Ranking& ranking, double accuracy) {
  check(ranking);
  return std::make_unique<OrdinalOracle>(ranking, accuracy);
}

PairCount count_pairs(const Ranking& ranking, std::span<const double> scores) {
  check(ranking);
  if (scores.size() != ranking.ranks.size()) throw std::invalid_argument("there must be one score per rank");
  const GroupedRows grouped(ranking);
  PairCount result{sum_pair_weights(grouped), 0.0};
  RadixArgsort sorter;
  std::vector<double> group_scores;
  for (const Group& group : grouped.groups()) {
    const auto rows = grouped.rows_of(group);
    const auto ranks = grouped.ranks_of(group);
    const auto weights = grouped.weights_of(group);
    group_scores.clear();
    for (const std::uint32_t i : rows) group_scores.push_back(scores[i]);
    const auto order = sorter.sort(group_scores);
    grouped.with_sums(group, group.ranks, [&](auto& sums) {
      // Pairs of rows with equal scores count half: `sums` is read once without these rows and once with
      // them.
      for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin;
        while (end < order.size() && group_scores[order[end]] == group_scores[order[begin]]) ++end;
        for (std::size_t k = begin; k < end; ++k)
          result.ordered += 0.5 * weights[order[k]] * sums.below(ranks[order[k]]);
        for (std::size_t k = begin; k < end; ++k) sums.add(ranks[order[k]], weights[order[k]]);
        for (std::size_t k = begin; k < end; ++k)
          result.ordered += 0.5 * weights[order[k]] * sums.below(ranks[order[k]]);
        begin = end;
      }
    });
  }
  return result;
}

}  // namespace unkernel::cutplane
