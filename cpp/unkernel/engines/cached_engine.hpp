// An engine with a cache in front of it: rows that were scored before are looked up, not scored again.
//
// The scores are bitwise equal to those that the engine computes for the row alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "unkernel/engines/answer_cache.hpp"
#include "unkernel/engines/engine.hpp"

namespace unkernel::engines {

class CachedEngine final : public Engine {
 public:
  // Caches at most `most_rows` rows, at least 1.
  CachedEngine(std::shared_ptr<const Engine> engine, std::size_t most_rows);

  AnswerCache& cache() const { return cache_; }

  std::size_t scores() const override { return engine_->scores(); }
  std::size_t bytes() const override { return engine_->bytes(); }
  std::unique_ptr<Worker> worker() const override;

  void score(const SparseRow<std::int32_t>& row, Worker& worker, double* out) const override;
  void score(const SparseRow<std::int64_t>& row, Worker& worker, double* out) const override;
  void score(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
             Threads threads) const override;
  void score(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
             Threads threads) const override;
  void score_until_decided(const SparseRow<std::int32_t>& row, Worker& worker, double* out) const override;
  void score_until_decided(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
                           Threads threads) const override;
  void score_until_decided(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
                           Threads threads) const override;

 private:
  struct CachedWorker;

  void find_or_score(const AnswerCache::Key& key, bool decision_only, CachedWorker& worker,
                     double* out) const;
  template <class Index>
  void score_row(const SparseRow<Index>& row, bool decision_only, CachedWorker& worker, double* out) const;
  template <class Index>
  void score_one(const SparseRow<Index>& row, bool decision_only, Worker& worker, double* out) const;
  template <class Index>
  void score_all(const data::CsrView<Index, double>& rows, bool decision_only, std::span<double> out,
                 Threads threads) const;
  void score_range(const RowRange<std::int32_t>& range, bool decision_only, CachedWorker& worker,
                   double* out) const;

  std::shared_ptr<const Engine> engine_;
  mutable AnswerCache cache_;  // thread-safe
};

}  // namespace unkernel::engines
