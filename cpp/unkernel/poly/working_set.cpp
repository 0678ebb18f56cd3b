#include "unkernel/poly/working_set.hpp"

#include <algorithm>

#include "unkernel/base/error.hpp"
#include "unkernel/base/parallel.hpp"
#include "unkernel/base/random.hpp"

namespace unkernel::poly {

using kernels::Key;

std::size_t WorkingSet::add(Key key) {
  if (const std::uint32_t* place = places_.find(key)) return *place;
  writer_.append(key, columns_);
  return keep_last_column(key);
}

void WorkingSet::add_new(std::span<const Key> keys, int threads) { add_columns(keys, {}, threads); }

void WorkingSet::add_occurring(std::span<const Key> keys, std::span<const std::int32_t> anchors,
                               int threads) {
  add_columns(keys, anchors, threads);
}

// Without anchors, adds columns without entries, too.
void WorkingSet::add_columns(std::span<const Key> keys, std::span<const std::int32_t> anchors, int threads) {
  std::vector<ColumnWriter> writers(static_cast<std::size_t>(std::max(threads, 1)), ColumnWriter(search_));
  while (!keys.empty()) {
    const std::size_t size = batch_size(keys);
    add_batch(keys.first(size), anchors.first(anchors.empty() ? 0 : size), writers);
    keys = keys.subspan(size);
    if (!anchors.empty()) anchors = anchors.subspan(size);
  }
}

// Returns how many of the first keys to write at once. Batches are small, because the memory of `columns_` is
// checked only after their columns are written.
std::size_t WorkingSet::batch_size(std::span<const Key> keys) const {
  constexpr std::size_t max_keys = 2048;
  constexpr std::size_t max_entries = std::size_t{1} << 26;
  std::size_t size = 0;
  std::size_t entries = 0;
  do {
    entries += search_.most_rows_of(keys[size++]);
  } while (size < std::min(keys.size(), max_keys) && entries < max_entries);
  return size;
}

void WorkingSet::add_batch(std::span<const Key> keys, std::span<const std::int32_t> anchors,
                           std::span<ColumnWriter> writers) {
  constexpr std::size_t keys_per_task = 64;
  const auto anchor_of = [&](std::size_t k) { return anchors.empty() ? no_anchor : anchors[k]; };
  const std::vector<std::size_t> order = search_.writing_order(keys);
  const std::size_t tasks = (keys.size() + keys_per_task - 1) / keys_per_task;
  std::vector<solve::SparseColumns> parts(tasks, solve::SparseColumns(columns_.uniform()));
  parallel_slots(static_cast<int>(writers.size()), static_cast<std::int64_t>(tasks),
                 [&](std::size_t slot, std::int64_t task) {
                   const std::size_t begin = static_cast<std::size_t>(task) * keys_per_task;
                   solve::SparseColumns& part = parts[static_cast<std::size_t>(task)];
                   for (std::size_t k = begin; k < std::min(begin + keys_per_task, keys.size()); ++k) {
                     writers[slot].append_entries(keys[order[k]], part);
                     if (anchor_of(order[k]) != no_anchor) part.add_one(anchor_of(order[k]));
                     part.finish(search_.constant_of(keys[order[k]]));
                   }
                 });
  std::vector<std::size_t> places(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) places[order[k]] = k;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const solve::SparseColumns& part = parts[places[k] / keys_per_task];
    const std::size_t column = places[k] % keys_per_task;
    const std::size_t own_entries = part.rows(column).size() - (anchor_of(k) != no_anchor ? 1 : 0);
    if (!anchors.empty() && (own_entries == 0 || part.scale(column) == 0.0)) continue;
    columns_.append(part, column);
    keep_last_column(keys[k]);
  }
}

// Takes the last column into use, unless an equal column already is, and returns its place.
std::size_t WorkingSet::keep_last_column(Key key) {
  const auto place = static_cast<std::uint32_t>(keys_.size());
  if (shares_columns_) {
    if (const auto equal = find_equal_column()) {
      columns_.drop_last();
      return places_[key] = *equal;
    }
  }
  if (memory_ > 0.0 && columns_.bytes() > memory_) {
    throw NotEnoughMemory(
        "the columns of a sparse model do not fit into the memory available; lower C, or drop rare "
        "features");
  }
  keys_.push_back(key);
  places_[key] = place;
  return place;
}

// Returns an earlier column that has the same rows as the last column, and at least its scale. If there is
// none, records the last column, so that later calls find it.
std::optional<std::uint32_t> WorkingSet::find_equal_column() {
  const std::size_t last = columns_.size() - 1;
  const auto rows = columns_.rows(last);
  std::uint64_t hash = 0;
  for (const std::int32_t row : rows) hash += Random::mix(static_cast<std::uint64_t>(row));
  // A new hash gets 0, so the last column is compared with column 0.
  std::uint32_t& place = column_by_rows_[hash >> 1];
  if (place < last && columns_.scale(place) >= columns_.scale(last) &&
      std::ranges::equal(rows, columns_.rows(place))) {
    return place;
  }
  place = static_cast<std::uint32_t>(last);
  return std::nullopt;
}

}  // namespace unkernel::poly
