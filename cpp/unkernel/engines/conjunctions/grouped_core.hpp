// The grouped part of ConjunctionTables: sums of the conjunctions of the most frequent features, by the
// states of groups.
//
// Query   one hash lookup per group, then one load per conjunction of at most `degree` groups.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "unkernel/base/gather.hpp"
#include "unkernel/base/hash_seed.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/state_index.hpp"
#include "unkernel/engines/conjunctions/sums.hpp"

namespace unkernel::engines {

// The states of a row, by ascending group.
struct RowStates {
  std::size_t count = 0;
  std::uint32_t group[most_groups];
  std::uint32_t state[most_groups];   // number within its group
  std::uint32_t number[most_groups];  // number among all states
};

class GroupedCore {
 public:
  explicit GroupedCore(const ConjunctionTables& tables) : tables_(tables) {
    if (tables.grouped() == 0) return;
    index_ = StateIndex(tables.state_begins, tables.map.degree);
    table_begins_.push_back(0);
    for (std::size_t g = 0; g < index_.groups(); ++g) add_table(g);
  }

  std::size_t bytes() const { return sizeof(slots_[0]) * slots_.size(); }

  // Finds the states from the bits of a row's first ranks. Returns false if a state is not stored.
  [[gnu::always_inline]] bool find(const std::uint64_t* bits, RowStates& states) const {
    states.count = 0;
    for (std::uint32_t g = 0; g < index_.groups(); ++g) {
      const std::uint64_t mask = extract_bits(bits, tables_.group_begins[g], tables_.group_begins[g + 1]);
      if (mask == 0) continue;
      const std::uint32_t state = state_of(g, mask);
      if (state == 0) return false;
      states.group[states.count] = g;
      states.state[states.count] = state - 1;
      states.number[states.count++] = state - 1 + static_cast<std::uint32_t>(index_.first(g));
    }
    return true;
  }

  // Adds the sum over the conjunctions of all grouped features.
  template <std::size_t Width>
  [[gnu::always_inline]] void add(const RowStates& row, Sums<Width>& sums) const {
    switch (tables_.map.degree) {
      case 1: return add_row<1, 1>(row, 0, 0, 0, row.count, sums);
      case 2: return add_row<2, 1>(row, 0, 0, 0, row.count, sums);
      case 3: return add_row<3, 1>(row, 0, 0, 0, row.count, sums);
      default: return add_row<4, 1>(row, 0, 0, 0, row.count, sums);
    }
  }

 private:
  // Returns the bits [begin, end), at most 63.
  static std::uint64_t extract_bits(const std::uint64_t* bits, std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t word = begin / 64, shift = begin % 64;
    std::uint64_t low = bits[word] >> shift;
    if (shift + (end - begin) > 64) low |= bits[word + 1] << (64 - shift);
    return low & ((std::uint64_t{1} << (end - begin)) - 1);
  }

  void add_table(std::size_t g) {
    const std::size_t size = std::bit_ceil(2 * index_.states(g) + 2);
    const std::size_t base = slots_.size();
    slots_.resize(base + size, 0);
    table_begins_.push_back(slots_.size());
    for (std::uint32_t s = 0; s < index_.states(g); ++s) {
      const std::uint64_t mask = tables_.states[index_.first(g) + s];
      std::size_t slot = seeded_hash(mask) & (size - 1);
      for (; slots_[base + slot] != 0; slot = (slot + 1) & (size - 1)) {
        if (tables_.states[index_.first(g) + slots_[base + slot] - 1] == mask)
          throw std::invalid_argument("not a valid table of conjunctions: a state occurs twice");
      }
      slots_[base + slot] = s + 1;
    }
  }

  // Returns the index of the state in its group plus one, or 0 if it is not stored. Hash tables are never
  // full, so the search ends.
  std::uint32_t state_of(std::size_t g, std::uint64_t mask) const {
    const std::size_t base = table_begins_[g];
    const std::size_t last = table_begins_[g + 1] - base - 1;
    const std::uint64_t* masks = tables_.states.data() + index_.first(g);
    for (std::size_t slot = seeded_hash(mask) & last;; slot = (slot + 1) & last) {
      const std::uint32_t state = slots_[base + slot];
      if (state == 0 || masks[state - 1] == mask) return state;
    }
  }

  // Takes a set of `Size` - 1 states, and adds the sums of all sets that extend it by some of the row's first
  // `count` states. The extensions by one state begin at entry `begin`. `path` numbers the groups of the set,
  // and `place` its states, as in StateIndex.
  template <int Degree, int Size, std::size_t Width>
  [[gnu::always_inline]] void add_row(const RowStates& row, std::size_t begin, std::size_t path,
                                      std::size_t place, std::size_t count, Sums<Width>& sums) const {
    const double* entries = tables_.state_sums[Size - 1].data() + begin * sums.width();
    if constexpr (Width == 1) {
      const double sum = gather<true>(entries, row.number, nullptr, count);
      sums.add(&sum);
    } else {
      for (std::size_t k = 0; k < count; ++k) sums.add(entries + row.number[k] * sums.width());
    }
    if constexpr (Size < Degree) {
      for (std::size_t k = 1; k < count; ++k) {
        const std::size_t group = row.group[k];
        const std::size_t longer = path * index_.groups() + group;
        const std::size_t below = place * index_.states(group) + row.state[k];
        add_row<Degree, Size + 1>(row, index_.row(Size, longer, below, group), longer, below, k, sums);
      }
    }
  }

  const ConjunctionTables& tables_;
  StateIndex index_;
  std::vector<std::size_t> table_begins_;  // of each group's hash table
  std::vector<std::uint32_t> slots_;
};

}  // namespace unkernel::engines
