// The dense zone of ConjunctionTables: conjunctions of the most frequent features.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <vector>

#include "unkernel/base/gather.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/simd_sums.hpp"
#include "unkernel/engines/conjunctions/sums.hpp"
#include "unkernel/engines/row_ranks.hpp"

namespace unkernel::engines {

// The index of an entry in a table.
using Place = std::uint32_t;
static_assert(sizeof(Place) == sizeof(Rank));

// Computes sums[i] += sum_k rows[i][places[k]] for the last `Count` of the four rows. Reads the places only
// once.
template <std::size_t Count>
[[gnu::always_inline]] inline void add_rows(const double* const (&rows)[4], const Place* places,
                                            std::size_t count, double (&sums)[4]) {
  double sum[Count] = {};
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t place = places[k];
    for (std::size_t i = 0; i < Count; ++i) sum[i] += rows[4 - Count + i][place];
  }
  for (std::size_t i = 0; i < Count; ++i) sums[4 - Count + i] += sum[i];
}

// The places of a row's pairs and triples of head ranks among the entries of one owner, which extends them to
// triples and quadruples. The places are the same for all owners: the owner at position a of the row reads
// the first C(a, 2) pairs and C(a, 3) triples, which have smaller ranks only.
struct DenseScratch {
  std::vector<Place> pairs;
  std::vector<Place> triples;
  std::vector<Place> scaled_singles;  // ranks times the number of fused states
  std::vector<Place> scaled_pairs;    // pairs times the number of fused states
};

class DenseHead {
 public:
  explicit DenseHead(const ConjunctionTables& tables)
      : tables_(tables), index_(tables.map.degree, tables.basis), set_factors_(tables.map) {
    for (std::uint64_t rank = 0; rank < tables.head - tables.fused; ++rank) {
      low_blocks_.push_back(static_cast<Place>(index_.low().block(rank) << tables.fused));
      top_blocks_.push_back(static_cast<Place>(index_.top(rank)));
    }
  }

  std::size_t bytes() const { return sizeof(Place) * (low_blocks_.size() + top_blocks_.size()); }

  // --- Rows of ones ---

  // Returns the sum over the head conjunctions of a row, for a single score and for owners from position
  // `first` on.
  [[gnu::always_inline]] double sum(const BinaryRow& row, std::size_t first, DenseScratch& scratch) const {
    const double* low = tables_.head_low.data() + row.state();
    switch (index_.degree()) {
      case 1:
        return low[0] +
               gather<true>(tables_.head_top.data(), row.head() + first, nullptr, row.head_size() - first);
      case 2: return low[0] + owners_sum<2>(low, row.head(), first, row.head_size(), scratch);
      case 3: return low[0] + owners_sum<3>(low, row.head(), first, row.head_size(), scratch);
      default: return low[0] + owners_sum<4>(low, row.head(), first, row.head_size(), scratch);
    }
  }

  // Adds the same sum, for any number of scores.
  template <std::size_t Width>
  void add(const BinaryRow& row, std::size_t first, Sums<Width>& sums) const {
    const std::size_t width = sums.width();
    const std::size_t step = tables_.fused_states() * width;
    const double* low = tables_.head_low.data() + row.state() * width;
    const Rank* f = row.head();
    sums.add(low);
    for (std::size_t a = first; a < row.head_size(); ++a) {
      const double* top = tables_.head_top.data() + top_blocks_[f[a]] * width;
      if (index_.degree() == 1) {
        sums.add(top);
        continue;
      }
      const double* block = low + low_blocks_[f[a]] * width;
      sums.add(block);
      add_row(index_.degree() == 2 ? top : block + step, index_.degree() == 2 ? width : step, f, a, sums);
      if (index_.degree() < 3) continue;
      if (index_.degree() == 3) {
        add_triangle(top, width, f, a, sums);
      } else {
        add_triangle(block + step * index_.low().triples(f[a]), step, f, a, sums);
        for (std::size_t b = 0; b < a; ++b)
          add_triangle(top + index_.low().tetrahedron(f[b]) * width, width, f, b, sums);
      }
    }
  }

  // --- Rows of any values ---

  // Adds all sets of head ranks whose largest rank is at position a of the row.
  template <std::size_t Width>
  void add_sets(const ValuedRow& row, std::size_t a, Sums<Width>& sums) const {
    Rank ranks[most_degree] = {row.ranks()[a]};
    double values[most_degree] = {row.values()[a]};
    add_sets_below<1>(row, a, ranks, values, sums);
  }
  // Adds all monomials of head ranks whose largest rank is at position a; no ranks are fused in this case.
  template <std::size_t Width>
  void add_monomials(const ValuedRow& row, std::size_t a, Sums<Width>& sums) const {
    const Rank* f = row.ranks();
    const double* x = row.values();
    const ConjunctionIndex& low = index_.low();
    const std::size_t width = sums.width();
    const double* top = tables_.head_top.data() + top_blocks_[f[a]] * width;
    if (index_.degree() == 1) return sums.add(top, x[a]);
    const double* block = tables_.head_low.data() + low_blocks_[f[a]] * width;
    sums.add(block, x[a]);
    add_products(index_.degree() == 2 ? top : block + width, f, x, a + 1, x[a], sums);
    if (index_.degree() == 2) return;
    const double* triples = index_.degree() == 3 ? top : block + low.triples(f[a]) * width;
    for (std::size_t b = 0; b <= a; ++b)
      add_products(triples + low.triangle(f[b]) * width, f, x, b + 1, x[a] * x[b], sums);
    if (index_.degree() == 3) return;
    for (std::size_t b = 0; b <= a; ++b) {
      for (std::size_t c = 0; c <= b; ++c) {
        add_products(top + (low.tetrahedron(f[b]) + low.triangle(f[c])) * width, f, x, c + 1,
                     x[a] * x[b] * x[c], sums);
      }
    }
  }

 private:
  // Processes four owners at a time: neighbouring owners read almost the same places.
  template <int Degree>
  [[gnu::always_inline]] double owners_sum(const double* low, const Rank* f, std::size_t first,
                                           std::size_t count, DenseScratch& scratch) const {
    if (first == count) return 0.0;
    if constexpr (Degree > 2) list_places<Degree>(f, count, scratch);
    double sum = 0.0;
    std::size_t a = first;
    for (; a + 4 <= count; a += 4) sum += four_owners<Degree>(low, f, a, scratch);
    for (; a < count; ++a) sum += one_owner<Degree>(low, f, a, scratch);
    return sum;
  }

  template <int Degree>
  [[gnu::always_inline]] void list_places(const Rank* f, std::size_t count, DenseScratch& scratch) const {
    if (scratch.scaled_singles.size() < count + 4) reserve_places(count, scratch);
    Place* pair = scratch.pairs.data();
    for (std::size_t b = 0; b < count; ++b) scratch.scaled_singles[b] = f[b] << tables_.fused;
    for (std::size_t b = 1; b + 1 < count; ++b) {
      const Place row = f[b] * (f[b] - 1) / 2;
      for (std::size_t c = 0; c < b; c += 4) {  // the next row overwrites the places beyond b
        for (std::size_t i = 0; i < 4; ++i) pair[c + i] = row + f[c + i];
      }
      pair += b;
    }
    if constexpr (Degree > 3) {
      for (std::size_t p = 0; p < choose2(count); ++p)
        scratch.scaled_pairs[p] = scratch.pairs[p] << tables_.fused;
      Place* triple = scratch.triples.data();
      for (std::size_t b = 2; b + 1 < count; ++b) {
        const auto row = static_cast<Place>(choose3(f[b]));
        for (std::size_t p = 0; p < choose2(b); ++p) *triple++ = row + scratch.pairs[p];
      }
    }
  }

  void reserve_places(std::size_t count, DenseScratch& scratch) const {
    const std::size_t capacity = count + count / 8 + 4;
    scratch.scaled_singles.resize(capacity);
    scratch.pairs.resize(choose2(capacity) + 4);
    if (index_.degree() < 4) return;
    scratch.scaled_pairs.resize(choose2(capacity) + 4);
    scratch.triples.resize(choose3(capacity));
  }

  template <int Degree>
  [[gnu::always_inline]] double one_owner(const double* low, const Rank* f, std::size_t a,
                                          const DenseScratch& scratch) const {
    const double* block = low + low_blocks_[f[a]];
    const double* top = tables_.head_top.data() + top_blocks_[f[a]];
    if constexpr (Degree == 2) return block[0] + gather<true>(top, f, nullptr, a);
    const double* pairs = block + tables_.fused_states();
    const double sum = block[0] + gather<true>(pairs, scratch.scaled_singles.data(), nullptr, a);
    if constexpr (Degree == 3) return sum + gather<true>(top, scratch.pairs.data(), nullptr, choose2(a));
    const double* triples = pairs + (std::size_t{f[a]} << tables_.fused);
    return sum + gather<true>(triples, scratch.scaled_pairs.data(), nullptr, choose2(a)) +
           gather<true>(top, scratch.triples.data(), nullptr, choose3(a));
  }

  // Adds the owners at positions a to a + 3.
  template <int Degree>
  [[gnu::always_inline]] double four_owners(const double* low, const Rank* f, std::size_t a,
                                            const DenseScratch& scratch) const {
    const double* rows[4];
    const double* top[4];
    double sums[4];
    for (std::size_t i = 0; i < 4; ++i) {
      const double* block = low + low_blocks_[f[a + i]];
      sums[i] = block[0];
      rows[i] = block + tables_.fused_states();
      top[i] = tables_.head_top.data() + top_blocks_[f[a + i]];
    }
    if constexpr (Degree == 2) {
      add_four(top, f, {a, 1, 1, 1}, sums);
    } else {
      add_four(rows, scratch.scaled_singles.data(), {a, 1, 1, 1}, sums);
    }
    if constexpr (Degree == 3) add_four(top, scratch.pairs.data(), {choose2(a), a, a + 1, a + 2}, sums);
    if constexpr (Degree == 4) {
      for (std::size_t i = 0; i < 4; ++i)
        rows[i] += std::size_t{f[a + i]} << tables_.fused;  // the triples begin here
      add_four(rows, scratch.scaled_pairs.data(), {choose2(a), a, a + 1, a + 2}, sums);
      add_four(top, scratch.triples.data(), {choose3(a), choose2(a), choose2(a + 1), choose2(a + 2)}, sums);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  // Adds the entries at the places shared by all four owners, then at those shared by the last three, then by
  // the last two, and finally those of the last owner alone.
  [[gnu::always_inline]] static void add_four(const double* const (&rows)[4], const Place* places,
                                              const std::array<std::size_t, 4>& counts, double (&sums)[4]) {
    add_rows<4>(rows, places, counts[0], sums);
    places += counts[0];
    add_rows<3>(rows, places, counts[1], sums);
    places += counts[1];
    add_rows<2>(rows, places, counts[2], sums);
    places += counts[2];
    add_rows<1>(rows, places, counts[3], sums);
  }

  // Add the entries of the ranks f[0 .. count) from a row whose entries are `step` numbers apart, or from a
  // triangle of such rows.
  template <std::size_t Width>
  static void add_row(const double* row, std::size_t step, const Rank* f, std::size_t count,
                      Sums<Width>& sums) {
    if constexpr (Width == 0 || Width >= 4) {
      add_entries(row, step, {f, count}, sums.all());
    } else {
      for (std::size_t b = 0; b < count; ++b) sums.add(row + f[b] * step);
    }
  }
  template <std::size_t Width>
  static void add_triangle(const double* table, std::size_t step, const Rank* f, std::size_t count,
                           Sums<Width>& sums) {
    for (std::size_t b = 1; b < count; ++b) add_row(table + choose2(f[b]) * step, step, f, b, sums);
  }

  // Adds the weight of one head conjunction U ∪ T. Entries hold sums over fused states, so this weight is an
  // alternating sum of the entries of U over the subsets of T.
  template <std::size_t Width>
  void add_set(const Rank* ranks, const double* values, int size, Sums<Width>& sums) const {
    const double factor = set_factors_(values, size);
    std::uint32_t mask = 0;
    Rank unfused_ranks[most_degree] = {};
    int unfused_count = 0;
    for (int i = 0; i < size; ++i) {
      if (ranks[i] < tables_.fused) {
        mask |= std::uint32_t{1} << ranks[i];
      } else {
        unfused_ranks[unfused_count++] = ranks[i] - tables_.fused;
      }
    }
    if (unfused_count == index_.degree())
      return sums.add(tables_.head_top.data() + index_.top_place(unfused_ranks) * sums.width(), factor);
    const double* states = tables_.head_low.data() +
                           (index_.low_key(unfused_ranks, unfused_count) << tables_.fused) * sums.width();
    for (std::uint32_t subset = mask;; subset = (subset - 1) & mask) {
      sums.add(states + subset * sums.width(), std::popcount(mask ^ subset) % 2 == 0 ? factor : -factor);
      if (subset == 0) break;
    }
  }

  template <int Size, std::size_t Width>
  void add_sets_below(const ValuedRow& row, std::size_t end, Rank* ranks, double* values,
                      Sums<Width>& sums) const {
    add_set(ranks, values, Size, sums);
    if constexpr (Size < most_degree) {
      if (Size == index_.degree()) return;
      for (std::size_t k = 0; k < end; ++k) {
        ranks[Size] = row.ranks()[k];
        values[Size] = row.values()[k];
        add_sets_below<Size + 1>(row, k, ranks, values, sums);
      }
    }
  }

  // Adds `factor` times the sum of x[k] table[f[k]] over k.
  template <std::size_t Width>
  static void add_products(const double* table, const Rank* f, const double* x, std::size_t count,
                           double factor, Sums<Width>& sums) {
    if constexpr (Width == 1) {
      const double sum = gather<false>(table, f, x, count);
      sums.add(&sum, factor);
    } else {
      for (std::size_t k = 0; k < count; ++k) sums.add(table + f[k] * sums.width(), factor * x[k]);
    }
  }

  const ConjunctionTables& tables_;
  HeadIndex index_;
  SetFactors set_factors_;
  // By head rank that is not fused: where its entries begin in head_low (in states) and in head_top.
  std::vector<Place> low_blocks_;
  std::vector<Place> top_blocks_;
};

}  // namespace unkernel::engines
