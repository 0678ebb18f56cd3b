#include "unkernel/parsing/online/averaged_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "unkernel/base/random.hpp"
#include "unkernel/kernels/conjunction_index.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::size_t smallest_table = 1 << 12;
constexpr int column_bits = 21;
constexpr std::size_t prefetch_distance = 8;
constexpr double finest_unit = 1.0 / 1024.0;
constexpr double most_units = std::numeric_limits<std::int16_t>::max();

double rounded(double weight, double unit) { return std::nearbyint(weight / unit) * unit; }

// Returns the smallest unit in which the largest weight, or the difference of two weights, fits into 16 bits.
double unit_for(double largest, std::size_t classes) {
  double unit = finest_unit;
  while ((classes == 2 ? 2.0 : 1.0) * largest > unit * (most_units - 1.0)) unit *= 2.0;
  return unit;
}

// Returns the columns of a conjunction plus one, descending, padded with zeros.
std::array<std::uint64_t, 3> columns_of(std::uint64_t key) {
  constexpr std::uint64_t mask = (1 << column_bits) - 1;
  return {key >> 2 * column_bits, key >> column_bits & mask, key & mask};
}

// For two classes, replaces the scores by 0 and the difference of the second and the first score, as engines
// do.
template <class Score>
void use_one_score_for_two_classes(std::vector<Score>& scores) {
  if (scores.size() == 2) scores = {Score{0}, scores[1] - scores[0]};
}

// Returns the rank of each column plus one, or 0 for columns without a rank.
std::vector<std::uint64_t> ranks_plus_one(std::span<const std::int64_t> columns) {
  std::vector<std::uint64_t> ranks;
  for (std::size_t rank = 0; rank < columns.size(); ++rank) {
    const auto column = static_cast<std::size_t>(columns[rank]);
    if (column >= ranks.size()) ranks.resize(column + 1, 0);
    ranks[column] = rank + 1;
  }
  return ranks;
}

// Returns the key of a conjunction in engines.
kernels::Key number_of(std::uint64_t key, std::span<const std::uint64_t> ranks,
                       const kernels::ConjunctionIndex& index) {
  std::uint64_t sorted[3] = {0, 0, 0};  // each rank plus one, descending
  for (std::uint64_t column : columns_of(key)) {
    std::uint64_t rank = column == 0 ? 0 : ranks[column - 1];
    for (std::uint64_t& other : sorted) {
      if (rank > other) std::swap(rank, other);
    }
  }
  const kernels::Key first = index.block(sorted[0] - 1);
  if (sorted[1] == 0) return first;
  return sorted[2] == 0
             ? first + sorted[1]
             : first + index.triples(sorted[0] - 1) + index.triangle(sorted[1] - 1) + sorted[2] - 1;
}

// Returns the columns that occur, by descending number of conjunctions that contain them.
std::vector<std::int64_t> columns_by_frequency(std::span<const std::uint64_t> keys) {
  std::vector<std::int64_t> times;
  for (const std::uint64_t key : keys) {
    for (const std::uint64_t column : columns_of(key)) {
      if (column > times.size()) times.resize(column, 0);
      if (column > 0) ++times[column - 1];
    }
  }
  std::vector<std::int64_t> columns;
  for (std::size_t column = 0; column < times.size(); ++column) {
    if (times[column] > 0) columns.push_back(static_cast<std::int64_t>(column));
  }
  const auto frequency = [&](std::int64_t column) { return times[static_cast<std::size_t>(column)]; };
  std::stable_sort(columns.begin(), columns.end(),
                   [&](std::int64_t a, std::int64_t b) { return frequency(a) > frequency(b); });
  return columns;
}

// Returns the mean weights. If a run does not have a conjunction, its weight counts as 0 there.
RunAverages unrounded_mean(std::span<const RunAverages> runs, std::size_t classes) {
  RunAverages mean;
  for (const RunAverages& run : runs) mean.keys.insert(mean.keys.end(), run.keys.begin(), run.keys.end());
  std::sort(mean.keys.begin(), mean.keys.end());
  mean.keys.erase(std::unique(mean.keys.begin(), mean.keys.end()), mean.keys.end());
  mean.weights.assign(mean.keys.size() * classes, 0.0);
  for (const RunAverages& run : runs) {
    std::size_t place = 0;
    for (std::size_t k = 0; k < run.keys.size(); ++k) {
      while (mean.keys[place] != run.keys[k]) ++place;
      for (std::size_t c = 0; c < classes; ++c)
        mean.weights[place * classes + c] += run.weights[k * classes + c] / static_cast<double>(runs.size());
    }
  }
  return mean;
}

}  // namespace

AveragedWeights::AveragedWeights(int degree, std::size_t classes, std::uint32_t min_updates,
                                 std::int32_t core)
    : degree_(degree),
      classes_(classes),
      min_updates_(std::max<std::uint32_t>(min_updates, 1)),
      core_(core),
      entries_(smallest_table),
      weights_(smallest_table * classes, 0.0F),
      corrections_(smallest_table * classes, 0.0F),
      scores_(classes) {
  if (degree < 1 || degree > 3) throw std::invalid_argument("online learning needs degree 1, 2 or 3");
}

// Lists the keys of the row's conjunctions. The columns of a row ascend, so the first column of a key is the
// largest. Only this column may be outside the core.
void AveragedWeights::list_keys(std::span<const std::int32_t> row) {
  const auto number = [&](std::size_t k) { return static_cast<Key>(row[k]) + 1; };
  row_keys_.assign(1, 0);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Key first = number(i) << 2 * column_bits;
    row_keys_.push_back(first);
    if (degree_ < 2) continue;
    for (std::size_t j = 0; j < i && row[j] < core_; ++j) {
      const Key second = first | number(j) << column_bits;
      row_keys_.push_back(second);
      if (degree_ < 3) continue;
      for (std::size_t k = 0; k < j; ++k) row_keys_.push_back(second | number(k));
    }
  }
}

std::size_t AveragedWeights::place_of(Key key) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t place = static_cast<std::size_t>(Random::mix(key)) & mask;
  while (entries_[place].key != free_place && entries_[place].key != key) place = (place + 1) & mask;
  return place;
}

void AveragedWeights::find_places() {
  const std::size_t mask = entries_.size() - 1;
  const std::size_t count = row_keys_.size();
  places_.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    if (k + prefetch_distance < count)
      __builtin_prefetch(
          &entries_[static_cast<std::size_t>(Random::mix(row_keys_[k + prefetch_distance])) & mask]);
    places_[k] = place_of(row_keys_[k]);
  }
}

std::span<const float> AveragedWeights::score(std::span<const std::int32_t> row) {
  list_keys(row);
  find_places();
  std::fill(scores_.begin(), scores_.end(), 0.0F);
  for (std::size_t k = 0; k < places_.size(); ++k) {
    if (k + prefetch_distance < places_.size())
      __builtin_prefetch(&weights_[places_[k + prefetch_distance] * classes_]);
    if (!takes_part(places_[k])) continue;
    const float* weights = &weights_[places_[k] * classes_];
    for (std::size_t c = 0; c < classes_; ++c) scores_[c] += weights[c];
  }
  use_one_score_for_two_classes(scores_);
  return scores_;
}

std::span<const double> AveragedWeights::averaged_score(std::span<const std::int32_t> row) {
  list_keys(row);
  find_places();
  averaged_scores_.assign(classes_, 0.0);
  for (const std::size_t place : places_) {
    for (std::size_t c = 0; takes_part(place) && c < classes_; ++c)
      averaged_scores_[c] += rounded(average(place * classes_ + c), unit_);
  }
  use_one_score_for_two_classes(averaged_scores_);
  return averaged_scores_;
}

double AveragedWeights::average(std::size_t weight) const {
  return static_cast<double>(weights_[weight]) - static_cast<double>(corrections_[weight]) / examples_;
}

double AveragedWeights::unit_of_averages() const {
  double largest = 0.0;
  for (std::size_t place = 0; place < entries_.size(); ++place) {
    for (std::size_t c = 0; is_kept(place) && c < classes_; ++c)
      largest = std::max(largest, std::abs(average(place * classes_ + c)));
  }
  return unit_for(largest, classes_);
}

void AveragedWeights::update(std::size_t correct, std::size_t wrong) {
  for (const Key key : row_keys_) {
    const std::size_t first = first_weight_to_change(key);
    change(first + correct, 1.0F);
    change(first + wrong, -1.0F);
  }
}

void AveragedWeights::add(std::span<const std::int32_t> row, std::size_t to, float amount) {
  if (classes_ == 2 && to == 0) return;  // the first of two classes always scores 0
  list_keys(row);
  for (const Key key : row_keys_) change(first_weight_to_change(key) + to, amount);
}

// Counts an update of a conjunction, and returns where its weights begin. Inserts the conjunction if it is
// new.
std::size_t AveragedWeights::first_weight_to_change(Key key) {
  if (3 * (used_ + 1) > 2 * entries_.size()) grow();
  const std::size_t place = place_of(key);
  Entry& entry = entries_[place];
  used_ += entry.key == free_place;
  entry.key = key;
  ++entry.updates;
  return place * classes_;
}

void AveragedWeights::change(std::size_t weight, float amount) {
  weights_[weight] += amount;
  corrections_[weight] += amount * static_cast<float>(examples_);
}

void AveragedWeights::continue_from_averages() {
  const double unit = unit_of_averages();
  for (std::size_t k = 0; k < weights_.size(); ++k) {
    weights_[k] = static_cast<float>(rounded(average(k), unit));
    corrections_[k] = 0.0F;
  }
  examples_ = 1.0;
}

// Grows one array after another, because a growing array is in memory twice.
void AveragedWeights::grow() {
  LargeVector<Entry> old(2 * entries_.size());
  old.swap(entries_);
  std::vector<std::size_t> moved(old.size(), 0);
  for (std::size_t from = 0; from < old.size(); ++from) {
    if (old[from].key == free_place) continue;
    moved[from] = place_of(old[from].key);
    entries_[moved[from]] = old[from];
  }
  for (LargeVector<float>* values : {&weights_, &corrections_}) {
    LargeVector<float> larger(2 * values->size());
    for (std::size_t from = 0; from < old.size(); ++from) {
      if (old[from].key == free_place) continue;
      std::copy_n(values->begin() + static_cast<std::ptrdiff_t>(from * classes_), classes_,
                  larger.begin() + static_cast<std::ptrdiff_t>(moved[from] * classes_));
    }
    values->swap(larger);
  }
}

RunAverages AveragedWeights::averages() const {
  std::vector<std::pair<Key, std::size_t>> kept;
  for (std::size_t place = 0; place < entries_.size(); ++place) {
    if (is_kept(place)) kept.emplace_back(entries_[place].key, place);
  }
  std::sort(kept.begin(), kept.end());
  RunAverages result;
  for (const auto& [key, place] : kept) {
    result.keys.push_back(key);
    for (std::size_t c = 0; c < classes_; ++c) result.weights.push_back(average(place * classes_ + c));
  }
  return result;
}

ConjunctionWeights mean_of(std::span<const RunAverages> runs, int degree, std::size_t classes) {
  const RunAverages mean = unrounded_mean(runs, classes);
  const std::size_t first = !mean.keys.empty() && mean.keys.front() == 0;  // skips the constant
  ConjunctionWeights result;
  result.columns = columns_by_frequency(std::span(mean.keys).subspan(first));
  const std::vector<std::uint64_t> ranks = ranks_plus_one(result.columns);
  const kernels::ConjunctionIndex index(degree, kernels::Basis::sets);
  std::vector<std::pair<kernels::Key, std::size_t>> order;
  for (std::size_t k = first; k < mean.keys.size(); ++k)
    order.emplace_back(number_of(mean.keys[k], ranks, index), k);
  std::sort(order.begin(), order.end());
  double largest = 0.0;
  for (const double weight : mean.weights) largest = std::max(largest, std::abs(weight));
  const double unit = unit_for(largest, classes);
  // Weights may be zero: the updates along two paths of a beam often cancel each other.
  const auto is_zero = [&](std::size_t k) {
    return std::ranges::all_of(std::span(mean.weights).subspan(k * classes, classes),
                               [&](double weight) { return rounded(weight, unit) == 0.0; });
  };
  const auto append = [&](std::size_t k, std::vector<double>& to) {
    const double* weights = mean.weights.data() + k * classes;
    if (classes == 2) return to.push_back(rounded(weights[1], unit) - rounded(weights[0], unit));
    for (std::size_t c = 0; c < classes; ++c) to.push_back(rounded(weights[c], unit));
  };
  for (const auto& [key, k] : order) {
    if (is_zero(k)) continue;
    result.keys.push_back(key);
    append(k, result.weights);
  }
  result.intercept.assign(first == 0 ? (classes == 2 ? 1 : classes) : 0, 0.0);
  if (first > 0) append(0, result.intercept);
  return result;
}

}  // namespace unkernel::parsing
