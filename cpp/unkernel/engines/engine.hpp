// The interface of all engines.
//
// An engine is immutable, and any number of threads may use it; each thread writes to its own worker. There
// is one virtual call per batch: the loop over the rows, and everything below it, are compiled for the type
// of the engine.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/data/csr.hpp"

namespace unkernel::engines {

// A row: columns and their values. If `values` is null, all values are 1. Columns that the model does not
// have, including negative columns, are ignored.
template <class Index>
struct SparseRow {
  std::span<const Index> columns;
  const double* values = nullptr;
};

// Sorts the columns of a row, because engines need ascending columns without repetition. Adds the values of a
// repeated column; in a row without values, a repeated column counts once.
template <class Index>
class RowSorter {
 public:
  SparseRow<Index> operator()(const SparseRow<Index>& row) {
    bool ascending = true;
    for (std::size_t k = 1; k < row.columns.size(); ++k) ascending &= row.columns[k - 1] < row.columns[k];
    return ascending ? row : sort(row);
  }

 private:
  SparseRow<Index> sort(const SparseRow<Index>& row);

  std::vector<std::pair<Index, double>> entries_;
  std::vector<Index> columns_;
  std::vector<double> values_;
};

// Compares bits without branches, so that the loop is vectorised.
inline bool all_ones(const double* values, std::size_t count) {
  const auto one = std::bit_cast<std::uint64_t>(1.0);
  std::uint64_t difference = 0;
  for (std::size_t k = 0; k < count; ++k) difference |= std::bit_cast<std::uint64_t>(values[k]) ^ one;
  return difference == 0;
}

extern template class RowSorter<std::int32_t>;
extern template class RowSorter<std::int64_t>;

// The buffers of one thread, reused from row to row.
class Worker {
 public:
  virtual ~Worker() = default;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::size_t scores() const = 0;
  // Returns the bytes of all tables, in memory or mapped.
  virtual std::size_t bytes() const = 0;
  virtual std::unique_ptr<Worker> worker() const = 0;

  // Computes the scores of one row with a worker of this engine.
  virtual void score(const SparseRow<std::int32_t>& row, Worker& worker, double* out) const = 0;
  virtual void score(const SparseRow<std::int64_t>& row, Worker& worker, double* out) const = 0;
  // Computes the scores of all rows: `out` is rows x scores. The result does not depend on the number of
  // threads. Throws Interrupted if stopped.
  virtual void score(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
                     Threads threads) const = 0;
  virtual void score(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
                     Threads threads) const = 0;
  // Computes scores that give the right decision but may be wrong otherwise. The decision is the sign of a
  // single score, or the index of the largest of several. Scoring may stop once the remaining conjunctions
  // cannot change it.
  virtual void score_until_decided(const SparseRow<std::int32_t>& row, Worker& worker, double* out) const {
    score(row, worker, out);
  }
  virtual void score_until_decided(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
                                   Threads threads) const {
    score(rows, out, threads);
  }
  virtual void score_until_decided(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
                                   Threads threads) const {
    score(rows, out, threads);
  }
};

// A range of rows of a matrix. `ones` is true if all values are 1, and `ascending` if the columns of every
// row ascend. One test of the whole range is far cheaper than a test of each row.
template <class Index>
struct RowRange {
  const data::CsrView<Index, double>& rows;
  std::size_t first;
  std::size_t last;
  bool ones = false;
  bool ascending = false;

  RowRange(const data::CsrView<Index, double>& matrix, std::size_t from, std::size_t to);

  SparseRow<Index> operator[](std::size_t row) const {
    const auto begin = static_cast<std::size_t>(rows.offsets[row]);
    const auto end = static_cast<std::size_t>(rows.offsets[row + 1]);
    // Columns that do not ascend may repeat, and then their values must be added.
    return {rows.columns.subspan(begin, end - begin),
            ones && ascending ? nullptr : rows.values.data() + begin};
  }
};

extern template struct RowRange<std::int32_t>;
extern template struct RowRange<std::int64_t>;

// Implements an engine for rows with ascending columns. Derived must have make_scratch(),
// score_row(SparseRow<Index>, Scratch&, double* out) and score_range(RowRange<Index>, Scratch&, double* out).
// It may also have stop_early(bool, Scratch&), which sets whether scoring with this scratch may stop once the
// decision is certain. Base is Engine, or an interface that extends it.
template <class Derived, class Scratch, class Base = Engine>
class EngineOf : public Base {
 public:
  std::unique_ptr<Worker> worker() const final {
    return std::make_unique<ScratchWorker>(self().make_scratch());
  }

  void score(const SparseRow<std::int32_t>& row, Worker& worker, double* out) const final {
    score_one(row, false, worker, out);
  }
  void score(const SparseRow<std::int64_t>& row, Worker& worker, double* out) const final {
    score_one(row, false, worker, out);
  }
  void score(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
             Threads threads) const final {
    score_all(rows, false, out, threads);
  }
  void score(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
             Threads threads) const final {
    score_all(rows, false, out, threads);
  }

  void score_until_decided(const SparseRow<std::int32_t>& row, Worker& worker, double* out) const final {
    score_one(row, true, worker, out);
  }
  void score_until_decided(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
                           Threads threads) const final {
    score_all(rows, true, out, threads);
  }
  void score_until_decided(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
                           Threads threads) const final {
    score_all(rows, true, out, threads);
  }

 private:
  struct ScratchWorker final : Worker {
    explicit ScratchWorker(Scratch&& buffers) : scratch(std::move(buffers)) {}
    Scratch scratch;
    SparseRow<std::int32_t> sort_columns(const SparseRow<std::int32_t>& row) { return sort_int32(row); }
    SparseRow<std::int64_t> sort_columns(const SparseRow<std::int64_t>& row) { return sort_int64(row); }
    RowSorter<std::int32_t> sort_int32;
    RowSorter<std::int64_t> sort_int64;
  };

  const Derived& self() const { return static_cast<const Derived&>(*this); }

  void prepare(bool until_decided, Scratch& scratch) const {
    if constexpr (requires { self().stop_early(until_decided, scratch); })
      self().stop_early(until_decided, scratch);
  }

  template <class Index>
  void score_one(const SparseRow<Index>& row, bool until_decided, Worker& worker, double* out) const {
    auto& scratch_worker = static_cast<ScratchWorker&>(worker);
    prepare(until_decided, scratch_worker.scratch);
    self().score_row(scratch_worker.sort_columns(row), scratch_worker.scratch, out);
  }

  template <class Index>
  void score_all(const data::CsrView<Index, double>& rows, bool until_decided, std::span<double> out,
                 Threads threads) const {
    constexpr std::int64_t min_rows_of_thread = 512;  // fewer rows are not worth a second thread
    constexpr std::int64_t rows_between_polls = 64;   // checks for interrupts; a slow row takes milliseconds
    const std::int64_t grain = std::max(min_rows_of_thread, rows.rows() / (8 * std::max(threads.count, 1)));
    const std::size_t width = this->scores();
    parallel_ranges(threads.count, rows.rows(), grain, [&](std::int64_t first, std::int64_t last) {
      Scratch scratch = self().make_scratch();
      prepare(until_decided, scratch);
      RowSorter<Index> sort_columns;
      for (std::int64_t begin = first; begin < last; begin += rows_between_polls) {
        threads.monitor->throw_if_stopped();
        const RowRange<Index> range(rows, static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(std::min(last, begin + rows_between_polls)));
        double* range_out = out.data() + range.first * width;
        if (range.ascending) {
          self().score_range(range, scratch, range_out);
          continue;
        }
        for (std::size_t row = range.first; row < range.last; ++row, range_out += width)
          self().score_row(sort_columns(range[row]), scratch, range_out);
      }
    });
  }
};

}  // namespace unkernel::engines
