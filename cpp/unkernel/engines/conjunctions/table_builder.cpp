#include "unkernel/engines/conjunctions/table_builder.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

#include "unkernel/engines/conjunctions/state_sums.hpp"

namespace unkernel::engines {
namespace {

// With this many partners or more, it is faster to look up each feature of a row than to scan the partners.
constexpr std::uint32_t min_probed_partners = 24;

// Moves the entries of `from` to the end of `to`, and adds `shift` to each.
template <class T>
void append(LargeVector<T>& to, LargeVector<T>& from, T shift = T{}) {
  const std::size_t begin = to.size();
  to.insert(to.end(), from.begin(), from.end());
  for (std::size_t i = begin; shift != T{} && i < to.size(); ++i) to[i] += shift;
  from = {};
}

void check_entry_count(std::size_t entries) {
  if (entries > most_entries) {
    throw std::length_error(
        "the model has more conjunctions than tables can hold: raise `rare` or `threshold`, or lower "
        "`memory`");
  }
}

void narrow(Keys<Owned>& keys) {
  const auto& wide_keys = std::get<LargeVector<std::uint32_t>>(keys);
  LargeVector<std::uint16_t> narrow_keys(wide_keys.size());
  std::transform(wide_keys.begin(), wide_keys.end(), narrow_keys.begin(),
                 [](std::uint32_t key) { return static_cast<std::uint16_t>(key); });
  keys = std::move(narrow_keys);
}

// Copies the weights of all sets of grouped ranks that extend the first `Size` - 1 entries of `ranks` by one
// or more ranks below `end`.
template <int Size>
void copy_sets(const HeadIndex& index, const ConjunctionArrays& arrays, Rank (&ranks)[most_degree], Rank end,
               SetWeights& weights) {
  const std::size_t scores = arrays.scores();
  for (Rank rank = 0; rank < end; ++rank) {
    ranks[Size - 1] = rank;
    const double* from = Size == index.degree()
                             ? arrays.head_top.data() + index.top_place(ranks) * scores
                             : arrays.head_low.data() + index.low_key(ranks, Size) * scores;
    std::copy_n(from, scores, weights.of(ranks, Size));
    if constexpr (Size < most_degree) {
      if (Size < index.degree()) copy_sets<Size + 1>(index, arrays, ranks, rank, weights);
    }
  }
}

void make_probes(ConjunctionArrays& arrays) {
  const auto& keys = std::get<LargeVector<std::uint32_t>>(arrays.levels[0].keys);
  const std::size_t owners = arrays.rare - arrays.head;
  arrays.probe_begins.assign(owners + 1, 0);
  for (std::size_t owner = 0; owner < owners; ++owner) {
    const std::uint32_t begin = arrays.owner_begins[owner];
    const std::uint32_t partners = arrays.owner_begins[owner + 1] - begin;
    if (partners >= min_probed_partners) {
      const std::uint32_t slots = std::bit_ceil(2 * partners);
      const std::size_t base = arrays.probes.size();
      arrays.probes.resize(base + slots, 0);
      for (std::uint32_t i = 0; i < partners; ++i) {
        std::uint32_t slot = keys[begin + i] & (slots - 1);
        while (arrays.probes[base + slot] != 0) slot = (slot + 1) & (slots - 1);
        arrays.probes[base + slot] = i + 1;
      }
      check_entry_count(arrays.probes.size());
    }
    arrays.probe_begins[owner + 1] = static_cast<std::uint32_t>(arrays.probes.size());
  }
}

}  // namespace

Zones choose_zones(std::span<const std::uint32_t> frequencies, HeadPlan head, std::uint32_t rare_below) {
  Zones zones;
  for (std::size_t column = 0; column < frequencies.size(); ++column) {
    if (frequencies[column] > 0) zones.columns.push_back(static_cast<std::int64_t>(column));
  }
  const auto frequency = [&](std::int64_t column) { return frequencies[static_cast<std::size_t>(column)]; };
  std::stable_sort(zones.columns.begin(), zones.columns.end(),
                   [&](std::int64_t a, std::int64_t b) { return frequency(a) > frequency(b); });
  const auto end_of_common =
      std::partition_point(zones.columns.begin(), zones.columns.end(),
                           [&](std::int64_t column) { return frequency(column) >= rare_below; });
  zones.rare = static_cast<std::uint32_t>(end_of_common - zones.columns.begin());
  zones.head = static_cast<std::uint32_t>(std::min<std::uint64_t>(head.ranks, zones.rare));
  zones.fused = std::min(head.fused, zones.head);
  if (head.by_frequency) {
    zones.head = std::min(zones.head, most_sorted_head);
    zones.fused = 0;
    return zones;
  }
  std::sort(zones.columns.begin() + zones.fused, zones.columns.begin() + zones.head);
  return zones;
}

void group_zones(Zones& zones, std::span<const std::uint32_t> frequencies,
                 const data::CsrView<std::int32_t, double>& rows, const GroupPlan& plan, int degree) {
  const GroupPlan limited{std::min({plan.features, zones.head, most_sorted_head}), plan.most_sums};
  if (limited.features == 0 || zones.fused > 0 || zones.head > most_sorted_head) return;
  std::vector<std::int64_t> head(zones.columns.begin(), zones.columns.begin() + zones.head);
  std::stable_sort(head.begin(), head.end(), [&](std::int64_t a, std::int64_t b) {
    return frequencies[static_cast<std::size_t>(a)] > frequencies[static_cast<std::size_t>(b)];
  });
  zones.groups = group_rows(rows, Ranking(head), limited, degree);
  if (zones.groups.order.empty()) return;
  for (std::size_t rank = 0; rank < zones.head; ++rank) {
    zones.columns[rank] = head[rank < limited.features ? zones.groups.order[rank] : rank];
  }
}

FeatureGroups group_rows(const data::CsrView<std::int32_t, double>& rows, const Ranking& ranking,
                         const GroupPlan& plan, int degree) {
  if (plan.features == 0) return {};
  std::vector<std::uint32_t> begins{0}, items;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows.rows()); ++row) {
    for (auto k = static_cast<std::size_t>(rows.offsets[row]);
         k < static_cast<std::size_t>(rows.offsets[row + 1]); ++k) {
      const Rank rank = ranking.of(rows.columns[k]);
      if (rank < plan.features) items.push_back(rank);
    }
    std::sort(items.begin() + begins.back(), items.end());
    begins.push_back(static_cast<std::uint32_t>(items.size()));
  }
  return group_features({begins, items},
                        {plan.features, std::min(plan.most_sums, static_cast<double>(most_entries))}, degree);
}

void sum_states(FeatureGroups&& groups, int threads, ConjunctionArrays& arrays) {
  if (groups.order.empty()) return;
  arrays.group_begins.assign(groups.begins.begin(), groups.begins.end());
  arrays.state_begins.assign(groups.state_begins.begin(), groups.state_begins.end());
  arrays.states.assign(groups.states.begin(), groups.states.end());
  SetWeights weights(arrays.grouped(), arrays.map.degree, arrays.scores());
  Rank ranks[most_degree];
  copy_sets<1>(HeadIndex(arrays.map.degree, arrays.basis), arrays, ranks, arrays.grouped(), weights);
  fill_state_sums(weights, threads, arrays);
}

std::uint64_t head_within(double bytes, const HeadIndex& index, std::uint32_t fused, std::size_t scores,
                          std::uint64_t used) {
  const auto fits = [&](std::uint64_t ranks) {
    return ranks <= index.most_ranks() && index.count(ranks, fused) < most_entries &&
           8.0 * static_cast<double>(scores) * static_cast<double>(index.count(ranks, fused)) <= bytes;
  };
  std::uint64_t low = 0, high = (used > fused ? used - fused : 0) + 1;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low + fused;
}

void sum_over_subsets(double* states, std::uint32_t fused, std::size_t scores) {
  for (std::uint32_t bit = 0; bit < fused; ++bit) {
    for (std::size_t state = 0; state < std::size_t{1} << fused; ++state) {
      if ((state >> bit & 1) == 0) continue;
      const double* without = states + (state ^ std::size_t{1} << bit) * scores;
      for (std::size_t s = 0; s < scores; ++s) states[state * scores + s] += without[s];
    }
  }
}

void TrieWriter::open_owner(Rank owner) {
  // Owners without conjunctions need an entry, too.
  for (; next_owner_ <= owner; ++next_owner_) {
    owner_begins_.push_back(static_cast<std::uint32_t>(levels_[0].keys.size()));
    owner_weights_.insert(owner_weights_.end(), scores_, 0.0);
  }
  path_[0] = owner;
  path_size_ = 1;
}

void TrieWriter::open(std::size_t depth, Rank key) {
  Level& level = levels_[depth - 1];
  level.keys.push_back(key);
  level.weights.insert(level.weights.end(), scores_, 0.0);
  if (depth < levels_.size()) level.begins.push_back(static_cast<std::uint32_t>(levels_[depth].keys.size()));
  path_[depth] = key;
  path_size_ = depth + 1;
  constexpr std::size_t entries_between_checks = 1 << 20;
  if (level.keys.size() % entries_between_checks == 0) check_entry_count(level.keys.size());
}

void TrieWriter::add(const Rank* ranks, std::size_t size, const double* weights) {
  if (path_size_ == 0 || path_[0] != ranks[0]) open_owner(ranks[0]);
  std::size_t shared_size = 1;
  while (shared_size < size && shared_size < path_size_ && path_[shared_size] == ranks[shared_size])
    ++shared_size;
  path_size_ = shared_size;
  for (std::size_t depth = shared_size; depth < size; ++depth) open(depth, ranks[depth]);
  double* place = size == 1 ? owner_weights_.data() + owner_weights_.size() - scores_
                            : levels_[size - 2].weights.data() + levels_[size - 2].weights.size() - scores_;
  std::copy_n(weights, scores_, place);
}

std::size_t TrieWriter::bytes() const {
  std::size_t total = 8 * owner_weights_.size() + 4 * owner_begins_.size();
  for (const Level& level : levels_)
    total += 4 * level.keys.size() + 8 * level.weights.size() + 4 * level.begins.size();
  return total;
}

void TrieWriter::join(std::span<TrieWriter> writers, ConjunctionArrays& arrays) {
  const std::size_t scores = arrays.scores();
  arrays.owner_weights.clear();
  arrays.owner_begins.clear();
  std::array<Level, most_degree - 1> joined;
  for (std::size_t k = 0; k < joined.size(); ++k) {
    std::size_t entries = 0;
    for (const TrieWriter& writer : writers) entries += writer.levels_[k].keys.size();
    check_entry_count(entries);
    joined[k].keys.reserve(entries);
    joined[k].weights.reserve(entries * scores);
    if (k + 1 < joined.size()) joined[k].begins.reserve(entries + 1);
  }
  for (std::size_t w = 0; w < writers.size(); ++w) {
    TrieWriter& writer = writers[w];
    arrays.owner_weights.insert(arrays.owner_weights.end(), writer.owner_weights_.begin(),
                                writer.owner_weights_.end());
    const auto shift = static_cast<std::uint32_t>(joined[0].keys.size());
    for (const std::uint32_t begin : writer.owner_begins_) arrays.owner_begins.push_back(begin + shift);
    // Fill in owners without conjunctions, up to the first owner of the next writer.
    const std::uint32_t end_of_owners = w + 1 < writers.size() ? writers[w + 1].first_owner_ : arrays.rare;
    const std::size_t missing = end_of_owners - arrays.head - arrays.owner_begins.size();
    arrays.owner_begins.insert(arrays.owner_begins.end(), missing,
                               shift + static_cast<std::uint32_t>(writer.levels_[0].keys.size()));
    arrays.owner_weights.insert(arrays.owner_weights.end(), missing * scores, 0.0);
    for (std::size_t k = 0; k + 1 < joined.size(); ++k) {
      append(joined[k].begins, writer.levels_[k].begins,
             static_cast<std::uint32_t>(joined[k + 1].keys.size()));
    }
    for (std::size_t k = 0; k < joined.size(); ++k) {
      append(joined[k].keys, writer.levels_[k].keys);
      append(joined[k].weights, writer.levels_[k].weights);
      writer.levels_[k] = {};  // otherwise memory would hold the tables twice at the end
    }
  }
  arrays.owner_begins.push_back(static_cast<std::uint32_t>(joined[0].keys.size()));
  for (std::size_t k = 0; k < joined.size(); ++k) {
    if (static_cast<int>(k) + 2 < arrays.map.degree) {
      joined[k].begins.push_back(static_cast<std::uint32_t>(joined[k + 1].keys.size()));
    } else {
      joined[k].begins = {};
    }
    arrays.levels[k] = {std::move(joined[k].keys), std::move(joined[k].weights), std::move(joined[k].begins)};
  }
}

void finish(ConjunctionArrays& arrays) {
  if (arrays.item_begins.empty()) arrays.item_begins.push_back(0);
  if (arrays.posting_begins.empty()) arrays.posting_begins.assign(arrays.used() - arrays.rare + 1, 0);
  make_probes(arrays);
  if (arrays.used() > std::size_t{1} << 16) return;
  for (auto& level : arrays.levels) narrow(level.keys);
  narrow(arrays.items);
}

}  // namespace unkernel::engines
