// ConjunctionTables prepared for scoring: one object per zone, and the mapping from columns to ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "unkernel/engines/conjunctions/conjunction_scratch.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/dense_head.hpp"
#include "unkernel/engines/conjunctions/grouped_core.hpp"
#include "unkernel/engines/conjunctions/posting_zone.hpp"
#include "unkernel/engines/conjunctions/trie_zone.hpp"
#include "unkernel/engines/ranking.hpp"
#include "unkernel/engines/row_ranks.hpp"

namespace unkernel::engines {

// The zones whose keys have 16 or 32 bits.
template <class KeyType>
struct KeyedZones {
  explicit KeyedZones(const ConjunctionTables& tables) : trie(tables), items(tables) {}

  TrieZone<KeyType> trie;
  PostingItems<KeyType> items;
};

struct ScoringZones {
  explicit ScoringZones(const ConjunctionTables& source)
      : tables(source),
        grouped(tables),
        head(tables),
        narrow(tables.levels[0].keys.index() == 0),
        keyed(keyed_zones(tables, narrow)),
        records(tables),
        steps(tables),
        ranking(tables.columns),
        needs_sorting(!is_ordered_by_column(tables)) {}
  ScoringZones(const ScoringZones&) = delete;
  ScoringZones& operator=(const ScoringZones&) = delete;

  std::size_t scores() const { return tables.scores(); }
  std::size_t bytes() const {
    return engines::bytes(tables) + ranking.bytes() + grouped.bytes() + head.bytes() + steps.bytes();
  }

  ConjunctionScratch make_scratch() const {
    ConjunctionScratch scratch;
    const bool all_dense = tables.head == tables.used() && tables.basis == Basis::sets;
    if (!all_dense) scratch.value_of_rank.assign(value_places(), 0.0);
    scratch.rare_overlaps.assign(records.vectors(), 0);
    return scratch;
  }
  // Returns the size of value_of_rank.
  std::size_t value_places() const {
    return narrow ? RankPlaces<std::uint16_t>(tables.used()).size()
                  : RankPlaces<std::uint32_t>(tables.used()).size();
  }

  // Converts a row to ranks. Returns whether it is a row of ones: if so, the ranks are in scratch.binary,
  // otherwise in scratch.valued.
  template <class Index>
  [[gnu::always_inline]] bool load(const SparseRow<Index>& row, ConjunctionScratch& scratch) const {
    if (tables.basis != Basis::sets || (row.values != nullptr && !all_ones(row.values, row.columns.size()))) {
      scratch.valued.load(row, ranking);
      return false;
    }
    if (needs_sorting) {
      scratch.binary.load_sorted(row, ranking, tables.head);
    } else {
      scratch.binary.load(row, ranking, {tables.fused, tables.head});
    }
    return true;
  }

  // Calls body(zones) with the zones for the tables' type of keys.
  template <class Body>
  [[gnu::always_inline]] void with_keys(const Body& body) const {
    if (narrow) {
      body(*std::get_if<KeyedZones<std::uint16_t>>(&keyed));
    } else {
      body(*std::get_if<KeyedZones<std::uint32_t>>(&keyed));
    }
  }

  using AnyKeyedZones = std::variant<KeyedZones<std::uint16_t>, KeyedZones<std::uint32_t>>;

  ConjunctionTables tables;
  GroupedCore grouped;
  DenseHead head;
  bool narrow;  // keys have 16 bits
  AnyKeyedZones keyed;
  PostingRecords records;
  KernelSteps steps;
  Ranking ranking;
  bool needs_sorting;  // head ranks do not ascend with columns, so rows are sorted

 private:
  static AnyKeyedZones keyed_zones(const ConjunctionTables& tables, bool narrow) {
    if (narrow) return KeyedZones<std::uint16_t>(tables);
    return KeyedZones<std::uint32_t>(tables);
  }
};

}  // namespace unkernel::engines
