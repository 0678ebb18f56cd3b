#include "unkernel/engines/conjunction_engine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "unkernel/base/gather.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/base/random.hpp"

namespace unkernel::engines {
namespace {

constexpr Key no_key = static_cast<Key>(-1);
constexpr double near_bytes = 4e6;  // what a dense head may always take

// How the monomials of a row count against the weights: as they are, or as sets (SetFactors).
struct MonomialFactors {
  static constexpr bool repeats = true;
  double single(double x) const { return x; }
  double pair(double x, double y) const { return x * y; }
};
struct SupportFactors {
  static constexpr bool repeats = false;
  const SetFactors& factors;
  double single(double x) const { return factors.single(x); }
  double pair(double x, double y) const { return factors.pair(x, y); }
};
struct UnitFactors {
  static constexpr bool repeats = false;
  double single(double) const { return 1.0; }
  double pair(double, double) const { return 1.0; }
};

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("not a valid conjunction model: " + what); }

}  // namespace

ConjunctionEngine::ConjunctionEngine(const ConjunctionWeights& weights)
    : index_(weights.map.degree, weights.basis),
      map_(weights.map),
      set_factors_(weights.map),
      features_(weights.features),
      constants_(weights.constants.begin(), weights.constants.end()) {
  check(weights);
  number_columns(weights);
  choose_head(weights);
  fill(weights);
}

void ConjunctionEngine::check(const ConjunctionWeights& weights) const {
  if (constants_.empty()) refuse("no scores");
  if (weights.columns.size() > index_.most_features()) refuse("too many features");
  if (weights.keys.size() > weights.weights.size() ||
      weights.weights.size() != weights.keys.size() * constants_.size()) {
    refuse("the number of weights does not fit the number of conjunctions");
  }
  const Key end = index_.count(weights.columns.size());
  Key previous = 0;
  for (const Key key : weights.keys) {
    if (key <= previous || key >= end) refuse("conjunction keys must ascend and stay below " + std::to_string(end));
    previous = key;
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(weights.weights.begin(), weights.weights.end(), finite) ||
      !std::all_of(constants_.begin(), constants_.end(), finite)) {
    refuse("a weight is not finite");
  }
}

void ConjunctionEngine::number_columns(const ConjunctionWeights& weights) {
  const auto used = static_cast<std::int64_t>(weights.columns.size());
  for (std::int64_t rank = 0; rank < used; ++rank) {
    const std::int64_t column = weights.columns[static_cast<std::size_t>(rank)];
    if (column < 0 || column >= features_) refuse("feature " + std::to_string(column) + " is outside the model");
    ranked_columns_.emplace_back(column, static_cast<std::int32_t>(rank));
  }
  std::sort(ranked_columns_.begin(), ranked_columns_.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(ranked_columns_.begin(), ranked_columns_.end(), same) != ranked_columns_.end()) {
    refuse("a feature occurs twice");
  }
  if (features_ <= std::max<std::int64_t>(std::int64_t{1} << 20, 8 * used)) {
    rank_of_column_.assign(static_cast<std::size_t>(features_), -1);
    for (const auto& [column, rank] : ranked_columns_) rank_of_column_[static_cast<std::size_t>(column)] = rank;
    ranked_columns_ = {};
  }
  for (std::uint64_t rank = 0; rank < static_cast<std::uint64_t>(used); ++rank) blocks_.push_back(index_.block(rank));
}

// All in the dense table where that is small, or not larger than the hash table would be; else as
// many of the most frequent features as fit near the processor.
void ConjunctionEngine::choose_head(const ConjunctionWeights& weights) {
  const auto width = 8.0 * static_cast<double>(scores());
  const double sparse = static_cast<double>(weights.keys.size()) * (32.0 + width);
  const double limit = std::max(near_bytes, sparse);
  const std::uint64_t used = weights.columns.size();
  if (static_cast<double>(index_.count(used)) * width <= limit) {
    head_ranks_ = used;
  } else {
    while (head_ranks_ < used && static_cast<double>(index_.count(head_ranks_ + 1)) * width <= near_bytes) ++head_ranks_;
  }
  head_keys_ = index_.count(head_ranks_);
}

void ConjunctionEngine::fill(const ConjunctionWeights& weights) {
  head_ = LargeArray<double>(head_keys_ * scores());
  const auto split = std::lower_bound(weights.keys.begin(), weights.keys.end(), head_keys_) - weights.keys.begin();
  for (std::size_t k = 0; k < static_cast<std::size_t>(split); ++k) {
    std::copy_n(weights.weights.begin() + static_cast<std::ptrdiff_t>(k * scores()), scores(),
                head_.data() + weights.keys[k] * scores());
  }
  const auto tail = weights.keys.subspan(static_cast<std::size_t>(split));
  tail_weights_.assign(weights.weights.begin() + split * static_cast<std::ptrdiff_t>(scores()), weights.weights.end());
  // At most 2/3 full, and never without an empty slot, which is where a search ends.
  slots_.assign(std::bit_ceil(tail.size() + tail.size() / 2 + 1), {no_key, 0});
  for (std::size_t k = 0; k < tail.size(); ++k) insert(tail[k], k);
}

void ConjunctionEngine::insert(Key key, std::uint64_t place) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(Random::mix(key)) & mask;
  while (slots_[slot].key != no_key) slot = (slot + 1) & mask;
  slots_[slot] = {key, place};
}

const double* ConjunctionEngine::find(Key key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(Random::mix(key)) & mask;
  while (slots_[slot].key != key) {
    if (slots_[slot].key == no_key) return nullptr;
    slot = (slot + 1) & mask;
  }
  return tail_weights_.data() + slots_[slot].place * scores();
}

std::int32_t ConjunctionEngine::rank_of(std::int64_t column) const {
  if (!rank_of_column_.empty()) return rank_of_column_[static_cast<std::size_t>(column)];
  const auto found = std::lower_bound(ranked_columns_.begin(), ranked_columns_.end(), std::pair{column, std::int32_t{0}});
  return found != ranked_columns_.end() && found->first == column ? found->second : -1;
}

std::size_t ConjunctionEngine::bytes() const {
  return 8 * (head_.size() + tail_weights_.size() + constants_.size() + blocks_.size()) + sizeof(Slot) * slots_.size() +
         4 * rank_of_column_.size() + 16 * ranked_columns_.size();
}

template <class Index>
void ConjunctionEngine::load_row(const data::CsrView<Index, double>& rows, std::int64_t row, ConjunctionWorker& worker) const {
  const auto begin = static_cast<std::size_t>(rows.offsets[static_cast<std::size_t>(row)]);
  const auto end = static_cast<std::size_t>(rows.offsets[static_cast<std::size_t>(row) + 1]);
  worker.entries.clear();
  worker.all_ones = true;
  for (std::size_t k = begin; k < end; ++k) {
    const std::int32_t rank = rank_of(static_cast<std::int64_t>(rows.columns[k]));
    if (rank < 0 || rows.values[k] == 0.0) continue;
    worker.entries.emplace_back(rank, rows.values[k]);
    worker.all_ones = worker.all_ones && rows.values[k] == 1.0;
  }
  std::sort(worker.entries.begin(), worker.entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  worker.ranks.clear();
  worker.values.clear();
  for (const auto& [rank, value] : worker.entries) {
    worker.ranks.push_back(rank);
    worker.values.push_back(value);
  }
}

void ConjunctionEngine::score_row(const ConjunctionWorker& worker, double* out) const {
  const bool sets = index_.basis() == Basis::sets;
  const bool all_dense = worker.ranks.empty() || static_cast<std::uint64_t>(worker.ranks.back()) < head_ranks_;
  if (scores() == 1 && all_dense && (!sets || worker.all_ones)) {
    *out = dense_score(worker);
    return;
  }
  std::copy(constants_.begin(), constants_.end(), out);
  if (!sets) {
    general_score(worker, MonomialFactors{}, out);
  } else if (worker.all_ones) {
    general_score(worker, UnitFactors{}, out);
  } else {
    general_score(worker, SupportFactors{set_factors_}, out);
  }
}

// One score, no hashing: the loops of OnTheFlyRows::dot, with the degree and basis read at run time.
double ConjunctionEngine::dense_score(const ConjunctionWorker& worker) const {
  const bool sets = index_.basis() == Basis::sets;
  const std::int32_t* f = worker.ranks.data();
  const double* x = worker.values.data();
  const auto sum_over = [&](const double* table, std::size_t count) {
    return sets ? gather<true>(table, f, x, count) : gather<false>(table, f, x, count);
  };
  const std::size_t own = sets ? 0 : 1;  // does a position pair with itself?
  double total = constants_[0];
  for (std::size_t a = 0; a < worker.ranks.size(); ++a) {
    const double* block = head_.data() + blocks_[static_cast<std::size_t>(f[a])];
    double sum = block[0];
    if (index_.degree() == 2) sum += sum_over(block + 1, a + own);
    if (index_.degree() == 3) {
      const double* triples = block + index_.triples(static_cast<std::uint64_t>(f[a]));
      for (std::size_t b = 0; b < a + own; ++b) {
        const double inner =
            block[1 + f[b]] + sum_over(triples + index_.triangle(static_cast<std::uint64_t>(f[b])), b + own);
        sum += sets ? inner : x[b] * inner;
      }
    }
    total += sets ? sum : x[a] * sum;
  }
  return total;
}

void ConjunctionEngine::add(Key key, double factor, double* out) const {
  const double* weights = key < head_keys_ ? head_.data() + key * scores() : find(key);
  if (weights == nullptr) return;
  for (std::size_t s = 0; s < scores(); ++s) out[s] += factor * weights[s];
}

template <class Factors>
void ConjunctionEngine::general_score(const ConjunctionWorker& worker, const Factors& factors, double* out) const {
  constexpr std::size_t own = Factors::repeats ? 1 : 0;
  const std::int32_t* f = worker.ranks.data();
  const double* x = worker.values.data();
  for (std::size_t a = 0; a < worker.ranks.size(); ++a) {
    const Key block = blocks_[static_cast<std::size_t>(f[a])];
    add(block, factors.single(x[a]), out);
    if (index_.degree() < 2) continue;
    for (std::size_t b = 0; b < a + own; ++b) add(block + 1 + static_cast<Key>(f[b]), factors.pair(x[a], x[b]), out);
    if (index_.degree() < 3) continue;
    for (std::size_t b = 0; b < a + own; ++b) {
      const Key triples =
          block + index_.triples(static_cast<std::uint64_t>(f[a])) + index_.triangle(static_cast<std::uint64_t>(f[b]));
      for (std::size_t c = 0; c < b + own; ++c) add(triples + static_cast<Key>(f[c]), x[a] * x[b] * x[c], out);
    }
  }
}

template <class Index>
void ConjunctionEngine::score(const data::CsrView<Index, double>& rows, std::span<double> out, int threads) const {
  if (rows.features != features_) {
    throw std::invalid_argument("rows have " + std::to_string(rows.features) + " features, the model " + std::to_string(features_));
  }
  for (const Index column : rows.columns) {
    if (column < 0 || static_cast<std::int64_t>(column) >= features_) throw std::invalid_argument("a column index is outside the matrix");
  }
  constexpr std::int64_t grain = 512;  // fewer rows than this are not worth a second thread
  parallel_ranges(threads, rows.rows(), grain, [&](std::int64_t first, std::int64_t last) {
    ConjunctionWorker worker;
    for (std::int64_t row = first; row < last; ++row) {
      load_row(rows, row, worker);
      score_row(worker, out.data() + static_cast<std::size_t>(row) * scores());
    }
  });
}

template void ConjunctionEngine::score(const data::CsrView<std::int32_t, double>&, std::span<double>, int) const;
template void ConjunctionEngine::score(const data::CsrView<std::int64_t, double>&, std::span<double>, int) const;

}  // namespace unkernel::engines
