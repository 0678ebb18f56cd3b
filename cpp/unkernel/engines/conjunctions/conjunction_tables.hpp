// Stores the weights of conjunctions for fast lookup, in plain arrays that can be mapped from a file.
//
// Features are numbered by rank, roughly the most frequent first. Each conjunction belongs to its largest
// rank, its *owner*. Owners are divided into three zones:
//
//   [0, head)      all conjunctions of these most frequent features, in dense tables
//   [head, rare)   the conjunctions that occur, in a trie: below an owner a, its partners b < a; below each
//                  pair (a, b), the partners c < b; and so on
//   [rare, used)   no conjunctions, but the support vectors s that contain the owner a, without their ranks
//                  from a on. The sum over the conjunctions owned by a is sum_s coefficient [f(c+1) - f(c)]
//                  for the overlap c = |x ∩ s ∩ {0 .. a-1}|, because the kernel f(c) is the sum over all
//                  subsets of the overlap.
//
// The dense tables *fuse* the first few ranks, some of which occur in almost every row, into one feature with
// 2^fused states. The other head ranks are renumbered from 0. For each conjunction U of renumbered ranks and
// each state m, an entry holds the sum of the weights of all U ∪ T with T ⊆ m: one load replaces many loads.
//
// Head ranks that are not fused are ordered by column, so that rows need no sorting. If a prefix trie
// requires it, they are ordered by frequency instead.
//
// Alternatively, the first ranks are *grouped* (feature_groups.hpp): the sum over all their conjunctions is
// looked up by the states of the groups, and the other tables are read only for owners that are not grouped.
// Rows with a state that is not stored are scored without groups.
//
// Summed over all owners of a row x, the contributions give the kernel sum, wherever the boundaries of the
// zones are. Boundaries trade memory for time; they do not change the scores. All scores of a conjunction are
// stored together.
//
// Bytes, for m scores
//   head      8 m per conjunction of the model's degree, 8 m 2^fused per smaller conjunction
//   trie      8 m + 2 per conjunction (8 m + 4 beyond 65,536 features), and 4 if the trie extends it
//   rare      per rare feature of a support vector: 8 m and 2 (4) per item, or 8 m + 8 and one bit per common
//             rank
//   grouped   8 m per sum of states
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/engines/ranking.hpp"
#include "unkernel/kernels/conjunction_index.hpp"
#include "unkernel/kernels/feature_map.hpp"

namespace unkernel::engines {

using kernels::Basis;
using kernels::choose2;
using kernels::choose3;
using kernels::choose4;
using kernels::Conjunction;
using kernels::ConjunctionIndex;
using kernels::FeatureMap;
using kernels::Key;
using kernels::SetFactors;

inline constexpr int most_degree = 4;
// Entries have 32-bit numbers.
inline constexpr std::uint64_t most_entries = 0xffff'fff0;

// Select the arrays of ConjunctionTablesIn: Borrowed arrays are views, Owned arrays hold their memory.
template <class T>
struct Borrowed {
  using Array = std::span<const T>;
};
template <class T>
struct Owned {
  using Array = LargeVector<T>;
};

// Ranks in the narrowest integer type that holds them.
template <template <class> class Hold>
using Keys = std::variant<typename Hold<std::uint16_t>::Array, typename Hold<std::uint32_t>::Array>;

// The entries of conjunctions of k features, k >= 2. Entries that extend the same conjunction of k - 1
// features are contiguous, and sorted by key: their last and smallest rank.
template <template <class> class Hold>
struct TrieLevel {
  Keys<Hold> keys;
  typename Hold<double>::Array weights;        // entries x scores
  typename Hold<std::uint32_t>::Array begins;  // entries + 1, into the next level; empty on the last level
};

// Returns the number of words that hold one bit for each of these ranks; always even.
constexpr std::size_t bit_words_for(std::size_t ranks) { return (ranks + 127) / 128 * 2; }

template <template <class> class Hold>
struct ConjunctionTablesIn {
  template <class T>
  using Array = typename Hold<T>::Array;

  Basis basis;
  FeatureMap map;
  std::uint32_t fused;          // number of fused ranks
  std::uint32_t head;           // first rank of the trie
  std::uint32_t rare;           // first rank without stored conjunctions
  Array<std::int64_t> columns;  // rank -> column
  Array<double> intercept;      // scores
  Array<double> head_low;       // U of fewer than `degree` features, the empty one first: U x states x scores
  Array<double> head_top;       // U of `degree` features, by owner: U x scores
  Array<double> owner_weights;  // (rare - head) x scores
  Array<std::uint32_t> owner_begins;  // rare - head + 1, into the second level
  // An owner with many partners also has a hash table of its partners, which holds positions in the owner's
  // list, plus one.
  Array<std::uint32_t> probe_begins;  // rare - head + 1, into probes; each table's size is 0 or a power of 2
  Array<std::uint32_t> probes;
  std::array<TrieLevel<Hold>, most_degree - 1> levels;  // of pairs, triples, quadruples
  Array<std::uint32_t> posting_begins;                  // used - rare + 1, into the postings
  Array<std::uint32_t> item_begins;                     // postings + 1, into items
  Keys<Hold> items;                                     // ranks below the owner, ascending
  Array<double> posting_weights;                        // postings x scores
  // If few enough ranks are common, records replace items and weights, so that a posting is contiguous: one
  // bit per common rank of the support vector, its weights, and its number.
  Array<std::uint64_t> posting_records;
  Array<std::uint32_t> group_begins;  // groups + 1, into the ranks; empty if nothing is grouped
  Array<std::uint32_t> state_begins;  // groups + 1, into the states
  Array<std::uint64_t> states;        // bit k is set if the group's k-th rank is present
  // The sums of 1, 2, .. states, in the order of StateIndex, x scores.
  std::array<Array<double>, most_degree> state_sums;

  std::size_t scores() const { return intercept.size(); }
  std::size_t used() const { return columns.size(); }
  std::size_t fused_states() const { return std::size_t{1} << fused; }
  std::uint32_t grouped() const { return group_begins.empty() ? 0 : group_begins.back(); }
  bool has_records() const { return !posting_records.empty(); }
  std::size_t bit_words() const { return bit_words_for(rare); }
  std::size_t record_words() const { return bit_words() + scores() + 1; }
};

// Locates the entries of conjunctions U of head ranks that are not fused. In head_low, the place of U is its
// number in a ConjunctionIndex of degree `degree - 1`; in head_top, entries are grouped by owner.
class HeadIndex {
 public:
  HeadIndex(int degree, Basis basis)
      : degree_(degree), low_(std::max(degree - 1, 1), basis), shift_(basis == Basis::monomials) {}

  int degree() const { return degree_; }
  const ConjunctionIndex& low() const { return low_; }
  // Returns the number of conjunctions U in head_low, including the empty one.
  std::uint64_t low_count(std::uint64_t ranks) const { return degree_ == 1 ? 1 : low_.count(ranks); }
  // Returns the first entry of an owner in head_top: the number of entries of all smaller owners.
  std::uint64_t top(std::uint64_t owner) const {
    switch (degree_) {
      case 1: return owner;
      case 2: return choose2(owner + shift_);
      case 3: return choose3(owner + 2 * shift_);
      default: return choose4(owner + 3 * shift_);
    }
  }
  // Return the entry of the conjunction of the descending ranks u: top_place in head_top, for `degree` ranks;
  // low_key in head_low, for fewer.
  std::uint64_t top_place(const Rank* u) const {
    switch (degree_) {
      case 1: return u[0];
      case 2: return top(u[0]) + u[1];
      case 3: return top(u[0]) + low_.triangle(u[1]) + u[2];
      default: return top(u[0]) + low_.tetrahedron(u[1]) + low_.triangle(u[2]) + u[3];
    }
  }
  std::uint64_t low_key(const Rank* u, int size) const {
    switch (size) {
      case 0: return 0;
      case 1: return low_.block(u[0]);
      case 2: return low_.block(u[0]) + 1 + u[1];
      default: return low_.block(u[0]) + low_.triples(u[0]) + low_.triangle(u[1]) + u[2];
    }
  }
  // Returns the largest number of head ranks whose indices do not overflow.
  std::uint64_t most_ranks() const { return ConjunctionIndex(degree_, Basis::sets).most_features(); }
  // Returns the number of entries in both tables.
  std::uint64_t count(std::uint64_t ranks, std::uint32_t fused) const {
    return (low_count(ranks) << fused) + top(ranks);
  }

 private:
  int degree_;
  ConjunctionIndex low_;
  std::uint64_t shift_;  // 1 for monomials, in which a rank may occur several times; otherwise 0
};

inline constexpr std::uint32_t most_fused = 8;
// Head ranks that are not ordered by column are sorted through a bit set, which holds at most this many.
inline constexpr std::uint32_t most_sorted_head = 1024;
// Records have at most this many words of bits.
inline constexpr std::size_t most_bit_words = 8;
// The most records of a support vector. Records that share ranks with a row are counted with 16 bits.
inline constexpr std::uint32_t most_records_of_vector = 0xffff;

using ConjunctionTables = ConjunctionTablesIn<Borrowed>;
using ConjunctionArrays = ConjunctionTablesIn<Owned>;

ConjunctionTables borrow(const ConjunctionArrays& arrays);

// Returns whether head ranks ascend with columns, so that the ranks of a row need no sorting.
bool is_ordered_by_column(const ConjunctionTables& tables);

// Throws std::invalid_argument unless all indices and offsets stay inside the arrays that they point into.
// Does not read the weights and keys of the trie: none of their values can cause an access outside the
// arrays.
void check(const ConjunctionTables& tables);

std::size_t bytes(const ConjunctionTables& tables);

}  // namespace unkernel::engines
