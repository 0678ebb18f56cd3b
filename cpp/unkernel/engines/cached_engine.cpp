#include "unkernel/engines/cached_engine.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace unkernel::engines {
namespace {

constexpr std::size_t rows_at_once = 16;  // one batch of lookups, whose memory accesses overlap

// Converts the columns of a row to 32 bits. Returns whether all of them fit.
bool narrow_columns(std::span<const std::int64_t> columns, std::vector<std::int32_t>& narrow) {
  narrow.resize(columns.size());
  bool fits = true;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    narrow[k] = static_cast<std::int32_t>(columns[k]);
    fits &= narrow[k] == columns[k];
  }
  return fits;
}

AnswerCache::Key key_of(const SparseRow<std::int32_t>& row) {
  const bool ones = row.values == nullptr || all_ones(row.values, row.columns.size());
  return {row.columns, ones ? nullptr : row.values};
}

}  // namespace

struct CachedEngine::CachedWorker final : Worker {
  std::unique_ptr<Worker> inner;
  RowSorter<std::int32_t> sort_columns;
  std::vector<std::int32_t> narrow;
  std::size_t counter = 0;
  std::uint64_t hits = 0, misses = 0;  // not yet added to the counts of the cache

  void count(AnswerCache& cache) { cache.count(counter, std::exchange(hits, 0), std::exchange(misses, 0)); }
};

CachedEngine::CachedEngine(std::shared_ptr<const Engine> engine, std::size_t most_rows)
    : engine_(std::move(engine)), cache_(most_rows, engine_->scores()) {}

std::unique_ptr<Worker> CachedEngine::worker() const {
  auto new_worker = std::make_unique<CachedWorker>();
  new_worker->inner = engine_->worker();
  new_worker->counter = cache_.new_counter();
  return new_worker;
}

// Looks up a row in the cache. If the row is missing, scores and stores it.
void CachedEngine::find_or_score(const AnswerCache::Key& key, bool decision_only, CachedWorker& worker,
                                 double* out) const {
  if (cache_.find(key, decision_only, out)) {
    ++worker.hits;
    return;
  }
  ++worker.misses;
  const std::uint32_t generation = cache_.generation();
  const SparseRow<std::int32_t> row{key.columns, key.values};
  decision_only ? engine_->score_until_decided(row, *worker.inner, out)
                : engine_->score(row, *worker.inner, out);
  cache_.store(key, decision_only, generation, out);
}

template <class Index>
void CachedEngine::score_row(const SparseRow<Index>& row, bool decision_only, CachedWorker& worker,
                             double* out) const {
  if constexpr (sizeof(Index) == sizeof(std::int32_t)) {
    find_or_score(key_of(worker.sort_columns(row)), decision_only, worker, out);
  } else if (narrow_columns(row.columns, worker.narrow)) {
    find_or_score(key_of(worker.sort_columns({worker.narrow, row.values})), decision_only, worker, out);
  } else {
    ++worker.misses;
    engine_->score(row, *worker.inner, out);  // complete scores include the decision
  }
}

// Scores rows with ascending columns. Looks up several rows together, so that memory accesses overlap.
void CachedEngine::score_range(const RowRange<std::int32_t>& range, bool decision_only, CachedWorker& worker,
                               double* out) const {
  std::array<AnswerCache::Key, rows_at_once> keys;
  for (std::size_t begin = range.first; begin < range.last; begin += rows_at_once) {
    const std::size_t count = std::min(rows_at_once, range.last - begin);
    for (std::size_t k = 0; k < count; ++k) {
      keys[k] = key_of(range[begin + k]);
      cache_.prefetch_slots(keys[k]);
    }
    for (std::size_t k = 0; k < count; ++k) cache_.prefetch_row(keys[k]);
    for (std::size_t k = 0; k < count; ++k, out += scores())
      find_or_score(keys[k], decision_only, worker, out);
  }
}

template <class Index>
void CachedEngine::score_all(const data::CsrView<Index, double>& rows, bool decision_only,
                             std::span<double> out, Threads threads) const {
  constexpr std::int64_t min_rows_of_thread = 512;  // fewer rows are not worth a second thread
  constexpr std::int64_t rows_between_polls = 64;   // checks for interrupts; a slow row takes milliseconds
  const std::int64_t grain = std::max(min_rows_of_thread, rows.rows() / (8 * std::max(threads.count, 1)));
  parallel_ranges(threads.count, rows.rows(), grain, [&](std::int64_t first, std::int64_t last) {
    const std::unique_ptr<Worker> new_worker = worker();
    auto& cached_worker = static_cast<CachedWorker&>(*new_worker);
    for (std::int64_t begin = first; begin < last; begin += rows_between_polls) {
      threads.monitor->throw_if_stopped();
      const RowRange<Index> range(rows, static_cast<std::size_t>(begin),
                                  static_cast<std::size_t>(std::min(last, begin + rows_between_polls)));
      double* range_out = out.data() + range.first * scores();
      if constexpr (sizeof(Index) == sizeof(std::int32_t)) {
        if (range.ascending) {
          score_range(range, decision_only, cached_worker, range_out);
          continue;
        }
      }
      for (std::size_t row = range.first; row < range.last; ++row, range_out += scores())
        score_row(range[row], decision_only, cached_worker, range_out);
    }
    cached_worker.count(cache_);
  });
}

template <class Index>
void CachedEngine::score_one(const SparseRow<Index>& row, bool decision_only, Worker& worker,
                             double* out) const {
  auto& cached_worker = static_cast<CachedWorker&>(worker);
  score_row(row, decision_only, cached_worker, out);
  cached_worker.count(cache_);
}

void CachedEngine::score(const SparseRow<std::int32_t>& row, Worker& worker, double* out) const {
  score_one(row, false, worker, out);
}
void CachedEngine::score(const SparseRow<std::int64_t>& row, Worker& worker, double* out) const {
  score_one(row, false, worker, out);
}
void CachedEngine::score(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
                         Threads threads) const {
  score_all(rows, false, out, threads);
}
void CachedEngine::score(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
                         Threads threads) const {
  score_all(rows, false, out, threads);
}
void CachedEngine::score_until_decided(const SparseRow<std::int32_t>& row, Worker& worker,
                                       double* out) const {
  score_one(row, true, worker, out);
}
void CachedEngine::score_until_decided(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
                                       Threads threads) const {
  score_all(rows, true, out, threads);
}
void CachedEngine::score_until_decided(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
                                       Threads threads) const {
  score_all(rows, true, out, threads);
}

}  // namespace unkernel::engines
