// The last zone of ConjunctionTables: rare owners, whose conjunctions are not stored. The postings of an
// owner are the support vectors that contain it. They are lists of items (ranks), or records with one bit per
// common rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "unkernel/engines/conjunctions/conjunction_scratch.hpp"
#include "unkernel/engines/conjunctions/conjunction_tables.hpp"
#include "unkernel/engines/conjunctions/overlap.hpp"
#include "unkernel/engines/conjunctions/sums.hpp"
#include "unkernel/engines/conjunctions/trie_zone.hpp"
#include "unkernel/engines/row_ranks.hpp"

namespace unkernel::engines {

// The kernel f as a function of a product, and its steps f(c + 1) - f(c) for all possible overlaps c.
class KernelSteps {
 public:
  explicit KernelSteps(const ConjunctionTables& tables) : map_(tables.map) {
    if (!tables.has_records() && tables.item_begins.size() < 2) return;
    for (std::size_t c = 0; c <= longest_overlap(tables); ++c) {
      const auto overlap = static_cast<double>(c);
      steps_.push_back(step(overlap, 1.0));
    }
    steps_ascend_ = !steps_.empty() && steps_[0] >= 0.0 && std::is_sorted(steps_.begin(), steps_.end());
  }

  std::size_t bytes() const { return sizeof(double) * steps_.size(); }
  const double* data() const { return steps_.data(); }

  // Returns f(product + by) - f(product).
  double step(double product, double by) const { return value(product + by) - value(product); }

  // Returns an upper bound on the steps at all overlaps up to `overlap`. It is infinite for unusual gamma or
  // coef0, because steps may then be negative or decrease.
  double largest(std::size_t overlap) const {
    return steps_ascend_ ? steps_[std::min(overlap, steps_.size() - 1)]
                         : std::numeric_limits<double>::infinity();
  }

 private:
  static std::size_t longest_overlap(const ConjunctionTables& tables) {
    if (tables.has_records()) return 64 * tables.bit_words() + (tables.used() - tables.rare);
    std::size_t longest = 0;
    for (std::size_t p = 0; p + 1 < tables.item_begins.size(); ++p)
      longest = std::max<std::size_t>(longest, tables.item_begins[p + 1] - tables.item_begins[p]);
    return longest;
  }

  double value(double product) const {
    return FeatureMap::power(map_.gamma * product + map_.coef0, map_.degree);
  }

  FeatureMap map_;
  std::vector<double> steps_;
  bool steps_ascend_ = false;
};

// Postings as lists of items. Owners are numbered from `rare` on. `values` holds the row's value of each
// rank.
template <class KeyType>
class PostingItems {
 public:
  explicit PostingItems(const ConjunctionTables& tables)
      : tables_(tables),
        items_(std::get<std::span<const KeyType>>(tables.items).data()),
        place_(tables.used()) {}

  template <std::size_t Width>
  void add_owner(std::size_t owner, const KernelSteps& steps, const double* values, Sums<Width>& sums) const {
    for (std::uint32_t p = tables_.posting_begins[owner]; p < tables_.posting_begins[owner + 1]; ++p)
      sums.add(weights(p, sums), steps.data()[static_cast<std::size_t>(product(p, values))]);
  }

  // Adds an owner of a row with arbitrary values.
  template <std::size_t Width>
  void add_valued_owner(std::size_t owner, double owner_value, const KernelSteps& steps, const double* values,
                        Sums<Width>& sums) const {
    for (std::uint32_t p = tables_.posting_begins[owner]; p < tables_.posting_begins[owner + 1]; ++p)
      sums.add(weights(p, sums), steps.step(product(p, values), owner_value));
  }

 private:
  template <std::size_t Width>
  const double* weights(std::uint32_t posting, const Sums<Width>& sums) const {
    return tables_.posting_weights.data() + posting * sums.width();
  }
  double product(std::uint32_t posting, const double* values) const {
    const std::uint32_t begin = tables_.item_begins[posting];
    return sum_present<false>(items_ + begin, nullptr, tables_.item_begins[posting + 1] - begin, values,
                              place_);
  }

  const ConjunctionTables& tables_;
  const KeyType* items_;
  RankPlaces<KeyType> place_;
};

// Postings as records: bits of the common ranks, weights, and the number of the support vector. While
// visiting the rare owners of a row in order, counts the rare ranks that each support vector shares with the
// row.
class PostingRecords {
 public:
  explicit PostingRecords(const ConjunctionTables& tables)
      : tables_(tables), stride_(tables.record_words()), vectors_(count_vectors(tables)) {}

  std::size_t vectors() const { return vectors_; }

  // Prefetches the records of the row's rare ranks, which are scattered in memory.
  void prefetch(const BinaryRow& row) const {
    for (std::size_t k = row.tail_size(); k-- > 0 && row.tail()[k] >= tables_.rare;) {
      const auto* first = reinterpret_cast<const char*>(begin(row.tail()[k]));
      const auto* last = reinterpret_cast<const char*>(begin(row.tail()[k] + 1));
      constexpr std::ptrdiff_t most_bytes = 512;  // per owner
      for (const auto* line = first; line < std::min(last, first + most_bytes); line += 64)
        __builtin_prefetch(line);
    }
  }

  // Adds the row's rare owners one by one, until is_done(position) returns true.
  template <std::size_t Width, class IsDone>
  void add_owners(const TailRanks& tail, const KernelSteps& steps, const IsDone& is_done,
                  ConjunctionScratch& scratch, Sums<Width>& sums) const {
    switch (tables_.bit_words()) {
      case 0: return add_owners_of<0>(tail, steps, is_done, scratch, sums);
      case 2: return add_owners_of<2>(tail, steps, is_done, scratch, sums);
      case 4: return add_owners_of<4>(tail, steps, is_done, scratch, sums);
      case 6: return add_owners_of<6>(tail, steps, is_done, scratch, sums);
      default: return add_owners_of<most_bit_words>(tail, steps, is_done, scratch, sums);
    }
  }

  template <std::size_t Width>
  void add_valued_owners(const ValuedRow& row, const KernelSteps& steps, const double* values,
                         ConjunctionScratch& scratch, Sums<Width>& sums) const {
    if (scratch.rare_products.empty()) scratch.rare_products.assign(vectors_, 0.0);
    const auto first = static_cast<std::size_t>(
        std::lower_bound(row.ranks(), row.ranks() + row.size(), tables_.rare) - row.ranks());
    for (std::size_t k = first; k < row.size(); ++k) {
      const double owner_value = row.values()[k];
      for_each(row.ranks()[k], [&](const std::uint64_t* record, std::size_t vector) {
        double product = scratch.rare_products[vector];
        scratch.rare_products[vector] += owner_value;
        for_each_bit(record, tables_.bit_words(), [&](std::size_t rank) { product += values[rank]; });
        sums.add(reinterpret_cast<const double*>(record + tables_.bit_words()),
                 steps.step(product, owner_value));
      });
    }
    for (std::size_t k = first; k < row.size(); ++k) {
      for_each(row.ranks()[k],
               [&](const std::uint64_t*, std::size_t vector) { scratch.rare_products[vector] = 0.0; });
    }
  }

 private:
  static std::size_t count_vectors(const ConjunctionTables& tables) {
    std::size_t count = 0;
    const std::size_t stride = tables.record_words();
    for (std::size_t end = stride; end <= tables.posting_records.size(); end += stride)
      count = std::max<std::size_t>(count, tables.posting_records[end - 1] + 1);
    return count;
  }

  // Returns the first record of a rare rank.
  const std::uint64_t* begin(Rank owner) const {
    return tables_.posting_records.data() + tables_.posting_begins[owner - tables_.rare] * stride_;
  }

  // Calls visit(record, number of the support vector) for the records of a rare rank.
  template <class Visit>
  [[gnu::always_inline]] void for_each(Rank owner, const Visit& visit) const {
    const std::uint64_t* end = begin(owner + 1);
    for (const std::uint64_t* record = begin(owner); record != end; record += stride_)
      visit(record, record[stride_ - 1]);
  }

  template <std::size_t Words, std::size_t Width, class IsDone>
  void add_owners_of(const TailRanks& tail, const KernelSteps& steps, const IsDone& is_done,
                     ConjunctionScratch& scratch, Sums<Width>& sums) const {
    const std::span<const Rank> ranks = tail.ranks;
    std::uint64_t bits[Words + 1] = {};
    for (std::size_t k = 0; k < tail.rare; ++k) bits[ranks[k] / 64] |= std::uint64_t{1} << ranks[k] % 64;
    std::uint16_t* rare_overlaps = scratch.rare_overlaps.data();
    const double* step = steps.data();
    std::size_t end = tail.rare;
    for (; end < ranks.size() && !is_done(end); ++end) {
      Sums<Width> owner_sums(sums.width());
      for_each(ranks[end], [&](const std::uint64_t* record, std::size_t vector) {
        owner_sums.add(reinterpret_cast<const double*>(record + Words),
                       step[count_common_bits<Words>(record, bits) + rare_overlaps[vector]++]);
      });
      owner_sums.add_to(sums);
    }
    for (std::size_t k = tail.rare; k < end; ++k) {
      for_each(ranks[k], [&](const std::uint64_t*, std::size_t vector) { rare_overlaps[vector] = 0; });
    }
  }

  const ConjunctionTables& tables_;
  std::size_t stride_;
  std::size_t vectors_;  // support vectors that have a rare rank
};

}  // namespace unkernel::engines
