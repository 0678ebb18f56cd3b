// The middle zone of ConjunctionTables: owners whose conjunctions are stored in a trie.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "unkernel/base/gather.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/sums.hpp"

namespace unkernel::engines {

// Maps a rank to its index in an array of values by rank, which has `size` entries. Keys come from files
// without a check, so they are masked to keep every index inside the array.
template <class KeyType>
class RankPlaces {
 public:
  explicit RankPlaces(std::size_t used)
      : mask_(sizeof(KeyType) == 2 ? 0xffff : std::bit_ceil(std::max<std::size_t>(used, 1)) - 1) {}

  std::size_t size() const { return mask_ + 1; }
  std::size_t operator()(KeyType key) const {
    if constexpr (sizeof(KeyType) == 2) {
      return key;
    } else {
      return key & mask_;
    }
  }

 private:
  std::size_t mask_;
};

// Returns the sum of values[keys[k]], each times weights[k] if Weighted. Uses four partial sums, because
// additions to a single sum would wait for each other.
template <bool Weighted, class KeyType>
double sum_present(const KeyType* keys, const double* weights, std::size_t count, const double* values,
                   RankPlaces<KeyType> place) {
  return sum_of_terms(count, [&](std::size_t k) {
    const double value = values[place(keys[k])];
    return Weighted ? weights[k] * value : value;
  });
}

// The trie of the owners, which are numbered from the end of the head. `values` is an array by rank, of the
// size of RankPlaces: 1 or the row's value if the row has the rank, otherwise 0.
template <class KeyType>
class TrieZone {
 public:
  explicit TrieZone(const ConjunctionTables& tables)
      : tables_(tables), degree_(tables.map.degree), set_factors_(tables.map), place_(tables.used()) {
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      levels_[k] = {std::get<std::span<const KeyType>>(tables.levels[k].keys).data(),
                    tables.levels[k].weights.data(), tables.levels[k].begins.data()};
    }
  }

  // Adds all conjunctions of an owner with smaller ranks, for a row of ones.
  template <std::size_t Width>
  void add_owner(std::size_t owner, std::span<const Rank> smaller, const double* values,
                 Sums<Width>& sums) const {
    sums.add(tables_.owner_weights.data() + owner * sums.width());
    if (degree_ < 2) return;
    const std::uint32_t begin = tables_.owner_begins[owner];
    const std::uint32_t end = tables_.owner_begins[owner + 1];
    const std::uint32_t slots =
        tables_.probe_begins.empty() ? 0 : tables_.probe_begins[owner + 1] - tables_.probe_begins[owner];
    if (slots == 0) return add_partners<0>(begin, end, values, sums);
    const std::uint32_t* table = tables_.probes.data() + tables_.probe_begins[owner];
    for (const Rank partner : smaller) {
      const std::uint32_t entry = find_partner({table, slots}, begin, end, partner);
      if (entry == end) continue;
      sums.add(levels_[0].weights + entry * sums.width());
      if (degree_ > 2) add_partners<1>(levels_[0].begins[entry], levels_[0].begins[entry + 1], values, sums);
    }
  }

  // Adds the sets of an owner for a row with arbitrary values: each weight times the factor of the set.
  template <std::size_t Width>
  void add_owner_sets(std::size_t owner, double owner_value, const double* values, Sums<Width>& sums) const {
    double set_values[most_degree] = {owner_value};
    sums.add(tables_.owner_weights.data() + owner * sums.width(), set_factors_(set_values, 1));
    if (degree_ > 1)
      add_partner_sets<0>(tables_.owner_begins[owner], tables_.owner_begins[owner + 1], values, set_values,
                          sums);
  }

  // Adds monomials: x_a (w_a + sum_b x_b (w_ab + sum_c x_c w_abc)).
  template <std::size_t Width>
  void add_owner_monomials(std::size_t owner, double owner_value, const double* values,
                           Sums<Width>& sums) const {
    sums.add(tables_.owner_weights.data() + owner * sums.width(), owner_value);
    if (degree_ > 1)
      add_partner_monomials<0>(tables_.owner_begins[owner], tables_.owner_begins[owner + 1], values,
                               owner_value, sums);
  }

 private:
  struct Level {
    const KeyType* keys;
    const double* weights;
    const std::uint32_t* begins;
  };

  // Returns the entry of a partner, looked up in the owner's hash table, or `end` if there is no such
  // partner.
  std::uint32_t find_partner(std::span<const std::uint32_t> table, std::uint32_t begin, std::uint32_t end,
                             Rank partner) const {
    const auto mask = static_cast<std::uint32_t>(table.size() - 1);
    std::uint32_t slot = partner & mask;
    for (std::uint32_t step = 0; step <= mask; ++step) {
      const std::uint32_t place = table[slot];
      if (place == 0 || place > end - begin) return end;
      if (levels_[0].keys[begin + place - 1] == partner) return begin + place - 1;
      slot = (slot + 1) & mask;
    }
    return end;
  }

  // Adds the entries in [begin, end) whose last feature is in the row, and their extensions.
  template <std::size_t Depth, std::size_t Width>
  void add_partners(std::uint32_t begin, std::uint32_t end, const double* values, Sums<Width>& sums) const {
    const Level& entries = levels_[Depth];
    const RankPlaces<KeyType> place = place_;
    if (Depth + 2 == static_cast<std::size_t>(degree_)) {
      if constexpr (Width == 1) {
        const double sum =
            sum_present<true>(entries.keys + begin, entries.weights + begin, end - begin, values, place);
        sums.add(&sum);
      } else {
        for (std::uint32_t e = begin; e < end; ++e) {
          if (values[place(entries.keys[e])] != 0.0) sums.add(entries.weights + e * sums.width());
        }
      }
      return;
    }
    if constexpr (Depth + 2 < most_degree) {
      for (std::uint32_t e = begin; e < end; ++e) {
        if (values[place(entries.keys[e])] == 0.0) continue;
        sums.add(entries.weights + e * sums.width());
        add_partners<Depth + 1>(entries.begins[e], entries.begins[e + 1], values, sums);
      }
    }
  }

  template <std::size_t Depth, std::size_t Width>
  void add_partner_sets(std::uint32_t begin, std::uint32_t end, const double* values, double* set_values,
                        Sums<Width>& sums) const {
    const Level& entries = levels_[Depth];
    const auto size = static_cast<int>(Depth) + 2;
    for (std::uint32_t e = begin; e < end; ++e) {
      const double value = values[place_(entries.keys[e])];
      if (value == 0.0) continue;
      set_values[Depth + 1] = value;
      sums.add(entries.weights + e * sums.width(), set_factors_(set_values, size));
      if constexpr (Depth + 2 < most_degree) {
        if (size < degree_)
          add_partner_sets<Depth + 1>(entries.begins[e], entries.begins[e + 1], values, set_values, sums);
      }
    }
  }

  template <std::size_t Depth, std::size_t Width>
  void add_partner_monomials(std::uint32_t begin, std::uint32_t end, const double* values, double factor,
                             Sums<Width>& sums) const {
    const Level& entries = levels_[Depth];
    const bool is_last = static_cast<int>(Depth) + 2 == degree_;
    for (std::uint32_t e = begin; e < end; ++e) {
      const double value = values[place_(entries.keys[e])];
      if (value == 0.0) continue;
      sums.add(entries.weights + e * sums.width(), factor * value);
      if constexpr (Depth + 2 < most_degree) {
        if (!is_last)
          add_partner_monomials<Depth + 1>(entries.begins[e], entries.begins[e + 1], values, factor * value,
                                           sums);
      }
    }
  }

  const ConjunctionTables& tables_;
  int degree_;
  SetFactors set_factors_;
  RankPlaces<KeyType> place_;
  std::array<Level, most_degree - 1> levels_;
};

}  // namespace unkernel::engines
