#include "unkernel/poly/conjunction_columns.hpp"

#include <algorithm>

namespace unkernel::poly {

using kernels::Conjunction;
using kernels::Key;
using Place = Occurrences::Place;

// Conjunctions with the same most frequent features follow one another.
std::vector<std::size_t> ConjunctionSearch::writing_order(std::span<const Key> keys) const {
  struct Entry {
    std::array<std::uint64_t, 3> ranks{0, 0, 0};  // the most frequent feature first
    std::size_t number = 0;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> entries;
  for (const Key key : keys) {
    const Conjunction conjunction = index_.decode(key);
    Entry& entry = entries.emplace_back();
    std::reverse_copy(conjunction.ranks, conjunction.ranks + conjunction.size, entry.ranks.begin());
    entry.number = entries.size() - 1;
  }
  std::sort(entries.begin(), entries.end());
  std::vector<std::size_t> order;
  for (const Entry& entry : entries) order.push_back(entry.number);
  return order;
}

std::size_t ConjunctionSearch::most_rows_of(Key key) const {
  const Conjunction conjunction = index_.decode(key);
  if (conjunction.size == 0) return static_cast<std::size_t>(examples_.rows());
  return occurrences_.of(conjunction.ranks[0]).size();
}

bool ConjunctionSearch::ColumnWriter::pays_off(const Holders& holders, std::size_t rank) const {
  constexpr std::size_t max_ratio = 8;
  return holders.rank == rank || search_.occurrences_.of(rank).size() <= max_ratio * places_.size();
}

void ConjunctionSearch::ColumnWriter::list(Holders& holders, std::size_t rank) const {
  if (holders.rank == rank) return;
  const auto mark = [&](std::size_t feature, std::uint8_t flag) {
    for (const Place& place : search_.occurrences_.of(feature))
      holders.contain[static_cast<std::size_t>(place.row)] = flag;
  };
  holders.contain.resize(static_cast<std::size_t>(search_.examples_.rows()), 0);
  if (holders.rank != no_rank) mark(holders.rank, 0);
  mark(rank, 1);
  holders.rank = rank;
}

std::int32_t ConjunctionSearch::ColumnWriter::find(std::size_t rank, const Place& place) const {
  const DistinctRows& examples = search_.examples_;
  const auto sought = static_cast<std::int32_t>(rank);
  const std::int32_t* first =
      examples.features.data() + examples.offsets[static_cast<std::size_t>(place.row)];
  const std::int32_t* last = first + place.position + 1;
  const std::int32_t* feature = std::lower_bound(first, last, sought);
  return feature != last && *feature == sought ? static_cast<std::int32_t>(feature - first) : -1;
}

void ConjunctionSearch::ColumnWriter::keep_rows_with(std::size_t rank, Holders& holders) {
  const bool uses_list = pays_off(holders, rank);
  if (uses_list) list(holders, rank);
  const bool binary = search_.examples_.binary();
  std::size_t kept = 0;
  if (uses_list && binary) {
    for (const Place place : places_) {  // without a branch that depends on the rows
      places_[kept] = place;
      kept += holders.contain[static_cast<std::size_t>(place.row)];
    }
    places_.resize(kept);
    return;
  }
  for (std::size_t k = 0; k < places_.size(); ++k) {
    const Place place = places_[k];
    if (uses_list && holders.contain[static_cast<std::size_t>(place.row)] == 0) continue;
    const std::int32_t position = find(rank, place);
    if (position < 0) continue;
    if (!binary) products_[kept] = products_[k] * search_.value_at({place.row, position});
    places_[kept++] = place;
  }
  places_.resize(kept);
  if (!binary) products_.resize(kept);
}

void ConjunctionSearch::ColumnWriter::append_entries(Key key, solve::SparseColumns& columns) {
  const Conjunction conjunction = search_.index_.decode(key);
  const bool binary = search_.examples_.binary();
  if (conjunction.size == 0) {
    for (std::int64_t i = 0; i < search_.examples_.rows(); ++i) columns.add_one(static_cast<std::int32_t>(i));
    return;
  }
  const auto rarest = search_.occurrences_.of(conjunction.ranks[0]);
  places_.assign(rarest.begin(), rarest.end());
  products_.clear();
  if (!binary) {
    for (const Place& place : places_) products_.push_back(search_.value_at(place));
  }
  for (int k = conjunction.size - 1; k >= 1; --k)
    keep_rows_with(conjunction.ranks[k], holders_[static_cast<std::size_t>(k - 1)]);
  for (std::size_t k = 0; k < places_.size(); ++k) {
    binary ? columns.add_entry(places_[k].row) : columns.add_entry(places_[k].row, products_[k]);
  }
}

}  // namespace unkernel::poly
