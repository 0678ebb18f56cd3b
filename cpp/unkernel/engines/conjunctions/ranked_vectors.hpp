// The support vectors by rank, as expansions read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "unkernel/data/csr.hpp"
#include "unkernel/engines/ranking.hpp"

namespace unkernel::engines {

// The support vectors with ranks instead of columns, and the vectors that contain each rank.
struct RankedVectors {
  std::vector<std::uint32_t> begins;        // vectors + 1, into `items`
  std::vector<Rank> items;                  // ascending within a vector
  std::vector<double> values;               // of the items; empty if all values are 1
  std::vector<std::uint32_t> owner_begins;  // ranks + 1, into `holders` and `places`
  std::vector<std::uint32_t> holders;       // by rank: the vectors that contain it
  std::vector<std::uint32_t> places;        // by rank: its position in `items`, for each holder
};

// Returns the vectors by rank. `columns` gives the column of each rank; `sets` means that all values are 1.
inline RankedVectors rank_vectors(const data::CsrView<std::int32_t, double>& rows,
                                  const std::vector<std::int64_t>& columns, bool sets) {
  RankedVectors ranked;
  std::vector<Rank> rank_of(static_cast<std::size_t>(rows.features), unknown);
  for (std::size_t rank = 0; rank < columns.size(); ++rank)
    rank_of[static_cast<std::size_t>(columns[rank])] = static_cast<Rank>(rank);
  std::vector<std::pair<Rank, double>> row;
  ranked.begins.push_back(0);
  for (std::size_t j = 0; j < static_cast<std::size_t>(rows.rows()); ++j) {
    row.clear();
    for (auto k = static_cast<std::size_t>(rows.offsets[j]);
         k < static_cast<std::size_t>(rows.offsets[j + 1]); ++k) {
      row.emplace_back(rank_of[static_cast<std::size_t>(rows.columns[k])], rows.values[k]);
    }
    std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [rank, value] : row) {
      ranked.items.push_back(rank);
      if (!sets) ranked.values.push_back(value);
    }
    ranked.begins.push_back(static_cast<std::uint32_t>(ranked.items.size()));
  }
  ranked.owner_begins.assign(columns.size() + 1, 0);
  for (const Rank rank : ranked.items) ++ranked.owner_begins[rank + 1];
  for (std::size_t rank = 0; rank < columns.size(); ++rank)
    ranked.owner_begins[rank + 1] += ranked.owner_begins[rank];
  std::vector<std::uint32_t> next(ranked.owner_begins.begin(), ranked.owner_begins.end() - 1);
  ranked.holders.resize(ranked.items.size());
  ranked.places.resize(ranked.items.size());
  for (std::size_t j = 0; j + 1 < ranked.begins.size(); ++j) {
    for (std::uint32_t k = ranked.begins[j]; k < ranked.begins[j + 1]; ++k) {
      const std::uint32_t place = next[ranked.items[k]]++;
      ranked.holders[place] = static_cast<std::uint32_t>(j);
      ranked.places[place] = k;
    }
  }
  return ranked;
}

}  // namespace unkernel::engines
