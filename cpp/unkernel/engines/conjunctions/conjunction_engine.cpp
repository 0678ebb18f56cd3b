#include "unkernel/engines/conjunctions/conjunction_engine.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "unkernel/engines/conjunctions/dense_head.hpp"
#include "unkernel/engines/conjunctions/grouped_core.hpp"
#include "unkernel/engines/conjunctions/overlap.hpp"
#include "unkernel/engines/conjunctions/owner_bounds.hpp"
#include "unkernel/engines/conjunctions/prefix_sums.hpp"
#include "unkernel/engines/conjunctions/sums.hpp"
#include "unkernel/engines/row_ranks.hpp"

namespace unkernel::engines {
namespace {

struct ConjunctionScratch {
  BinaryRow binary;
  ValuedRow valued;
  std::vector<double> value_of_rank;  // of the row, 0 elsewhere
  std::vector<Rank> all;              // the row's ranks, ascending, where it has a tail
  std::vector<std::uint16_t>
      rare_met;  // of each support vector: how many of the row's rare ranks it was met at
  std::vector<double> rare_products;  // the same for rows of any values
  DenseScratch dense;
  std::shared_ptr<const PrefixTrie> trie;  // as it was when the rows came
  const OwnerBounds* bounds = nullptr;     // where only decisions are wanted
  std::vector<Bounds> left;                // what the owners from each position of the tail on can add
  std::vector<double> so_far;
};

template <class KeyType>
class EngineOfKeys final : public EngineOf<EngineOfKeys<KeyType>, ConjunctionScratch, ConjunctionEngine> {
 public:
  explicit EngineOfKeys(const ConjunctionTables& tables)
      : tables_(tables),
        degree_(tables.map.degree),
        core_(tables_),
        head_(tables_),
        set_factors_(tables.map),
        ranking_(tables.columns) {
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      levels_[k] = {std::get<std::span<const KeyType>>(tables.levels[k].keys).data(),
                    tables.levels[k].weights.data(), tables.levels[k].begins.data()};
    }
    items_ = std::get<std::span<const KeyType>>(tables.items).data();
    measure_postings();
    sorted_ = !goes_by_column(tables);
    for (std::size_t end = tables.record_words(); end <= tables.posting_records.size();
         end += tables.record_words()) {
      vectors_ = std::max<std::size_t>(vectors_, tables.posting_records[end - 1] + 1);
    }
  }

  std::size_t scores() const override { return tables_.scores(); }
  std::size_t bytes() const override {
    return engines::bytes(tables_) + ranking_.bytes() + core_.bytes() + head_.bytes() + 8 * steps_.size() +
           (trie() ? trie()->bytes() : 0);
  }

  ConjunctionScratch make_scratch() const {
    ConjunctionScratch scratch;
    const bool all_dense = tables_.head == tables_.used() && tables_.basis == Basis::sets;
    if (!all_dense) scratch.value_of_rank.assign(rank_mask() + 1, 0.0);
    scratch.rare_met.assign(vectors_, 0);
    return scratch;
  }

  template <class Index>
  void score_row(const SparseRow<Index>& row, ConjunctionScratch& scratch, double* out) const {
    take_trie(scratch);
    with_width([&]<std::size_t Width>() { score_as<Width>(row, scratch, out); });
  }

  template <class Index>
  void score_range(const RowRange<Index>& range, ConjunctionScratch& scratch, double* out) const {
    take_trie(scratch);
    with_width([&]<std::size_t Width>() {
      for (std::size_t row = range.first; row < range.last; ++row, out += scores())
        score_as<Width>(range[row], scratch, out);
    });
  }

  void score_until_decided(const SparseRow<std::int32_t>& row, Worker& worker, double* out) const override {
    this->with_scratch(row, worker, [&](const auto& in_order, ConjunctionScratch& scratch) {
      scratch.bounds = &bounds();
      score_row(in_order, scratch, out);
      scratch.bounds = nullptr;
    });
  }
  void score_until_decided(const data::CsrView<std::int32_t, double>& rows, std::span<double> out,
                           int threads) const override {
    this->score_all(rows, out, threads, [&](ConjunctionScratch& scratch) { scratch.bounds = &bounds(); });
  }
  void score_until_decided(const data::CsrView<std::int64_t, double>& rows, std::span<double> out,
                           int threads) const override {
    this->score_all(rows, out, threads, [&](ConjunctionScratch& scratch) { scratch.bounds = &bounds(); });
  }

  // --- The prefix trie -----------------------------------------------------------------------------

  std::shared_ptr<const PrefixTrie> trie() const override { return trie_.load(); }

  void set_trie(std::shared_ptr<const PrefixTrie> trie) override {
    if (trie != nullptr) {
      refuse_without_order();
      check(*trie, scores(), tables_.rare);
    }
    const bool there = trie != nullptr;
    trie_.store(std::move(trie));
    has_trie_.store(there, std::memory_order_release);
  }

  PrefixTrie grown(const PrefixTrie* old, const data::CsrView<std::int32_t, double>& rows,
                   std::size_t most_nodes, Saving saving, int threads, Monitor& monitor) const override {
    refuse_without_order();
    PrefixTrie trie = grow_trie(old, sequences(rows), most_nodes, cost_of(saving));
    fill_sums(old, threads, monitor, trie);
    return trie;
  }

  PrefixTrie pruned(const PrefixTrie& old, std::size_t most_nodes, Saving saving) const override {
    PrefixTrie trie = prune_trie(old, most_nodes, cost_of(saving));
    Monitor monitor;
    fill_sums(&old, 1, monitor, trie);
    return trie;
  }

 private:
  struct Level {
    const KeyType* keys;
    const double* weights;
    const std::uint32_t* begins;
  };

  // As it is now.
  void take_trie(ConjunctionScratch& scratch) const {
    if (has_trie_.load(std::memory_order_acquire)) {
      scratch.trie = trie();
    } else if (scratch.trie != nullptr) {
      scratch.trie.reset();
    }
  }

  // Beginnings of rows are sequences of ranks, which those of fused or grouped features are not.
  void refuse_without_order() const {
    if (tables_.basis != Basis::sets || tables_.fused > 0 || tables_.grouped() > 0) {
      throw std::invalid_argument("a prefix trie needs binary features of which none are fused or grouped");
    }
  }

  template <class Body>
  void with_width(const Body& body) const {
    switch (scores()) {
      case 1: return body.template operator()<1>();
      case 2: return body.template operator()<2>();
      case 3: return body.template operator()<3>();
      case 4: return body.template operator()<4>();
      case 6: return body.template operator()<6>();
      default: return body.template operator()<0>();
    }
  }

  // Any key that a file can hold leads into value_of_rank.
  std::size_t rank_mask() const {
    return sizeof(KeyType) == 2 ? 0xffff : std::bit_ceil(std::max<std::size_t>(tables_.used(), 1)) - 1;
  }
  static std::size_t place(KeyType key, [[maybe_unused]] std::size_t mask) {
    if constexpr (sizeof(KeyType) == 2) {
      return key;
    } else {
      return key & mask;
    }
  }

  // f(c + 1) - f(c) for all overlaps that can come.
  void measure_postings() {
    std::size_t longest = 64 * tables_.bit_words() + (tables_.used() - tables_.rare);
    if (!tables_.has_records()) {
      longest = 0;
      for (std::size_t p = 0; p + 1 < tables_.item_begins.size(); ++p) {
        longest = std::max<std::size_t>(longest, tables_.item_begins[p + 1] - tables_.item_begins[p]);
      }
      if (tables_.item_begins.size() < 2) return;
    }
    for (std::size_t c = 0; c <= longest; ++c) {
      const auto overlap = static_cast<double>(c);
      steps_.push_back(kernel_of(overlap + 1.0) - kernel_of(overlap));
    }
    steps_rise_ = !steps_.empty() && steps_[0] >= 0.0 && std::is_sorted(steps_.begin(), steps_.end());
  }
  double kernel_of(double product) const {
    return FeatureMap::power(tables_.map.gamma * product + tables_.map.coef0, tables_.map.degree);
  }

  template <std::size_t Width, class Index>
  void score_as(const SparseRow<Index>& row, ConjunctionScratch& scratch, double* out) const {
    std::copy(tables_.constants.begin(), tables_.constants.end(), out);
    Sums<Width> sums(scores());
    if (tables_.basis == Basis::sets && (row.values == nullptr || all_ones(row.values, row.columns.size()))) {
      if (sorted_) {
        scratch.binary.load_sorted(row, ranking_, tables_.head);
      } else {
        scratch.binary.load(row, ranking_, {tables_.fused, tables_.head});
      }
      score_binary(scratch, sums);
    } else {
      scratch.valued.load(row, ranking_);
      tables_.basis == Basis::sets ? score_sets(scratch, sums) : score_monomials(scratch, sums);
    }
    sums.add_to(out);
  }

  // --- Rows of ones --------------------------------------------------------------------------------

  template <std::size_t Width>
  void score_binary(ConjunctionScratch& scratch, Sums<Width>& sums) const {
    const BinaryRow& row = scratch.binary;
    if (tables_.has_records()) prefetch_records(row);
    std::size_t first = 0;
    if (scratch.trie != nullptr) {
      first = add_prefix(row, *scratch.trie, sums);
    } else if (tables_.grouped() > 0) {
      first = add_core(row, sums);
    }
    add_owners(first, scratch, sums);
  }

  // What the conjunctions add whose owner stands at position `first` of the row or later.
  template <std::size_t Width>
  [[gnu::always_inline]] void add_owners(std::size_t first, ConjunctionScratch& scratch,
                                         Sums<Width>& sums) const {
    const BinaryRow& row = scratch.binary;
    if (first < row.head_size() || first == 0) {
      if constexpr (Width == 1) {
        const double sum = head_.sum(row, first, scratch.dense);
        sums.add(&sum);
      } else {
        head_.add(row, first, sums);
      }
    }
    const std::size_t in_tail = first > row.head_size() ? first - row.head_size() : 0;
    if (row.tail_size() > in_tail) add_tail(in_tail, scratch, sums);
  }

  // The sums of the longest stored beginning, and how long it is.
  template <std::size_t Width>
  std::size_t add_prefix(const BinaryRow& row, const PrefixTrie& trie, Sums<Width>& sums) const {
    StoredPrefix prefix = longest_stored_prefix(trie, {0, 0}, {row.head(), row.head_size()});
    if (prefix.length == row.head_size())
      prefix = longest_stored_prefix(trie, prefix, {row.tail(), row.tail_size()});
    sums.add(trie.sums.data() + prefix.node * sums.width());
    return prefix.length;
  }

  // How many of the row's head ranks are done with: the grouped ones, or none if their states are unknown.
  template <std::size_t Width>
  std::size_t add_core(const BinaryRow& row, Sums<Width>& sums) const {
    RowStates states;
    if (!core_.find(row.bits(), states)) return 0;
    core_.add(states, sums);
    const Rank* end = row.head() + row.head_size();
    return static_cast<std::size_t>(std::lower_bound(row.head(), end, tables_.grouped()) - row.head());
  }

  template <std::size_t Width>
  void add_tail(std::size_t from, ConjunctionScratch& scratch, Sums<Width>& sums) const {
    const BinaryRow& row = scratch.binary;
    const std::size_t most = tables_.fused + row.head_size() + row.tail_size();
    if (scratch.all.size() < most) scratch.all.resize(2 * most);
    Rank* all = scratch.all.data();
    std::size_t count = 0;
    for (std::uint32_t state = row.state(); state != 0; state &= state - 1)
      all[count++] = static_cast<Rank>(std::countr_zero(state));
    for (std::size_t k = 0; k < row.head_size(); ++k) all[count++] = row.head()[k] + tables_.fused;
    const std::size_t first = count;
    for (std::size_t k = 0; k < row.tail_size(); ++k) all[count++] = row.tail()[k];
    const std::size_t rare =
        first +
        static_cast<std::size_t>(std::lower_bound(all + first, all + count, tables_.rare) - (all + first));
    Tail tail{{all, count}, first + from, rare};
    if (scratch.bounds != nullptr) list_bounds(tail, scratch);
    if (tail.owners < rare || !tables_.has_records()) {
      double* present = scratch.value_of_rank.data();
      for (std::size_t k = 0; k < count; ++k) present[all[k]] = 1.0;
      for (; tail.owners < count && (tail.owners < rare || !tables_.has_records()); ++tail.owners) {
        const std::size_t k = tail.owners;
        if (is_done(tail, scratch, sums)) break;
        k < rare ? add_owner(all[k] - tables_.head, all, k, present, sums)
                 : add_postings(all[k] - tables_.rare, present, sums);
      }
      for (std::size_t k = 0; k < count; ++k) present[all[k]] = 0.0;
    }
    if (tables_.has_records() && tail.owners == rare && rare < count && !is_done(tail, scratch, sums))
      add_records(tail, scratch, sums);
  }

  // A row's ranks, all of them; the owners that are still to come; the first rare one.
  struct Tail {
    std::span<const Rank> ranks;
    std::size_t owners;
    std::size_t rare;
  };

  const OwnerBounds& bounds() const {
    std::call_once(bounds_made_, [&] { bounds_ = std::make_unique<OwnerBounds>(tables_); });
    return *bounds_;
  }

  void list_bounds(const Tail& tail, ConjunctionScratch& scratch) const {
    const std::size_t width = scores();
    scratch.left.assign((tail.ranks.size() + 1) * width, {0.0, 0.0});
    for (std::size_t k = tail.ranks.size(); k-- > tail.owners;) {
      const Bounds* own = scratch.bounds->of(tail.ranks[k] - tables_.head);
      // Rare vectors have at most the k ranks before the owner in common with the row.
      const double factor = k < tail.rare ? 1.0 : largest_step(k);
      for (std::size_t s = 0; s < width; ++s) {
        const Bounds& later = scratch.left[(k + 1) * width + s];
        scratch.left[k * width + s] = {later.low + factor * own[s].low, later.high + factor * own[s].high};
      }
    }
  }
  // Steps may be negative or descend where gamma or coef0 are odd; rows of support vectors are short.
  double largest_step(std::size_t overlap) const {
    return steps_rise_ ? steps_[std::min(overlap, steps_.size() - 1)]
                       : std::numeric_limits<double>::infinity();
  }

  template <std::size_t Width>
  bool is_done(const Tail& tail, ConjunctionScratch& scratch, const Sums<Width>& sums) const {
    if (scratch.bounds == nullptr) return false;
    scratch.so_far.assign(tables_.constants.begin(), tables_.constants.end());
    sums.add_to(scratch.so_far.data());
    return is_decided(scratch.so_far, scratch.left.data() + tail.owners * scores());
  }

  // The conjunctions that an owner in the trie has with the smaller ranks f[0 .. count).
  template <std::size_t Width>
  void add_owner(std::size_t owner, const Rank* f, std::size_t count, const double* present,
                 Sums<Width>& sums) const {
    sums.add(tables_.owner_weights.data() + owner * sums.width());
    if (degree_ < 2) return;
    const std::uint32_t begin = tables_.owner_begins[owner];
    const std::uint32_t end = tables_.owner_begins[owner + 1];
    const std::uint32_t slots =
        tables_.probe_begins.empty() ? 0 : tables_.probe_begins[owner + 1] - tables_.probe_begins[owner];
    if (slots == 0) {
      add_partners<0>(begin, end, present, sums);
      return;
    }
    const std::uint32_t* table = tables_.probes.data() + tables_.probe_begins[owner];
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t entry = find_partner(table, slots, begin, end, f[k]);
      if (entry == end) continue;
      sums.add(levels_[0].weights + entry * sums.width());
      if (degree_ > 2) add_partners<1>(levels_[0].begins[entry], levels_[0].begins[entry + 1], present, sums);
    }
  }

  // `end` if there is no such partner.
  std::uint32_t find_partner(const std::uint32_t* table, std::uint32_t slots, std::uint32_t begin,
                             std::uint32_t end, Rank partner) const {
    std::uint32_t slot = partner & (slots - 1);
    for (std::uint32_t step = 0; step < slots; ++step) {
      const std::uint32_t place = table[slot];
      if (place == 0 || place > end - begin) return end;
      if (levels_[0].keys[begin + place - 1] == partner) return begin + place - 1;
      slot = (slot + 1) & (slots - 1);
    }
    return end;
  }

  // Entries [begin, end) of a level, as far as the row has their last feature, and what lies below them.
  template <std::size_t Depth, std::size_t Width>
  void add_partners(std::uint32_t begin, std::uint32_t end, const double* present, Sums<Width>& sums) const {
    const Level& entries = levels_[Depth];
    const std::size_t mask = rank_mask();
    if (Depth + 2 == static_cast<std::size_t>(degree_)) {
      if constexpr (Width == 1) {
        const double sum =
            sum_present<true>(entries.keys + begin, entries.weights + begin, end - begin, present);
        sums.add(&sum);
      } else {
        for (std::uint32_t e = begin; e < end; ++e) {
          if (present[place(entries.keys[e], mask)] != 0.0) sums.add(entries.weights + e * sums.width());
        }
      }
      return;
    }
    if constexpr (Depth + 2 < most_degree) {
      for (std::uint32_t e = begin; e < end; ++e) {
        if (present[place(entries.keys[e], mask)] == 0.0) continue;
        sums.add(entries.weights + e * sums.width());
        add_partners<Depth + 1>(entries.begins[e], entries.begins[e + 1], present, sums);
      }
    }
  }

  // sum of present[keys[k]], times weights[k] if Weighted. Four sums, because one would wait for itself.
  template <bool Weighted>
  double sum_present(const KeyType* keys, const double* weights, std::size_t count,
                     const double* present) const {
    const std::size_t mask = rank_mask();
    const auto term = [&](std::size_t k) {
      const double there = present[place(keys[k], mask)];
      return Weighted ? weights[k] * there : there;
    };
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    std::size_t k = 0;
    for (; k + 4 <= count; k += 4) {
      s0 += term(k);
      s1 += term(k + 1);
      s2 += term(k + 2);
      s3 += term(k + 3);
    }
    for (; k < count; ++k) s0 += term(k);
    return (s0 + s1) + (s2 + s3);
  }

  template <std::size_t Width>
  void add_postings(std::size_t owner, const double* present, Sums<Width>& sums) const {
    for (std::uint32_t p = tables_.posting_begins[owner]; p < tables_.posting_begins[owner + 1]; ++p) {
      const std::uint32_t begin = tables_.item_begins[p];
      const double overlap =
          sum_present<false>(items_ + begin, nullptr, tables_.item_begins[p + 1] - begin, present);
      sums.add(tables_.posting_weights.data() + p * sums.width(), steps_[static_cast<std::size_t>(overlap)]);
    }
  }

  // The same where postings are records.
  template <std::size_t Width>
  void add_records(const Tail& tail, ConjunctionScratch& scratch, Sums<Width>& sums) const {
    switch (tables_.bit_words()) {
      case 0: return add_records_of<Width, 0>(tail, scratch, sums);
      case 2: return add_records_of<Width, 2>(tail, scratch, sums);
      case 4: return add_records_of<Width, 4>(tail, scratch, sums);
      case 6: return add_records_of<Width, 6>(tail, scratch, sums);
      default: return add_records_of<Width, most_bit_words>(tail, scratch, sums);
    }
  }

  // Of the rare ranks that a vector has in common with the row, those before the owner are counted as its
  // records are passed.
  template <std::size_t Width, std::size_t Words>
  void add_records_of(const Tail& tail, ConjunctionScratch& scratch, Sums<Width>& sums) const {
    const std::span<const Rank> ranks = tail.ranks;
    std::uint64_t bits[Words + 1] = {};
    for (std::size_t k = 0; k < tail.rare; ++k) bits[ranks[k] / 64] |= std::uint64_t{1} << ranks[k] % 64;
    std::uint16_t* met = scratch.rare_met.data();
    const double* steps = steps_.data();
    std::size_t end = tail.rare;
    for (; end < ranks.size() && !is_done({ranks, end, tail.rare}, scratch, sums); ++end) {
      Sums<Width> own(sums.width());
      for_each_record(ranks[end], [&](const std::uint64_t* record, std::size_t vector) {
        own.add(reinterpret_cast<const double*>(record + Words),
                steps[common_bits<Words>(record, bits) + met[vector]++]);
      });
      own.add_to(sums);
    }
    for (std::size_t k = tail.rare; k < end; ++k) {
      for_each_record(ranks[k], [&](const std::uint64_t*, std::size_t vector) { met[vector] = 0; });
    }
  }

  template <class Visit>
  [[gnu::always_inline]] void for_each_record(Rank owner, const Visit& visit) const {
    const std::size_t stride = tables_.record_words();
    const std::uint64_t* record =
        tables_.posting_records.data() + tables_.posting_begins[owner - tables_.rare] * stride;
    const std::uint64_t* end =
        tables_.posting_records.data() + tables_.posting_begins[owner - tables_.rare + 1] * stride;
    for (; record != end; record += stride) visit(record, record[stride - 1]);
  }

  // Records lie far apart, and the row has other things to do before it reads them.
  void prefetch_records(const BinaryRow& row) const {
    const std::size_t stride = tables_.record_words();
    for (std::size_t k = row.tail_size(); k-- > 0 && row.tail()[k] >= tables_.rare;) {
      const std::size_t owner = row.tail()[k] - tables_.rare;
      const auto* first = reinterpret_cast<const char*>(tables_.posting_records.data() +
                                                        tables_.posting_begins[owner] * stride);
      const auto* last = reinterpret_cast<const char*>(tables_.posting_records.data() +
                                                       tables_.posting_begins[owner + 1] * stride);
      for (const auto* line = first; line < std::min(last, first + 512); line += 64) __builtin_prefetch(line);
    }
  }

  // --- Rows of any values --------------------------------------------------------------------------

  double* spread(const ValuedRow& row, ConjunctionScratch& scratch) const {
    if (scratch.value_of_rank.empty()) scratch.value_of_rank.assign(rank_mask() + 1, 0.0);
    if (scratch.rare_products.empty()) scratch.rare_products.assign(vectors_, 0.0);
    for (std::size_t k = 0; k < row.size(); ++k) scratch.value_of_rank[row.ranks()[k]] = row.values()[k];
    return scratch.value_of_rank.data();
  }

  // Sets that a row has with values other than 1: each conjunction counts with its factor.
  template <std::size_t Width>
  void score_sets(ConjunctionScratch& scratch, Sums<Width>& sums) const {
    const ValuedRow& row = scratch.valued;
    double* values = spread(row, scratch);
    double chosen[most_degree];
    for (std::size_t a = 0; a < row.size(); ++a) {
      const Rank owner = row.ranks()[a];
      chosen[0] = row.values()[a];
      if (owner < tables_.head) {
        head_.add_sets(row, a, sums);
      } else if (owner < tables_.rare) {
        const std::size_t place = owner - tables_.head;
        sums.add(tables_.owner_weights.data() + place * sums.width(), set_factors_(chosen, 1));
        if (degree_ > 1)
          add_partner_sets<0>(tables_.owner_begins[place], tables_.owner_begins[place + 1], values, chosen,
                              sums);
      } else if (!tables_.has_records()) {
        add_valued_postings(owner - tables_.rare, row.values()[a], values, sums);
      }
    }
    if (tables_.has_records()) add_valued_records(row, values, scratch, sums);
    for (std::size_t k = 0; k < row.size(); ++k) values[row.ranks()[k]] = 0.0;
  }

  template <std::size_t Depth, std::size_t Width>
  void add_partner_sets(std::uint32_t begin, std::uint32_t end, const double* values, double* chosen,
                        Sums<Width>& sums) const {
    const Level& entries = levels_[Depth];
    const auto size = static_cast<int>(Depth) + 2;
    for (std::uint32_t e = begin; e < end; ++e) {
      const double value = values[place(entries.keys[e], rank_mask())];
      if (value == 0.0) continue;
      chosen[Depth + 1] = value;
      sums.add(entries.weights + e * sums.width(), set_factors_(chosen, size));
      if constexpr (Depth + 2 < most_degree) {
        if (size < degree_)
          add_partner_sets<Depth + 1>(entries.begins[e], entries.begins[e + 1], values, chosen, sums);
      }
    }
  }

  template <std::size_t Width>
  void add_valued_postings(std::size_t owner, double own, const double* values, Sums<Width>& sums) const {
    for (std::uint32_t p = tables_.posting_begins[owner]; p < tables_.posting_begins[owner + 1]; ++p) {
      double product = 0.0;
      for (std::uint32_t i = tables_.item_begins[p]; i < tables_.item_begins[p + 1]; ++i) {
        product += values[place(items_[i], rank_mask())];
      }
      sums.add(tables_.posting_weights.data() + p * sums.width(),
               kernel_of(product + own) - kernel_of(product));
    }
  }

  template <std::size_t Width>
  void add_valued_records(const ValuedRow& row, const double* values, ConjunctionScratch& scratch,
                          Sums<Width>& sums) const {
    const auto first = static_cast<std::size_t>(
        std::lower_bound(row.ranks(), row.ranks() + row.size(), tables_.rare) - row.ranks());
    for (std::size_t k = first; k < row.size(); ++k) {
      const double own = row.values()[k];
      for_each_record(row.ranks()[k], [&](const std::uint64_t* record, std::size_t vector) {
        double product = scratch.rare_products[vector];
        scratch.rare_products[vector] += own;
        for_each_bit(record, tables_.bit_words(), [&](std::size_t rank) { product += values[rank]; });
        sums.add(reinterpret_cast<const double*>(record + tables_.bit_words()),
                 kernel_of(product + own) - kernel_of(product));
      });
    }
    for (std::size_t k = first; k < row.size(); ++k) {
      for_each_record(row.ranks()[k],
                      [&](const std::uint64_t*, std::size_t vector) { scratch.rare_products[vector] = 0.0; });
    }
  }

  // Monomials: x_a (w_a + sum_b x_b (w_ab + sum_c x_c w_abc)), owner by owner.
  template <std::size_t Width>
  void score_monomials(ConjunctionScratch& scratch, Sums<Width>& sums) const {
    const ValuedRow& row = scratch.valued;
    double* values = spread(row, scratch);
    for (std::size_t a = 0; a < row.size(); ++a) {
      const Rank owner = row.ranks()[a];
      if (owner < tables_.head) {
        head_.add_monomials(row, a, sums);
      } else {
        const std::size_t place = owner - tables_.head;
        sums.add(tables_.owner_weights.data() + place * sums.width(), row.values()[a]);
        if (degree_ > 1) {
          add_partner_monomials<0>(tables_.owner_begins[place], tables_.owner_begins[place + 1], values,
                                   row.values()[a], sums);
        }
      }
    }
    for (std::size_t k = 0; k < row.size(); ++k) values[row.ranks()[k]] = 0.0;
  }

  template <std::size_t Depth, std::size_t Width>
  void add_partner_monomials(std::uint32_t begin, std::uint32_t end, const double* values, double factor,
                             Sums<Width>& sums) const {
    const Level& entries = levels_[Depth];
    const bool last = static_cast<int>(Depth) + 2 == degree_;
    for (std::uint32_t e = begin; e < end; ++e) {
      const double value = values[place(entries.keys[e], rank_mask())];
      if (value == 0.0) continue;
      sums.add(entries.weights + e * sums.width(), factor * value);
      if constexpr (Depth + 2 < most_degree) {
        if (!last)
          add_partner_monomials<Depth + 1>(entries.begins[e], entries.begins[e + 1], values, factor * value,
                                           sums);
      }
    }
  }

  ConjunctionTables tables_;
  int degree_;
  GroupedCore core_;
  DenseHead head_;
  SetFactors set_factors_;
  Ranking ranking_;
  std::array<Level, most_degree - 1> levels_;
  // Sequences of the ranks that rows have before the rare ones.
  Sequences sequences(const data::CsrView<std::int32_t, double>& rows) const {
    Sequences found;
    BinaryRow binary;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows()); ++i) {
      const auto begin = static_cast<std::size_t>(rows.offsets[i]);
      const auto end = static_cast<std::size_t>(rows.offsets[i + 1]);
      binary.load_sorted(SparseRow<std::int32_t>{rows.columns.subspan(begin, end - begin)}, ranking_,
                         tables_.head);
      found.ranks.insert(found.ranks.end(), binary.head(), binary.head() + binary.head_size());
      const Rank* tail = binary.tail();
      found.ranks.insert(found.ranks.end(), tail,
                         std::lower_bound(tail, tail + binary.tail_size(), tables_.rare));
      const auto begin_of_row = found.ranks.begin() + static_cast<std::ptrdiff_t>(found.begins.back());
      found.ranks.erase(std::unique(begin_of_row, found.ranks.end()), found.ranks.end());
      found.begins.push_back(found.ranks.size());
    }
    return found;
  }

  PrefixCost cost_of(Saving saving) const {
    return [this, saving](Rank rank, std::size_t depth) {
      double conjunctions = 1.0, total = 0.0;
      for (int k = 1; k < degree_; ++k) {
        conjunctions *= static_cast<double>(depth) - static_cast<double>(k);
        conjunctions /= k;
        total += conjunctions;
      }
      return saving == Saving::counted || rank < tables_.head ? total : entries_of(rank, depth);
    };
  }

  // About as many as an owner in the trie makes a row of `depth` ranks look at.
  double entries_of(Rank owner, std::size_t depth) const {
    if (degree_ < 2) return 1.0;
    const std::size_t place_of = owner - tables_.head;
    const std::uint32_t begin = tables_.owner_begins[place_of], end = tables_.owner_begins[place_of + 1];
    const auto partners = static_cast<double>(end - begin);
    const double met = std::min(partners, static_cast<double>(depth));
    const double below =
        degree_ > 2 && end > begin
            ? static_cast<double>(levels_[0].begins[end] - levels_[0].begins[begin]) / partners
            : 0.0;
    return met * (1.0 + below);
  }

  void fill_sums(const PrefixTrie* old, int threads, Monitor& monitor, PrefixTrie& trie) const {
    fill_prefix_sums(
        old, scores(), threads, monitor, [&] { return make_scratch(); },
        [&](std::span<const Rank> path, ConjunctionScratch& scratch, double* out) {
          add_last(path, scratch, out);
        },
        trie);
  }

  // What the last rank of a beginning adds to the sums of the others.
  void add_last(std::span<const Rank> path, ConjunctionScratch& scratch, double* out) const {
    scratch.binary.assign(path, tables_.head);
    with_width([&]<std::size_t Width>() {
      Sums<Width> sums(scores());
      add_owners(path.size() - 1, scratch, sums);
      sums.add_to(out);
    });
  }

  const KeyType* items_ = nullptr;
  std::vector<double> steps_;  // f(c + 1) - f(c)
  bool steps_rise_ = false;
  mutable std::once_flag bounds_made_;
  mutable std::unique_ptr<const OwnerBounds> bounds_;  // made when first asked for
  bool sorted_ = false;                                // head ranks do not go by column
  std::atomic<std::shared_ptr<const PrefixTrie>> trie_;
  std::atomic<bool> has_trie_ = false;  // asking this costs nothing
  std::size_t vectors_ = 0;             // support vectors with a rare rank, where they are counted
};

}  // namespace

std::unique_ptr<ConjunctionEngine> make_conjunction_engine(const ConjunctionTables& tables) {
  check(tables);
  if (tables.levels[0].keys.index() == 0) return std::make_unique<EngineOfKeys<std::uint16_t>>(tables);
  return std::make_unique<EngineOfKeys<std::uint32_t>>(tables);
}

}  // namespace unkernel::engines
