#include "unkernel/engines/conjunctions/score_rows.hpp"

namespace unkernel::engines {
namespace {

// Writes the row's values to an array indexed by rank.
double* spread_values(const ScoringZones& zones, ConjunctionScratch& scratch) {
  if (scratch.value_of_rank.empty()) scratch.value_of_rank.assign(zones.value_places(), 0.0);
  const ValuedRow& row = scratch.valued;
  double* values = scratch.value_of_rank.data();
  for (std::size_t k = 0; k < row.size(); ++k) values[row.ranks()[k]] = row.values()[k];
  return values;
}

// Adds the weights of sets of features, each times the factor of the row's values.
template <std::size_t Width>
void add_sets(const ScoringZones& zones, const double* values, ConjunctionScratch& scratch,
              Sums<Width>& sums) {
  const ConjunctionTables& tables = zones.tables;
  const ValuedRow& row = scratch.valued;
  zones.with_keys([&](const auto& keyed) {
    for (std::size_t a = 0; a < row.size(); ++a) {
      const Rank owner = row.ranks()[a];
      const double owner_value = row.values()[a];
      if (owner < tables.head) {
        zones.head.add_sets(row, a, sums);
      } else if (owner < tables.rare) {
        keyed.trie.add_owner_sets(owner - tables.head, owner_value, values, sums);
      } else if (!tables.has_records()) {
        keyed.items.add_valued_owner(owner - tables.rare, owner_value, zones.steps, values, sums);
      }
    }
  });
  if (tables.has_records()) zones.records.add_valued_owners(row, zones.steps, values, scratch, sums);
}

// Adds the weights of monomials, in which a feature may occur several times. No feature is rare in this case.
template <std::size_t Width>
void add_monomials(const ScoringZones& zones, const double* values, const ValuedRow& row, Sums<Width>& sums) {
  zones.with_keys([&](const auto& keyed) {
    for (std::size_t a = 0; a < row.size(); ++a) {
      const Rank owner = row.ranks()[a];
      if (owner < zones.tables.head) {
        zones.head.add_monomials(row, a, sums);
      } else {
        keyed.trie.add_owner_monomials(owner - zones.tables.head, row.values()[a], values, sums);
      }
    }
  });
}

template <std::size_t Width>
void score_valued(const ScoringZones& zones, ConjunctionScratch& scratch, double* out) {
  const ValuedRow& row = scratch.valued;
  double* values = spread_values(zones, scratch);
  Sums<Width> sums(zones.scores());
  if (zones.tables.basis == Basis::sets) {
    add_sets(zones, values, scratch, sums);
  } else {
    add_monomials(zones, values, row, sums);
  }
  for (std::size_t k = 0; k < row.size(); ++k) values[row.ranks()[k]] = 0.0;
  sums.add_to(out);
}

}  // namespace

ScoreValued score_valued_for(std::size_t scores) {
  switch (scores) {
    case 1: return score_valued<1>;
    case 2: return score_valued<2>;
    case 3: return score_valued<3>;
    case 4: return score_valued<4>;
    case 6: return score_valued<6>;
    default: return score_valued<0>;
  }
}

}  // namespace unkernel::engines
