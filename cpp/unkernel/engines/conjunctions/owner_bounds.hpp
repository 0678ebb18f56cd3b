// What the conjunctions of an owner can add to a score, at most and at least: for those who ask which score
// is the largest, and not how large.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "unkernel/engines/conjunctions/conjunction_tables.hpp"

namespace unkernel::engines {

struct Bounds {
  double low;   // never above 0
  double high;  // never below 0
};

// Of the owners beyond the head, for each score. In the trie: what all conjunctions of one sign add up to. Of
// rare ones: what their vectors do for an overlap of 1, since more only multiplies that by f(c + 1) - f(c).
class OwnerBounds {
 public:
  explicit OwnerBounds(const ConjunctionTables& tables)
      : scores_(tables.scores()), bounds_((tables.used() - tables.head) * scores_, {0.0, 0.0}) {
    const std::size_t trie_owners = tables.rare - tables.head;
    for (std::size_t owner = 0; owner < trie_owners; ++owner) {
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
    for (std::size_t owner = trie_owners; owner < tables.used() - tables.head; ++owner) {
      for (std::size_t p = tables.posting_begins[owner - trie_owners];
           p < tables.posting_begins[owner - trie_owners + 1]; ++p) {
        add(owner, posting_weights(tables, p));
      }
    }
  }

  const Bounds* of(std::size_t owner) const { return bounds_.data() + owner * scores_; }

 private:
  static const double* posting_weights(const ConjunctionTables& tables, std::size_t posting) {
    if (!tables.has_records()) return tables.posting_weights.data() + posting * tables.scores();
    return reinterpret_cast<const double*>(tables.posting_records.data() + posting * tables.record_words() +
                                           tables.bit_words());
  }

  void add(std::size_t owner, const double* weights) {
    for (std::size_t s = 0; s < scores_; ++s) {
      Bounds& bounds = bounds_[owner * scores_ + s];
      bounds.low += std::min(weights[s], 0.0);
      bounds.high += std::max(weights[s], 0.0);
    }
  }

  std::size_t scores_;
  std::vector<Bounds> bounds_;
};

// Whether the sign of the only score, or which of several is the largest, stays as it is when what is left
// lies in these bounds. Rounding is allowed for.
inline bool is_decided(std::span<const double> scores, const Bounds* left) {
  constexpr double slack = 1e-9;
  const auto margin = [&](double by, const Bounds& bounds) {
    return by - slack * (std::abs(by) + bounds.high - bounds.low);
  };
  if (scores.size() == 1) {
    return margin(scores[0] + left[0].low, left[0]) > 0.0 || margin(-scores[0] - left[0].high, left[0]) > 0.0;
  }
  const auto best = static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  for (std::size_t s = 0; s < scores.size(); ++s) {
    if (s == best) continue;
    const Bounds both{left[best].low - left[s].high, left[best].high - left[s].low};
    if (!(margin(scores[best] - scores[s] + both.low, both) -
              slack * (std::abs(scores[best]) + std::abs(scores[s])) >
          0.0))
      return false;
  }
  return true;
}

}  // namespace unkernel::engines
