#include "unkernel/engines/conjunctions/int16_pair_engine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/engines/conjunctions/partner_buckets.hpp"
#include "unkernel/engines/conjunctions/remaining_bounds.hpp"
#include "unkernel/engines/conjunctions/simd_sums.hpp"
#include "unkernel/engines/row_ranks.hpp"

namespace unkernel::engines {
namespace {

using Weight = std::int16_t;

constexpr std::size_t longest_row = 256;  // features; sums of longer rows might exceed 32 bits
constexpr double dense_pairs_per_model_pair = 2.0;
constexpr double min_dense_bytes = 1 << 18;

// --- The weights -----------------------------------------------------------------------------------

// Finds the largest power of two of which all weights are 16-bit multiples.
class CommonUnit {
 public:
  // Returns whether such a power of two exists for all weights added so far.
  bool add_all(std::span<const double> weights) {
    while (!weights.empty()) {
      const std::size_t size = std::min(weights.size(), chunk);
      for (const double weight : weights.first(size)) add(weight);
      if (lowest_exponent_ != no_exponent &&
          !(std::ldexp(largest_, -lowest_exponent_) <= std::numeric_limits<Weight>::max()))
        return false;
      weights = weights.subspan(size);
    }
    return true;
  }
  double value() const { return lowest_exponent_ == no_exponent ? 1.0 : std::ldexp(1.0, lowest_exponent_); }

 private:
  static constexpr int no_exponent = std::numeric_limits<int>::max();
  static constexpr std::size_t chunk = 4096;
  static constexpr int digits = 52;  // of a double, after the leading binary digit
  static constexpr int exponent_bias = 1023;

  // Takes a weight into account. A double is its 53 binary digits times a power of two; trailing zeros of the
  // digits raise that power.
  void add(double weight) {
    const auto bits = std::bit_cast<std::uint64_t>(std::abs(weight));
    if (bits == 0) return;
    const auto exponent = static_cast<int>(bits >> digits);
    const std::uint64_t first_digit = exponent == 0 ? 0 : std::uint64_t{1} << digits;  // not stored
    const std::uint64_t all_digits = first_digit | (bits & ((std::uint64_t{1} << digits) - 1));
    lowest_exponent_ = std::min(
        lowest_exponent_, std::max(exponent, 1) - exponent_bias - digits + std::countr_zero(all_digits));
    largest_ = std::max(largest_, std::abs(weight));
  }

  int lowest_exponent_ = no_exponent;
  double largest_ = 0.0;
};

// Calls visit(a, b, k) for the k-th conjunction of the model, with ranks a > b. A single feature has b = a.
template <class Visit>
void for_each_pair(const ConjunctionWeights& model, const Visit& visit) {
  const ConjunctionIndex index(2, Basis::sets);
  std::uint64_t a = 0;
  for (std::size_t k = 0; k < model.keys.size(); ++k) {
    while (index.block(a + 1) <= model.keys[k]) ++a;
    const Key rest = model.keys[k] - index.block(a);
    visit(static_cast<Rank>(a), static_cast<Rank>(rest == 0 ? a : rest - 1), k);
  }
}

// --- Ranks -----------------------------------------------------------------------------------------

// The order of features in the engine: four zones, each sorted by descending frequency. They are the dense
// features of the core; the other dense features, which form pairs with the core only; the sparse features of
// the core; the other sparse features.
struct FeatureOrder {
  Rank core = 0;                      // dense features of the core
  Rank dense = 0;                     // all dense features
  Rank sides = 0;                     // first rank of the last zone: sparse features outside the core
  std::vector<Rank> rank_of;          // rank of the model -> rank of the engine
  std::vector<std::int64_t> columns;  // by rank of the engine
};

// Returns the end of the core: the columns from there on form no pairs with each other.
std::int64_t find_end_of_core(const ConjunctionWeights& model) {
  std::int64_t end = 0;
  for_each_pair(model, [&](Rank a, Rank b, std::size_t) {
    if (a != b) end = std::max(end, std::min(model.columns[a], model.columns[b]) + 1);
  });
  return end;
}

FeatureOrder choose_order(const ConjunctionWeights& model, std::uint64_t dense_pairs) {
  const std::int64_t end = find_end_of_core(model);
  const auto is_in_core = [&](std::size_t rank) { return model.columns[rank] < end; };
  FeatureOrder order;
  std::uint64_t core = 0, side = 0;
  while (core + side < model.columns.size()) {
    const bool core_is_next = is_in_core(core + side);
    const std::uint64_t next_core = core + (core_is_next ? 1 : 0);
    const std::uint64_t next_side = side + (core_is_next ? 0 : 1);
    if (choose2(next_core + 1) + next_side * (next_core + 1) > dense_pairs) break;
    core = next_core;
    side = next_side;
  }
  order.core = static_cast<Rank>(core);
  order.dense = static_cast<Rank>(core + side);
  order.sides = order.dense;
  for (std::size_t rank = order.dense; rank < model.columns.size(); ++rank) order.sides += is_in_core(rank);
  Rank next[] = {0, order.core, order.dense, order.sides};
  for (std::size_t rank = 0; rank < model.columns.size(); ++rank)
    order.rank_of.push_back(next[2 * (rank >= order.dense) + !is_in_core(rank)]++);
  order.columns.resize(model.columns.size());
  for (std::size_t rank = 0; rank < model.columns.size(); ++rank)
    order.columns[order.rank_of[rank]] = model.columns[rank];
  return order;
}

// --- The engine ------------------------------------------------------------------------------------

// The buffers of one thread.
struct Int16Scratch {
  std::vector<Rank> column_ranks;  // in the order of the row's columns
  // The row's ranks, by the zones of FeatureOrder. Ranks of the core ascend within a zone.
  std::vector<Rank> ranks;
  // The positions in `ranks` where the first three zones end.
  std::size_t core = 0;
  std::size_t dense = 0;
  std::size_t sides = 0;
  std::vector<Rank> side_rows;        // dense ranks outside the core, numbered from 0
  std::vector<Rank> partners;         // of side rows: the row's core ranks, then the place of single weights
  std::vector<std::uint32_t> hashes;  // of the ranks
  std::vector<std::uint32_t> places;  // of the weights to add
  std::vector<std::int32_t> sums;
  std::vector<std::int64_t> swings;  // see list_swings
  bool decision_only = false;        // only the largest score matters
  ValuedRow valued;
};

class Int16PairEngine final : public EngineOf<Int16PairEngine, Int16Scratch> {
 public:
  // Returns the engine, or null if the hashes of too many features collide.
  static std::unique_ptr<Int16PairEngine> make(const ConjunctionWeights& model, std::uint64_t dense_pairs,
                                               double unit) {
    std::unique_ptr<Int16PairEngine> engine(
        new Int16PairEngine(model, choose_order(model, dense_pairs), unit));
    return engine->fill(model) ? std::move(engine) : nullptr;
  }

  std::size_t scores() const override { return width_; }
  std::size_t bytes() const override {
    return sizeof(Weight) * (triangle_.size() + sides_.size() + single_weights_.size() + weights_.size()) +
           sizeof(swings_[0]) * swings_.size() + buckets_.bytes() + ranking_.bytes();
  }

  Int16Scratch make_scratch() const { return {}; }

  template <class Index>
  void score_row(const SparseRow<Index>& row, Int16Scratch& scratch, double* out) const {
    const bool ones = row.values == nullptr || all_ones(row.values, row.columns.size());
    if (!ones || row.columns.size() > longest_row) return score_valued(row, scratch, out);
    load(row, scratch);
    scratch.sums = intercept_;
    add_dense(scratch);
    add_sparse(scratch);
    for (std::size_t s = 0; s < width_; ++s) out[s] = unit_ * scratch.sums[s];
  }

  template <class Index>
  void score_range(const RowRange<Index>& range, Int16Scratch& scratch, double* out) const {
    for (std::size_t row = range.first; row < range.last; ++row, out += width_)
      score_row(range[row], scratch, out);
  }

  void stop_early(bool early, Int16Scratch& scratch) const { scratch.decision_only = early; }

 private:
  Int16PairEngine(const ConjunctionWeights& model, FeatureOrder order, double unit)
      : width_(model.intercept.size()),
        unit_(unit),
        order_(std::move(order)),
        ranking_(order_.columns),
        set_factors_(model.map),
        triangle_(choose2(std::size_t{order_.core} + 1) * width_, 0),
        sides_(std::size_t{order_.dense - order_.core} * (order_.core + 1) * width_, 0),
        single_weights_((order_.columns.size() - order_.dense) * width_, 0),
        buckets_(order_.columns.size()) {
    for (const double value : model.intercept) intercept_.push_back(static_cast<std::int32_t>(value / unit_));
  }

  // --- Filling ---

  struct SparsePair {
    Rank owner;
    PartnerBuckets::Hashed partner;
  };

  bool fill(const ConjunctionWeights& model) {
    std::vector<SparsePair> sparse_pairs;
    for_each_pair(model, [&](Rank a, Rank b, std::size_t k) {
      const auto [low, high] = std::minmax(order_.rank_of[a], order_.rank_of[b]);
      const double* weights = model.weights.data() + k * width_;
      if (high < order_.dense || low == high) {
        copy(weights, mutable_weights(high, low));
      } else {
        sparse_pairs.push_back({high, {buckets_.hash(low), static_cast<std::uint32_t>(k)}});
      }
    });
    std::ranges::sort(sparse_pairs, {},
                      [](const SparsePair& pair) { return std::pair(pair.owner, pair.partner.hash); });
    return fill_buckets(model, sparse_pairs);
  }

  bool fill_buckets(const ConjunctionWeights& model, std::span<const SparsePair> pairs) {
    std::vector<PartnerBuckets::Hashed> partners;
    std::vector<Bounds<std::int64_t>> bounds(width_);
    weights_.resize(pairs.size() * width_);
    std::size_t begin = 0;
    for (std::size_t owner = 0; owner < order_.columns.size() - order_.dense; ++owner) {
      partners.clear();
      bounds.assign(width_, {});
      add_bounds(single_weights_.data() + owner * width_, bounds);
      std::size_t end = begin;
      for (; end < pairs.size() && pairs[end].owner - order_.dense == owner; ++end) {
        partners.push_back(pairs[end].partner);
        copy(model.weights.data() + pairs[end].partner.index * width_, weights_.data() + end * width_);
        add_bounds(weights_.data() + end * width_, bounds);
      }
      swings_.push_back(std::ranges::max(bounds, {}, &Bounds<std::int64_t>::high).high -
                        std::ranges::min(bounds, {}, &Bounds<std::int64_t>::low).low);
      if (!buckets_.add(partners, begin)) return false;
      begin = end;
    }
    return true;
  }

  void copy(const double* from, Weight* to) const {
    std::transform(from, from + width_, to,
                   [&](double weight) { return static_cast<Weight>(weight / unit_); });
  }

  // Return the weights of a dense pair, or of a single feature.
  Weight* mutable_weights(Rank high, Rank low) { return const_cast<Weight*>(dense_weights(high, low)); }
  const Weight* dense_weights(Rank high, Rank low) const {
    if (high < order_.core) return triangle_.data() + (choose2(std::size_t{high} + 1) + low) * width_;
    if (high < order_.dense)
      return sides_.data() +
             (std::size_t{high - order_.core} * (order_.core + 1) + (low == high ? order_.core : low)) *
                 width_;
    return single_weights_.data() + (high - order_.dense) * width_;
  }

  void add_bounds(const Weight* weights, std::span<Bounds<std::int64_t>> bounds) const {
    for (std::size_t s = 0; s < width_; ++s) bounds[s].add(weights[s]);
  }

  // --- Rows of ones ---

  // Looks up all ranks before it uses any, so that cache misses overlap.
  template <class Index>
  void load(const SparseRow<Index>& row, Int16Scratch& scratch) const {
    scratch.column_ranks.resize(row.columns.size());
    std::ranges::transform(row.columns, scratch.column_ranks.begin(),
                           [&](Index column) { return ranking_.of(column); });
    scratch.ranks.resize(row.columns.size() + 1);
    Rank* end = scratch.ranks.data();
    const auto copy_zone = [&](Rank from, Rank to) {
      Rank* begin = end;
      end = copy_between(from, to, scratch.column_ranks, end);
      return std::span(begin, end);
    };
    std::ranges::sort(copy_zone(0, order_.core));
    scratch.core = static_cast<std::size_t>(end - scratch.ranks.data());
    copy_zone(order_.core, order_.dense);
    scratch.dense = static_cast<std::size_t>(end - scratch.ranks.data());
    std::ranges::sort(copy_zone(order_.dense, order_.sides));
    scratch.sides = static_cast<std::size_t>(end - scratch.ranks.data());
    copy_zone(order_.sides, static_cast<Rank>(order_.columns.size()));
    scratch.ranks.resize(static_cast<std::size_t>(end - scratch.ranks.data()));
  }

  // Copies the ranks in [from, below), and returns the end of the copies. Writes every rank; the next rank
  // overwrites a rank outside the range. A branch here would be mispredicted.
  static Rank* copy_between(Rank from, Rank below, std::span<const Rank> ranks, Rank* to) {
    for (const Rank rank : ranks) {
      *to = rank;
      to += rank - from < below - from;
    }
    return to;
  }

  void add_dense(Int16Scratch& scratch) const {
    const std::span<const Rank> ranks = scratch.ranks;
    add_triangle(triangle_.data(), ranks.first(scratch.core), scratch.sums);
    if (scratch.core == scratch.dense) return;
    scratch.partners.assign(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(scratch.core));
    scratch.partners.push_back(order_.core);
    scratch.side_rows.clear();
    for (const Rank rank : ranks.subspan(scratch.core, scratch.dense - scratch.core))
      scratch.side_rows.push_back(rank - order_.core);
    add_rows(sides_.data(), order_.core + 1, scratch.side_rows, scratch.partners, scratch.sums);
  }

  // Adds the sparse owners. If only the decision matters, stops once the remaining owners cannot change it.
  void add_sparse(Int16Scratch& scratch) const {
    const std::span<const Rank> ranks = scratch.ranks;
    if (scratch.dense == ranks.size()) return;
    scratch.hashes.resize(ranks.size());
    std::ranges::transform(ranks, scratch.hashes.begin(), [&](Rank rank) { return buckets_.hash(rank); });
    scratch.places.resize(ranks.size() + 1);
    if (scratch.decision_only) list_swings(scratch);
    for (std::size_t k = scratch.dense; k < ranks.size(); ++k) {
      if (scratch.decision_only && lead(scratch.sums) > scratch.swings[k - scratch.dense]) return;
      const Rank owner = ranks[k] - order_.dense;
      const std::uint32_t single[] = {owner};
      add_entries(single_weights_.data(), width_, single, scratch.sums);
      add_entries(weights_.data(), width_, {scratch.places.data(), list_partners(k, scratch)}, scratch.sums);
    }
  }

  // Lists the places of the pairs of the owner at this position. An owner in the core pairs with all earlier
  // ranks, an owner outside the core only with ranks of the core.
  const std::uint32_t* list_partners(std::size_t position, Int16Scratch& scratch) const {
    const std::span<const std::uint32_t> hashes = scratch.hashes;
    const Rank owner = scratch.ranks[position] - order_.dense;
    std::uint32_t* places = scratch.places.data();
    if (position < scratch.sides) return buckets_.list_places(owner, hashes.first(position), places);
    places = buckets_.list_places(owner, hashes.first(scratch.core), places);
    return buckets_.list_places(owner, hashes.subspan(scratch.dense, scratch.sides - scratch.dense), places);
  }

  // Computes, for each sparse owner of the row, by how much this owner and all later owners can change the
  // difference of two scores.
  void list_swings(Int16Scratch& scratch) const {
    const std::span<const Rank> owners = std::span<const Rank>(scratch.ranks).subspan(scratch.dense);
    scratch.swings.resize(owners.size());
    std::int64_t sum = 0;
    for (std::size_t k = owners.size(); k-- > 0;) {
      sum += swings_[owners[k] - order_.dense];
      scratch.swings[k] = sum;
    }
  }

  // Returns the difference between the largest and the second largest score.
  static std::int64_t lead(std::span<const std::int32_t> scores) {
    std::int64_t first = std::numeric_limits<std::int32_t>::min(), second = first;
    for (const std::int64_t score : scores) {
      second = std::max(second, std::min(first, score));
      first = std::max(first, score);
    }
    return first - second;
  }

  // --- Rows of any values ---

  // Multiplies the weights of each conjunction by the factor of its values.
  template <class Index>
  void score_valued(const SparseRow<Index>& row, Int16Scratch& scratch, double* out) const {
    scratch.valued.load(row, ranking_);
    const ValuedRow& x = scratch.valued;
    for (std::size_t s = 0; s < width_; ++s) out[s] = unit_ * intercept_[s];
    for (std::size_t a = 0; a < x.size(); ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        const Weight* weights = find(x.ranks()[a], x.ranks()[b]);
        if (weights == nullptr) continue;
        const double factor = unit_ * (a == b ? set_factors_.single(x.values()[a])
                                              : set_factors_.pair(x.values()[a], x.values()[b]));
        for (std::size_t s = 0; s < width_; ++s) out[s] += factor * weights[s];
      }
    }
  }

  // Returns the weights of a pair, with high >= low, or of a single feature; null if the model has none.
  const Weight* find(Rank high, Rank low) const {
    if (low == high || high < order_.core) return dense_weights(high, low);
    if (high < order_.dense) return low < order_.core ? dense_weights(high, low) : nullptr;
    const std::uint32_t hashes[] = {buckets_.hash(low)};
    std::uint32_t place[2];
    return buckets_.list_places(high - order_.dense, hashes, place) == place
               ? nullptr
               : weights_.data() + place[0] * width_;
  }

  std::size_t width_;
  double unit_;  // a power of two: weights are stored as multiples of it
  FeatureOrder order_;
  Ranking ranking_;
  SetFactors set_factors_;
  std::vector<std::int32_t> intercept_;
  LargeVector<Weight> triangle_;  // of the core: feature x (its smaller partners, itself) x scores
  LargeVector<Weight> sides_;  // of other dense features: feature x (partners in the core, itself) x scores
  LargeVector<Weight> single_weights_;  // of sparse features alone: feature x scores
  PartnerBuckets buckets_;              // of sparse features
  LargeVector<Weight> weights_;         // by place in the buckets x scores
  // By sparse feature: the most by which its weights can change the difference of two scores.
  std::vector<std::int64_t> swings_;
};

}  // namespace

std::uint64_t dense_pairs_for(const ConjunctionWeights& model) {
  const double min_dense_pairs =
      min_dense_bytes / static_cast<double>(sizeof(Weight) * model.intercept.size());
  return static_cast<std::uint64_t>(
      std::max(dense_pairs_per_model_pair * static_cast<double>(model.keys.size()), min_dense_pairs));
}

std::optional<double> int16_unit(std::span<const double> intercept, std::span<const double> weights) {
  CommonUnit unit;
  if (!unit.add_all(intercept) || !unit.add_all(weights)) return std::nullopt;
  return unit.value();
}

std::unique_ptr<Engine> make_int16_pair_engine(const ConjunctionWeights& model, std::uint64_t dense_pairs) {
  check(model);
  if (model.map.degree != 2 || model.basis != Basis::sets || model.intercept.size() < 2) return nullptr;
  if (model.columns.size() >= PartnerBuckets::most_partners || model.keys.size() >= most_entries)
    return nullptr;
  const std::optional<double> unit = int16_unit(model.intercept, model.weights);
  return unit ? Int16PairEngine::make(model, dense_pairs, *unit) : nullptr;
}

}  // namespace unkernel::engines
