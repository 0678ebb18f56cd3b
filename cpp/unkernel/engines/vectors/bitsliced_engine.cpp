#include "unkernel/engines/vectors/bitsliced_engine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "unkernel/base/cpu.hpp"
#include "unkernel/engines/ranking.hpp"

namespace unkernel::engines {
namespace {

// 512 bits, which the compiler splits into the registers of the machine.
using Block = std::uint64_t __attribute__((vector_size(64)));
constexpr std::size_t block_words = 8;
constexpr std::size_t planes = 8;  // binary digits of a count: rows have up to 255 features
constexpr std::size_t most_features = 255;

struct BitslicedScratch {
  std::vector<std::uint8_t> overlaps;
  std::vector<const std::uint64_t*> sets;  // of the row
  std::vector<double> products;
  VectorSumScratch sum;
};

// spread_bits[b] has one byte for each of the eight bits of b.
constexpr std::array<std::uint64_t, 256> spread_bits = [] {
  std::array<std::uint64_t, 256> table{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t bit = 0; bit < 8; ++bit) table[byte] |= std::uint64_t{byte >> bit & 1} << (8 * bit);
  }
  return table;
}();

inline Block load(const std::uint64_t* words) {
  Block block;
  std::memcpy(&block, words, sizeof block);
  return block;
}

// A full adder: adds a + b to the sum, and returns the carry.
inline Block add(Block& sum, Block a, Block b) {
  const Block half = a ^ b;
  const Block carry = (a & b) | (half & sum);
  sum ^= half;
  return carry;
}

// Counts, for each of the 512 vectors from word `first` on, how many of the sets contain it. A tree of adders
// adds eight sets at a time; its carries, of weight eight, are added to the higher planes.
UNKERNEL_CLONES void count_block(const std::uint64_t* const* sets, std::size_t count, std::size_t first,
                                 Block (&plane)[planes]) {
  for (Block& p : plane) p = Block{};
  const Block zero{};
  for (std::size_t k = 0; k < count; k += 8) {
    const auto set = [&](std::size_t i) { return k + i < count ? load(sets[k + i] + first) : zero; };
    const Block twos_a = add(plane[0], set(0), set(1));
    const Block twos_b = add(plane[0], set(2), set(3));
    const Block fours_a = add(plane[1], twos_a, twos_b);
    Block fours_b = zero;
    if (k + 4 < count) {
      const Block twos_c = add(plane[0], set(4), set(5));
      const Block twos_d = add(plane[0], set(6), set(7));
      fours_b = add(plane[1], twos_c, twos_d);
    }
    Block carry = add(plane[2], fours_a, fours_b);
    for (std::size_t p = 3; p < planes; ++p) {
      const Block next = plane[p] & carry;
      plane[p] ^= carry;
      carry = next;
    }
  }
}

// Writes the counts as bytes.
void write_counts(const Block (&plane)[planes], std::size_t used_planes, std::uint8_t* to) {
  for (std::size_t word = 0; word < block_words; ++word) {
    for (std::size_t byte = 0; byte < 8; ++byte) {
      std::uint64_t eight = 0;
      for (std::size_t p = 0; p < used_planes; ++p)
        eight += spread_bits[plane[p][word] >> (8 * byte) & 0xff] << p;
      std::memcpy(to + 64 * word + 8 * byte, &eight, sizeof eight);
    }
  }
}

class BitslicedEngine final : public EngineOf<BitslicedEngine, BitslicedScratch> {
 public:
  explicit BitslicedEngine(const BitslicedTables& tables)
      : tables_(tables),
        sum_(tables.sum, true),
        ranking_(tables.columns),
        words_(count_words(tables.sum.vectors())) {}

  std::size_t scores() const override { return tables_.sum.scores(); }
  std::size_t bytes() const override {
    return sum_.bytes() + ranking_.bytes() + tables_.columns.size_bytes() + tables_.bits.size_bytes() +
           tables_.list_begins.size_bytes() + tables_.lists.size_bytes();
  }
  BitslicedScratch make_scratch() const { return {}; }

  template <class Index>
  void score_range(const RowRange<Index>& range, BitslicedScratch& scratch, double* out) const {
    for (std::size_t row = range.first; row < range.last; ++row, out += scores())
      score_row(range[row], scratch, out);
  }

  template <class Index>
  void score_row(const SparseRow<Index>& row, BitslicedScratch& scratch, double* out) const {
    const bool ones = row.values == nullptr || all_ones(row.values, row.columns.size());
    if (ones && row.columns.size() <= most_features) {
      score_overlaps(row, scratch, out);
    } else {
      score_products(row, scratch, out);
    }
  }

 private:
  template <class Index>
  void score_overlaps(const SparseRow<Index>& row, BitslicedScratch& scratch, double* out) const {
    scratch.sets.clear();
    for (const Index column : row.columns) {
      const Rank rank = ranking_.of(column);
      if (rank < tables_.frequent) scratch.sets.push_back(tables_.bits.data() + rank * words_);
    }
    scratch.overlaps.resize(64 * words_);
    std::uint8_t* overlaps = scratch.overlaps.data();
    Block plane[planes];
    const auto used_planes = static_cast<std::size_t>(std::bit_width(scratch.sets.size()));
    for (std::size_t word = 0; word < words_; word += block_words) {
      count_block(scratch.sets.data(), scratch.sets.size(), word, plane);
      write_counts(plane, used_planes, overlaps + 64 * word);
    }
    for (const Index column : row.columns) {
      const Rank rank = ranking_.of(column);
      if (rank == unknown || rank < tables_.frequent) continue;
      const std::uint32_t* begins = tables_.list_begins.data() + (rank - tables_.frequent);
      for (std::uint32_t i = begins[0]; i < begins[1]; ++i) ++overlaps[tables_.lists[i]];
    }
    sum_.sum_overlaps(overlaps, row.columns.size(), scratch.sum, out);
  }

  template <class Index>
  void score_products(const SparseRow<Index>& row, BitslicedScratch& scratch, double* out) const {
    scratch.products.assign(64 * words_, 0.0);
    double norm = 0.0;
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      const double x = row.values == nullptr ? 1.0 : row.values[k];
      norm += x * x;
      const Rank rank = ranking_.of(row.columns[k]);
      if (rank != unknown) add_products(rank, x, scratch.products.data());
    }
    sum_.sum_products(scratch.products.data(), norm, scratch.sum, out);
  }

  void add_products(Rank rank, double x, double* products) const {
    if (rank < tables_.frequent) {
      for (std::size_t word = 0; word < words_; ++word) {
        for (std::uint64_t remaining = tables_.bits[rank * words_ + word]; remaining != 0;
             remaining &= remaining - 1) {
          products[64 * word + static_cast<std::size_t>(std::countr_zero(remaining))] += x;
        }
      }
      return;
    }
    const std::uint32_t* begins = tables_.list_begins.data() + (rank - tables_.frequent);
    for (std::uint32_t i = begins[0]; i < begins[1]; ++i) products[tables_.lists[i]] += x;
  }

  BitslicedTables tables_;
  VectorSum sum_;
  Ranking ranking_;
  std::size_t words_;
};

[[noreturn]] void fail_table() {
  throw std::invalid_argument(
      "not a valid table of support vectors: the bits or lists do not fit the columns");
}

void check_lists(const BitslicedTables& tables) {
  if (tables.frequent > tables.columns.size()) fail_table();
  const std::size_t words = count_words(tables.sum.vectors());
  const bool has_all_bits =
      words == 0 ? tables.bits.empty()
                 : tables.bits.size() % words == 0 && tables.bits.size() / words == tables.frequent;
  if (!has_all_bits) fail_table();
  const auto& begins = tables.list_begins;
  if (begins.size() != tables.columns.size() - tables.frequent + 1 || begins.front() != 0 ||
      begins.back() != tables.lists.size() || !std::is_sorted(begins.begin(), begins.end())) {
    fail_table();
  }
  for (std::size_t rank = 0; rank + 1 < begins.size(); ++rank) {
    for (std::uint32_t i = begins[rank]; i < begins[rank + 1]; ++i) {
      if (tables.lists[i] >= tables.sum.vectors() ||
          (i > begins[rank] && tables.lists[i - 1] >= tables.lists[i]))
        fail_table();
    }
  }
}

// Throws unless the norms equal the sizes of the vectors: distances computed from norms are indices into a
// table.
void check_sizes(const BitslicedTables& tables) {
  if (tables.sum.norms.empty()) return;
  const std::size_t words = count_words(tables.sum.vectors());
  std::vector<double> sizes(64 * words, 0.0);
  for (std::size_t place = 0; place < tables.bits.size(); ++place) {
    for (std::uint64_t remaining = tables.bits[place]; remaining != 0; remaining &= remaining - 1) {
      sizes[64 * (place % words) + static_cast<std::size_t>(std::countr_zero(remaining))] += 1.0;
    }
  }
  for (const std::uint32_t vector : tables.lists) sizes[vector] += 1.0;
  if (!std::equal(tables.sum.norms.begin(), tables.sum.norms.end(), sizes.begin())) fail_table();
}

}  // namespace

std::unique_ptr<Engine> make_bitsliced_engine(const BitslicedTables& tables) {
  check(tables.sum);
  check_lists(tables);
  check_sizes(tables);
  return std::make_unique<BitslicedEngine>(tables);
}

}  // namespace unkernel::engines
