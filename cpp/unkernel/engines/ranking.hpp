// Maps input columns to ranks: the numbers, from 0, of an engine's features.
//
// Bytes    4 per column up to the largest ranked column, or 16 per ranked column if columns are far apart.
// Query    one load, or a binary search.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace unkernel::engines {

using Rank = std::uint32_t;
inline constexpr Rank unknown = std::numeric_limits<Rank>::max();  // of columns that have no rank

class Ranking {
 public:
  Ranking() = default;

  // `columns` gives the column of each rank; no column may occur twice.
  explicit Ranking(std::span<const std::int64_t> columns) : used_(columns.size()) {
    if (columns.empty()) return;
    if (columns.size() >= unknown) throw std::invalid_argument("too many features");
    const auto [low, high] = std::minmax_element(columns.begin(), columns.end());
    if (*low < 0) throw std::invalid_argument("a feature's column is negative");
    const auto table_size = static_cast<std::uint64_t>(*high) + 1;
    constexpr std::uint64_t small_table = std::uint64_t{1} << 20;  // entries
    if (table_size <= std::max<std::uint64_t>(small_table, 8 * columns.size())) {
      fill_table(columns, table_size);
    } else {
      fill_list(columns);
    }
  }

  std::size_t used() const { return used_; }
  std::size_t bytes() const { return sizeof(Rank) * table_.size() + sizeof(list_[0]) * list_.size(); }

  template <class Index>
  [[gnu::always_inline]] Rank of(Index column) const {
    // A negative column becomes an index beyond the table.
    const auto index = static_cast<std::uint64_t>(static_cast<std::int64_t>(column));
    if (index < table_.size()) return table_[static_cast<std::size_t>(index)];
    return list_.empty() ? unknown : search(static_cast<std::int64_t>(column));
  }

 private:
  void fill_table(std::span<const std::int64_t> columns, std::uint64_t size) {
    table_.assign(static_cast<std::size_t>(size), unknown);
    for (std::size_t rank = 0; rank < columns.size(); ++rank) {
      Rank& entry = table_[static_cast<std::size_t>(columns[rank])];
      if (entry != unknown) throw std::invalid_argument("a feature occurs twice");
      entry = static_cast<Rank>(rank);
    }
  }

  void fill_list(std::span<const std::int64_t> columns) {
    list_.reserve(columns.size());
    for (std::size_t rank = 0; rank < columns.size(); ++rank)
      list_.emplace_back(columns[rank], static_cast<Rank>(rank));
    std::sort(list_.begin(), list_.end());
    const auto has_same_column = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (std::adjacent_find(list_.begin(), list_.end(), has_same_column) != list_.end()) {
      throw std::invalid_argument("a feature occurs twice");
    }
  }

  [[gnu::noinline]] Rank search(std::int64_t column) const {
    const auto entry = std::lower_bound(list_.begin(), list_.end(), std::pair{column, Rank{0}});
    return entry != list_.end() && entry->first == column ? entry->second : unknown;
  }

  std::size_t used_ = 0;
  std::vector<Rank> table_;
  std::vector<std::pair<std::int64_t, Rank>> list_;
};

}  // namespace unkernel::engines
