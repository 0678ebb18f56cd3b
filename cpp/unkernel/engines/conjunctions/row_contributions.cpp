#include "unkernel/engines/conjunctions/row_contributions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

namespace unkernel::engines {
namespace {

constexpr double max_conjunctions = 5e6;

// Returns how many sets or multisets of 1 to `degree` out of `features` features there are.
double count_choices(std::size_t features, int degree, Basis basis) {
  const auto n = static_cast<double>(features);
  double total = 0.0;
  double choices = 1.0;
  for (int size = 1; size <= degree; ++size) {
    choices *= (basis == Basis::sets ? n - size + 1 : n + size - 1) / size;
    total += choices;
  }
  return total;
}

}  // namespace

std::vector<double> RowContributions::total() const {
  std::vector<double> sums(scores(), 0.0);
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t s = 0; s < scores(); ++s) sums[s] += values_of(i)[s];
  }
  for (std::size_t s = 0; s < scores(); ++s) sums[s] += intercept[s];
  return sums;
}

LargestContributions find_largest(const RowContributions& contributions, std::span<const std::size_t> shown,
                                  std::size_t top) {
  struct Effect {
    double shown;
    double largest;  // over all scores
    std::size_t conjunction;
    bool operator<(const Effect& other) const {
      if (shown != other.shown) return shown > other.shown;
      if (largest != other.largest) return largest > other.largest;
      return conjunction < other.conjunction;
    }
  };
  std::vector<Effect> effects;
  effects.reserve(contributions.size());
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    const std::span<const double> values = contributions.values_of(i);
    double largest = 0.0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    if (largest == 0.0) continue;
    const double compared = shown.size() > 1 ? values[shown[1]] : 0.0;
    effects.push_back({std::abs(values[shown[0]] - compared), largest, i});
  }
  const auto listed = effects.begin() + static_cast<std::ptrdiff_t>(std::min(top, effects.size()));
  std::partial_sort(effects.begin(), listed, effects.end());
  LargestContributions result{{}, effects.size(), std::vector<double>(contributions.scores(), 0.0)};
  for (auto effect = effects.begin(); effect != listed; ++effect)
    result.conjunctions.push_back(effect->conjunction);
  // In the order of the conjunctions, so that the sum does not depend on the order of partial_sort.
  std::sort(listed, effects.end(),
            [](const Effect& a, const Effect& b) { return a.conjunction < b.conjunction; });
  for (auto effect = listed; effect != effects.end(); ++effect) {
    const std::span<const double> values = contributions.values_of(effect->conjunction);
    for (std::size_t s = 0; s < values.size(); ++s) result.rest[s] += values[s];
  }
  return result;
}

// Appends the conjunctions of a row that the model has a weight for.
class ConjunctionLookup::Collector {
 public:
  Collector(const ConjunctionLookup& lookup, const Entries& row)
      : lookup_(lookup),
        row_(row),
        blocks_(lookup.find_blocks(row)),
        found_{static_cast<std::size_t>(lookup.index_.degree()),
               {},
               {},
               {lookup.model_.intercept.begin(), lookup.model_.intercept.end()}} {}

  RowContributions collect() {
    const std::size_t size = row_.ranks.size(), repeats = lookup_.model_.basis == Basis::monomials ? 0 : 1;
    const int degree = lookup_.index_.degree();
    for (std::size_t i = 0; i < size; ++i) look_up<1>({i});
    for (std::size_t i = 0; degree >= 2 && i < size; ++i) {
      for (std::size_t j = i + repeats; j < size; ++j) look_up<2>({i, j});
    }
    for (std::size_t i = 0; degree >= 3 && i < size; ++i) {
      for (std::size_t j = i + repeats; j < size; ++j) {
        for (std::size_t k = j + repeats; k < size; ++k) look_up<3>({i, j, k});
      }
    }
    return std::move(found_);
  }

 private:
  // Looks up the conjunction of the entries at these ascending positions of the row.
  template <std::size_t Size>
  void look_up(const std::array<std::size_t, Size>& positions) {
    const ConjunctionIndex& index = lookup_.index_;
    const auto rank = [&](std::size_t k) { return std::uint64_t{row_.ranks[positions[k]]}; };
    Key key = index.block(rank(0));
    if constexpr (Size == 2) key += 1 + rank(1);
    if constexpr (Size == 3) key += index.triples(rank(0)) + index.triangle(rank(1)) + rank(2);
    const std::span<const std::uint64_t> keys = lookup_.model_.keys;
    const Keys block = blocks_[positions[0]];
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(block.begin),
               last = keys.begin() + static_cast<std::ptrdiff_t>(block.end);
    const auto place = std::lower_bound(first, last, key);
    if (place != last && *place == key) append(positions, static_cast<std::size_t>(place - keys.begin()));
  }

  template <std::size_t Size>
  void append(const std::array<std::size_t, Size>& positions, std::size_t key) {
    std::array<double, Size> x;
    for (std::size_t k = 0; k < Size; ++k) {
      x[k] = row_.values[positions[k]];
      found_.columns.push_back(lookup_.model_.columns[row_.ranks[positions[k]]]);
    }
    found_.columns.resize(found_.columns.size() + found_.degree - Size, -1);
    const double factor = factor_of(x);
    const std::size_t scores = found_.scores();
    for (const double weight : lookup_.model_.weights.subspan(key * scores, scores))
      found_.values.push_back(row_.is_binary ? weight : weight * factor);
  }

  template <std::size_t Size>
  double factor_of(const std::array<double, Size>& x) const {
    if (lookup_.model_.basis == Basis::sets) return lookup_.factors_(x.data(), static_cast<int>(Size));
    double product = 1.0;
    for (const double value : x) product *= value;
    return product;
  }

  const ConjunctionLookup& lookup_;
  const Entries& row_;
  std::vector<Keys> blocks_;
  RowContributions found_;
};

ConjunctionLookup::ConjunctionLookup(const ConjunctionWeights& model)
    : model_(model), index_(model.map.degree, model.basis), factors_(model.map), ranking_(model.columns) {
  if (model.map.degree > 3) throw std::invalid_argument("models of conjunctions have degree 1, 2 or 3");
  check(model);
}

RowContributions ConjunctionLookup::find(std::span<const std::int64_t> columns,
                                         std::span<const double> values) const {
  const Entries row = rank_row(columns, values);
  if (count_choices(row.ranks.size(), index_.degree(), model_.basis) > max_conjunctions) {
    throw std::invalid_argument("a row of " + std::to_string(row.ranks.size()) +
                                " features has too many conjunctions to be explained");
  }
  return Collector(*this, row).collect();
}

ConjunctionLookup::Entries ConjunctionLookup::rank_row(std::span<const std::int64_t> columns,
                                                       std::span<const double> values) const {
  if (columns.size() != values.size())
    throw std::invalid_argument("a row has one value per column, and the numbers differ");
  std::vector<std::pair<Rank, double>> entries;
  entries.reserve(columns.size());
  Entries row;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const Rank rank = ranking_.of(columns[k]);
    if (rank == unknown || values[k] == 0.0) continue;
    row.is_binary = row.is_binary && values[k] == 1.0;
    entries.emplace_back(rank, values[k]);
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [rank, value] : entries) {
    row.ranks.push_back(rank);
    row.values.push_back(value);
  }
  return row;
}

// Returns, for each entry of the row, the keys of the conjunctions with this largest rank.
std::vector<ConjunctionLookup::Keys> ConjunctionLookup::find_blocks(const Entries& row) const {
  std::vector<Keys> blocks;
  blocks.reserve(row.ranks.size());
  const auto find = [&](Key key, std::size_t end) {
    const auto last = model_.keys.begin() + static_cast<std::ptrdiff_t>(end);
    return static_cast<std::size_t>(std::lower_bound(model_.keys.begin(), last, key) - model_.keys.begin());
  };
  std::size_t end = model_.keys.size();
  for (const Rank rank : row.ranks) {
    const std::size_t block_end = find(index_.block(std::uint64_t{rank} + 1), end);
    const std::size_t block_begin = find(index_.block(rank), block_end);
    blocks.push_back({block_begin, block_end});
    end = block_begin;  // the ranks descend
  }
  return blocks;
}

}  // namespace unkernel::engines
