// Converts a row to ascending ranks without repetition.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "unkernel/engines/engine.hpp"
#include "unkernel/engines/ranking.hpp"

namespace unkernel::engines {

// The ends of the first two zones of ConjunctionTables.
struct RankZones {
  Rank fused;
  Rank head;
};

// The ranks of a row of ones, by zone. state() is the bit set of the fused ranks. head() has the other ranks
// of the head, minus `fused`, and tail() has all ranks beyond the head. Head ranks ascend with columns, so
// only the tail, which is short, must be sorted.
class BinaryRow {
 public:
  template <class Index>
  [[gnu::always_inline]] void load(const SparseRow<Index>& row, const Ranking& ranking,
                                   const RankZones& zones) {
    if (head_.size() < row.columns.size() + padding) reserve_ranks(row.columns.size());
    const bool tail = zones.head < ranking.used();
    if (zones.fused == 0) {
      tail ? distribute<false, true>(row, ranking, zones) : distribute<false, false>(row, ranking, zones);
    } else {
      tail ? distribute<true, true>(row, ranking, zones) : distribute<true, false>(row, ranking, zones);
    }
    if (tail_size_ > 1) sort(tail_.data(), tail_size_);
  }

  // Loads a row whose head ranks need not ascend with columns. Sorts them through the bit set bits().
  template <class Index>
  void load_sorted(const SparseRow<Index>& row, const Ranking& ranking, Rank head) {
    if (head_.size() < row.columns.size() + padding) reserve_ranks(row.columns.size());
    bits_.assign(head / 64 + 2, 0);
    Rank* to_tail = tail_.data();
    const Rank tail_ranks = static_cast<Rank>(ranking.used()) - head;
    for (const Index column : row.columns) {
      const Rank rank = ranking.of(column);
      if (rank < head) bits_[rank / 64] |= std::uint64_t{1} << rank % 64;
      *to_tail = rank;
      // The unsigned difference is large for ranks of the head and for `unknown`.
      to_tail += rank - head < tail_ranks;
    }
    tail_size_ = static_cast<std::size_t>(to_tail - tail_.data());
    state_ = 0;
    head_size_ = 0;
    for (std::size_t word = 0; word < bits_.size(); ++word) {
      for (std::uint64_t remaining = bits_[word]; remaining != 0; remaining &= remaining - 1) {
        head_[head_size_++] =
            static_cast<Rank>(64 * word + static_cast<std::size_t>(std::countr_zero(remaining)));
      }
    }
    if (tail_size_ > 1) sort(tail_.data(), tail_size_);
  }

  // Sets the row to these ascending ranks. Does not set bits().
  void assign(std::span<const Rank> ranks, Rank head) {
    if (head_.size() < ranks.size() + padding) reserve_ranks(ranks.size());
    state_ = 0;
    head_size_ = static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), head) - ranks.begin());
    tail_size_ = ranks.size() - head_size_;
    std::copy_n(ranks.begin(), head_size_, head_.begin());
    std::copy(ranks.begin() + static_cast<std::ptrdiff_t>(head_size_), ranks.end(), tail_.begin());
  }

  // Returns the bit set of the head ranks; valid after load_sorted.
  const std::uint64_t* bits() const { return bits_.data(); }
  std::uint32_t state() const { return state_; }
  const Rank* head() const { return head_.data(); }
  std::size_t head_size() const { return head_size_; }
  const Rank* tail() const { return tail_.data(); }
  std::size_t tail_size() const { return tail_size_; }

 private:
  static constexpr std::size_t padding = 4;  // ranks; DenseHead reads four ranks at a time

  // Writes every rank to both lists; the next rank overwrites a rank that does not belong there. Branches
  // here would be mispredicted.
  template <bool Fused, bool Tail, class Index>
  [[gnu::always_inline]] void distribute(const SparseRow<Index>& row, const Ranking& ranking,
                                         const RankZones& zones) {
    const Rank fused = zones.fused;
    const Rank head_ranks = zones.head - fused;
    const Rank tail_ranks = static_cast<Rank>(ranking.used()) - zones.head;
    Rank* to_head = head_.data();
    Rank* to_tail = tail_.data();
    std::uint32_t state = 0;
    for (const Index column : row.columns) {
      const Rank rank = ranking.of(column);
      if constexpr (Fused) state |= static_cast<std::uint32_t>(rank < fused) << (rank & 31);
      const Rank number = Fused ? rank - fused : rank;
      *to_head = number;
      to_head += number < head_ranks;
      if constexpr (Tail) {
        *to_tail = rank;
        to_tail += rank - zones.head < tail_ranks;
      }
    }
    state_ = state;
    head_size_ = static_cast<std::size_t>(to_head - head_.data());
    tail_size_ = static_cast<std::size_t>(to_tail - tail_.data());
  }

  [[gnu::noinline]] void reserve_ranks(std::size_t count) {
    head_.resize(2 * count + padding);
    tail_.resize(2 * count + padding);
  }

  static void sort(Rank* ranks, std::size_t count) {
    constexpr std::size_t max_insertion_sort = 24;  // ranks
    if (count > max_insertion_sort) return sort_many(ranks, count);
    for (std::size_t k = 1; k < count; ++k) {
      const Rank rank = ranks[k];
      std::size_t place = k;
      for (; place > 0 && ranks[place - 1] > rank; --place) ranks[place] = ranks[place - 1];
      ranks[place] = rank;
    }
  }
  static void sort_many(Rank* ranks, std::size_t count);

  std::vector<Rank> head_;
  std::vector<Rank> tail_;
  std::vector<std::uint64_t> bits_;
  std::uint32_t state_ = 0;
  std::size_t head_size_ = 0;
  std::size_t tail_size_ = 0;
};

// The ranks and values of a row with arbitrary values, sorted by rank.
class ValuedRow {
 public:
  template <class Index>
  void load(const SparseRow<Index>& row, const Ranking& ranking) {
    entries_.clear();
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      const Rank rank = ranking.of(row.columns[k]);
      const double value = row.values == nullptr ? 1.0 : row.values[k];
      if (rank != unknown && value != 0.0) entries_.emplace_back(rank, value);
    }
    split_entries();
  }

  std::size_t size() const { return ranks_.size(); }
  const Rank* ranks() const { return ranks_.data(); }
  const double* values() const { return values_.data(); }

 private:
  // Sorts the entries and splits them into ranks and values.
  void split_entries();

  std::vector<std::pair<Rank, double>> entries_;
  std::vector<Rank> ranks_;
  std::vector<double> values_;
};

}  // namespace unkernel::engines
