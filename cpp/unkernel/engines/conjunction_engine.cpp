#include "unkernel/engines/conjunction_engine.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "unkernel/engines/dense_head.hpp"
#include "unkernel/engines/grouped_core.hpp"
#include "unkernel/engines/overlap.hpp"
#include "unkernel/engines/row_ranks.hpp"
#include "unkernel/engines/sums.hpp"

namespace unkernel::engines {
namespace {

struct ConjunctionScratch {
  BinaryRow binary;
  ValuedRow valued;
  std::vector<double> value_of_rank;  // of the row, 0 elsewhere
  std::vector<Rank> all;              // the row's ranks, ascending, where it has a tail
  std::vector<std::uint64_t> bits;    // which of the ranks that postings have bits for
  DenseScratch dense;
};

template <class KeyType>
class ConjunctionEngine final : public EngineOf<ConjunctionEngine<KeyType>, ConjunctionScratch> {
 public:
  explicit ConjunctionEngine(const ConjunctionTables& tables)
      : tables_(tables), degree_(tables.map.degree), core_(tables_), head_(tables_), set_factors_(tables.map), ranking_(tables.columns) {
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      levels_[k] = {std::get<std::span<const KeyType>>(tables.levels[k].keys).data(), tables.levels[k].weights.data(),
                    tables.levels[k].begins.data()};
    }
    items_ = std::get<std::span<const KeyType>>(tables.items).data();
    measure_postings();
  }

  std::size_t scores() const override { return tables_.scores(); }
  std::size_t bytes() const override { return engines::bytes(tables_) + ranking_.bytes() + core_.bytes() + head_.bytes() + 8 * steps_.size(); }

  ConjunctionScratch make_scratch() const {
    ConjunctionScratch scratch;
    const bool all_dense = tables_.head == tables_.used() && tables_.basis == Basis::sets;
    if (!all_dense) scratch.value_of_rank.assign(rank_mask() + 1, 0.0);
    return scratch;
  }

  template <class Index>
  void score_row(const RowView<Index>& row, ConjunctionScratch& scratch, double* out) const {
    with_width([&]<std::size_t Width>() { score_as<Width>(row, scratch, out); });
  }

  template <class Index>
  void score_range(const RowRange<Index>& range, ConjunctionScratch& scratch, double* out) const {
    with_width([&]<std::size_t Width>() {
      for (std::size_t row = range.first; row < range.last; ++row, out += scores()) score_as<Width>(range[row], scratch, out);
    });
  }

 private:
  struct Level {
    const KeyType* keys;
    const double* weights;
    const std::uint32_t* begins;
  };

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
    std::size_t longest = 0;
    for (std::size_t p = 0; p + 1 < tables_.item_begins.size(); ++p) {
      longest = std::max<std::size_t>(longest, tables_.item_begins[p + 1] - tables_.item_begins[p]);
    }
    longest += 64 * tables_.bit_words();
    if (tables_.item_begins.size() < 2) return;
    for (std::size_t c = 0; c <= longest; ++c) {
      const auto overlap = static_cast<double>(c);
      steps_.push_back(kernel_of(overlap + 1.0) - kernel_of(overlap));
    }
  }
  double kernel_of(double product) const {
    return FeatureMap::power(tables_.map.gamma * product + tables_.map.coef0, tables_.map.degree);
  }

  template <std::size_t Width, class Index>
  void score_as(const RowView<Index>& row, ConjunctionScratch& scratch, double* out) const {
    std::copy(tables_.constants.begin(), tables_.constants.end(), out);
    Sums<Width> sums(scores());
    if (tables_.basis == Basis::sets && (row.values == nullptr || all_ones(row.values, row.columns.size()))) {
      if (tables_.grouped() > 0) {
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
    const std::size_t first = tables_.grouped() > 0 ? add_core(row, sums) : 0;
    if constexpr (Width == 1) {
      const double sum = head_.sum(row, first, scratch.dense);
      sums.add(&sum);
    } else {
      head_.add(row, first, sums);
    }
    if (row.tail_size() > 0) add_tail(scratch, sums);
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
  void add_tail(ConjunctionScratch& scratch, Sums<Width>& sums) const {
    const BinaryRow& row = scratch.binary;
    const std::size_t most = tables_.fused + row.head_size() + row.tail_size();
    if (scratch.all.size() < most) scratch.all.resize(2 * most);
    Rank* all = scratch.all.data();
    std::size_t count = 0;
    for (std::uint32_t state = row.state(); state != 0; state &= state - 1) all[count++] = static_cast<Rank>(std::countr_zero(state));
    for (std::size_t k = 0; k < row.head_size(); ++k) all[count++] = row.head()[k] + tables_.fused;
    const std::size_t first = count;
    for (std::size_t k = 0; k < row.tail_size(); ++k) all[count++] = row.tail()[k];
    double* present = scratch.value_of_rank.data();
    for (std::size_t k = 0; k < count; ++k) present[all[k]] = 1.0;
    scratch.bits.assign(tables_.bit_words(), 0);
    for (std::size_t k = 0; k < count && all[k] < 64 * scratch.bits.size(); ++k) scratch.bits[all[k] / 64] |= std::uint64_t{1} << all[k] % 64;
    for (std::size_t k = first; k < count; ++k) {
      if (all[k] < tables_.rare) {
        add_owner(all[k] - tables_.head, all, k, present, sums);
      } else {
        add_postings(all[k] - tables_.rare, scratch.bits, present, sums);
      }
    }
    for (std::size_t k = 0; k < count; ++k) present[all[k]] = 0.0;
  }

  // The conjunctions that an owner in the trie has with the smaller ranks f[0 .. count).
  template <std::size_t Width>
  void add_owner(std::size_t owner, const Rank* f, std::size_t count, const double* present, Sums<Width>& sums) const {
    sums.add(tables_.owner_weights.data() + owner * sums.width());
    if (degree_ < 2) return;
    const std::uint32_t begin = tables_.owner_begins[owner];
    const std::uint32_t end = tables_.owner_begins[owner + 1];
    const std::uint32_t slots = tables_.probe_begins.empty() ? 0 : tables_.probe_begins[owner + 1] - tables_.probe_begins[owner];
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
  std::uint32_t find_partner(const std::uint32_t* table, std::uint32_t slots, std::uint32_t begin, std::uint32_t end,
                             Rank partner) const {
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
        const double sum = sum_present<true>(entries.keys + begin, entries.weights + begin, end - begin, present);
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
  double sum_present(const KeyType* keys, const double* weights, std::size_t count, const double* present) const {
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
  void add_postings(std::size_t owner, std::span<const std::uint64_t> bits, const double* present, Sums<Width>& sums) const {
    const std::uint32_t last = tables_.posting_begins[owner + 1];
    for (std::uint32_t p = tables_.posting_begins[owner]; p < last; ++p) {
      const std::uint32_t begin = tables_.item_begins[p];
      std::size_t overlap = common_bits(tables_.posting_bits.data() + p * bits.size(), bits);
      for (std::uint32_t i = begin; i < tables_.item_begins[p + 1]; ++i) overlap += present[place(items_[i], rank_mask())] != 0.0;
      sums.add(tables_.posting_weights.data() + p * sums.width(), steps_[overlap]);
    }
  }

  // --- Rows of any values --------------------------------------------------------------------------

  double* spread(const ValuedRow& row, ConjunctionScratch& scratch) const {
    if (scratch.value_of_rank.empty()) scratch.value_of_rank.assign(rank_mask() + 1, 0.0);
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
        if (degree_ > 1) add_partner_sets<0>(tables_.owner_begins[place], tables_.owner_begins[place + 1], values, chosen, sums);
      } else {
        add_valued_postings(owner - tables_.rare, row.values()[a], values, sums);
      }
    }
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
        if (size < degree_) add_partner_sets<Depth + 1>(entries.begins[e], entries.begins[e + 1], values, chosen, sums);
      }
    }
  }

  template <std::size_t Width>
  void add_valued_postings(std::size_t owner, double own, const double* values, Sums<Width>& sums) const {
    const std::size_t words = tables_.bit_words();
    for (std::uint32_t p = tables_.posting_begins[owner]; p < tables_.posting_begins[owner + 1]; ++p) {
      double product = 0.0;
      for_each_bit(tables_.posting_bits.data() + p * words, words, [&](std::size_t rank) { product += values[rank]; });
      for (std::uint32_t i = tables_.item_begins[p]; i < tables_.item_begins[p + 1]; ++i) {
        product += values[place(items_[i], rank_mask())];
      }
      sums.add(tables_.posting_weights.data() + p * sums.width(), kernel_of(product + own) - kernel_of(product));
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
          add_partner_monomials<0>(tables_.owner_begins[place], tables_.owner_begins[place + 1], values, row.values()[a], sums);
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
        if (!last) add_partner_monomials<Depth + 1>(entries.begins[e], entries.begins[e + 1], values, factor * value, sums);
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
  const KeyType* items_ = nullptr;
  std::vector<double> steps_;  // f(c + 1) - f(c)
};

}  // namespace

std::unique_ptr<Engine> make_conjunction_engine(const ConjunctionTables& tables) {
  check(tables);
  if (tables.levels[0].keys.index() == 0) return std::make_unique<ConjunctionEngine<std::uint16_t>>(tables);
  return std::make_unique<ConjunctionEngine<std::uint32_t>>(tables);
}

}  // namespace unkernel::engines
