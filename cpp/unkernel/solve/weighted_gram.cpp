#include "unkernel/solve/weighted_gram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace unkernel::solve {

void WeightedGram::update(std::span<const std::int32_t> requested, std::span<const double> weights,
                          double slack) {
  places_.resize(columns_.size(), -1);
  std::vector<std::int32_t> new_columns;
  for (const std::int32_t column : requested) {
    if (!has_column(column)) new_columns.push_back(column);
  }
  const std::size_t unrequested = members_.size() + new_columns.size() - requested.size();
  if (2 * new_columns.size() > members_.size() || unrequested > requested.size() / 2 + 64) {
    restart(requested);
    new_columns.clear();
  }
  change_weights(weights, slack);
  if (!new_columns.empty()) extend(new_columns);
}

// Makes the requested columns the only members, with weights of 0.
void WeightedGram::restart(std::span<const std::int32_t> requested) {
  std::fill(places_.begin(), places_.end(), -1);
  members_.assign(requested.begin(), requested.end());
  for (std::size_t m = 0; m < members_.size(); ++m)
    places_[static_cast<std::size_t>(members_[m])] = static_cast<std::int32_t>(m);
  std::fill(weights_.begin(), weights_.end(), 0.0);
  gram_.assign(members_.size() * members_.size(), 0.0);
  list_rows();
}

// Lists the members of each row and their entries.
void WeightedGram::list_rows() {
  offsets_.assign(weights_.size() + 2, 0);
  for (const std::int32_t column : members_) {
    for (const std::int32_t row : columns_.rows(static_cast<std::size_t>(column)))
      ++offsets_[static_cast<std::size_t>(row) + 2];
  }
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  ids_.resize(offsets_.back());
  entries_.resize(offsets_.back());
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const auto column = static_cast<std::size_t>(members_[m]);
    const auto rows = columns_.rows(column);
    const double* values = columns_.values(column);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::size_t place = offsets_[static_cast<std::size_t>(rows[k]) + 1]++;
      ids_[place] = static_cast<std::int32_t>(m);
      entries_[place] = columns_.scale(column) * (values != nullptr ? values[k] : 1.0);
    }
  }
  offsets_.pop_back();
}

// Updates the lower triangle first, then mirrors it.
void WeightedGram::change_weights(std::span<const double> weights, double slack) {
  const std::size_t count = size();
  bool changed = false;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const double change = weights[i] - weights_[i];
    if (std::abs(change) <= slack * weights_[i]) continue;
    changed = true;
    weights_[i] = weights[i];
    const std::int32_t* ids = ids_.data() + offsets_[i];
    const double* entries = entries_.data() + offsets_[i];
    for (std::size_t a = 0; a < offsets_[i + 1] - offsets_[i]; ++a) {
      scatter<false>(gram_.data() + static_cast<std::size_t>(ids[a]) * count, ids, entries, a + 1,
                     change * entries[a]);
    }
  }
  if (!changed) return;
  constexpr std::size_t tile = 32;
  for (std::size_t first = 0; first < count; first += tile) {
    for (std::size_t first_column = 0; first_column <= first; first_column += tile) {
      for (std::size_t m = first; m < std::min(first + tile, count); ++m) {
        for (std::size_t k = first_column; k < std::min(first_column + tile, m); ++k)
          gram_[k * count + m] = gram_[m * count + k];
      }
    }
  }
}

// Adds members, whose products use the current weights.
void WeightedGram::extend(std::span<const std::int32_t> new_columns) {
  const std::size_t old_size = size();
  for (const std::int32_t column : new_columns) {
    places_[static_cast<std::size_t>(column)] = static_cast<std::int32_t>(members_.size());
    members_.push_back(column);
  }
  const std::size_t count = size();
  LargeVector<double> larger_gram(count * count, 0.0);
  for (std::size_t m = 0; m < old_size; ++m) {
    std::copy_n(gram_.data() + m * old_size, old_size, larger_gram.data() + m * count);
  }
  gram_.swap(larger_gram);
  list_rows();
  for (std::size_t m = old_size; m < count; ++m) {
    const auto column = static_cast<std::size_t>(members_[m]);
    const auto rows = columns_.rows(column);
    const double* values = columns_.values(column);
    double* target = gram_.data() + m * count;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto i = static_cast<std::size_t>(rows[k]);
      if (weights_[i] == 0.0) continue;
      const double step = weights_[i] * columns_.scale(column) * (values != nullptr ? values[k] : 1.0);
      scatter<false>(target, ids_.data() + offsets_[i], entries_.data() + offsets_[i],
                     offsets_[i + 1] - offsets_[i], step);
    }
    for (std::size_t earlier = 0; earlier < m; ++earlier) gram_[earlier * count + m] = target[earlier];
  }
}

}  // namespace unkernel::solve
