// Bounds the sums that the conjunctions of one owner can add to a score, from the tables of an engine.
#pragma once

#include <cstddef>
#include <vector>

#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/remaining_bounds.hpp"

namespace unkernel::engines {

// Bounds of the owners beyond the head, per score. An owner in the trie adds at most the sum of all its
// weights of one sign. A rare owner adds at most the sum of the coefficients of its support vectors, times
// the largest step f(c + 1) - f(c) for the possible overlaps c with the row.
class OwnerBounds {
 public:
  explicit OwnerBounds(const ConjunctionTables& tables)
      : scores_(tables.scores()), bounds_((tables.used() - tables.head) * scores_) {
    const std::size_t trie_owners = tables.rare - tables.head;
    for (std::size_t owner = 0; owner < trie_owners; ++owner) add_trie_owner(tables, owner);
    for (std::size_t owner = trie_owners; owner < tables.used() - tables.head; ++owner) {
      for (std::size_t p = tables.posting_begins[owner - trie_owners];
           p < tables.posting_begins[owner - trie_owners + 1]; ++p) {
        add(owner, posting_weights(tables, p));
      }
    }
  }

  // Returns the bounds of an owner, one per score.
  const Bounds<double>* of(std::size_t owner) const { return bounds_.data() + owner * scores_; }

 private:
  void add_trie_owner(const ConjunctionTables& tables, std::size_t owner) {
    add(owner, tables.owner_weights.data() + owner * scores_);
    std::size_t begin = owner, end = owner + 1;
    for (int level = 0; level + 2 <= tables.map.degree; ++level) {
      const auto begins =
          level == 0 ? tables.owner_begins : tables.levels[static_cast<std::size_t>(level) - 1].begins;
      begin = begins[begin];
      end = begins[end];
      const double* weights = tables.levels[static_cast<std::size_t>(level)].weights.data();
      for (std::size_t e = begin; e < end; ++e) add(owner, weights + e * scores_);
    }
  }

  static const double* posting_weights(const ConjunctionTables& tables, std::size_t posting) {
    if (!tables.has_records()) return tables.posting_weights.data() + posting * tables.scores();
    return reinterpret_cast<const double*>(tables.posting_records.data() + posting * tables.record_words() +
                                           tables.bit_words());
  }

  void add(std::size_t owner, const double* weights) {
    for (std::size_t s = 0; s < scores_; ++s) bounds_[owner * scores_ + s].add(weights[s]);
  }

  std::size_t scores_;
  std::vector<Bounds<double>> bounds_;
};

}  // namespace unkernel::engines
