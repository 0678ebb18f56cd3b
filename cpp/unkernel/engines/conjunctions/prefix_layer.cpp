#include "unkernel/engines/conjunctions/prefix_layer.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "unkernel/engines/conjunctions/prefix_sums.hpp"

namespace unkernel::engines {

void PrefixLayer::set(std::shared_ptr<const PrefixTrie> trie) {
  if (trie != nullptr) {
    check_rows_are_sequences();
    check(*trie, zones_.scores(), zones_.tables.rare);
  }
  trie_.set(std::move(trie));
}

PrefixTrie PrefixLayer::grow(const PrefixTrie* old, const data::CsrView<std::int32_t, double>& rows,
                             std::size_t most_nodes, Saving saving, int threads, Monitor& monitor) const {
  check_rows_are_sequences();
  PrefixTrie trie = grow_trie(old, sequences(rows), most_nodes, cost_of(saving));
  fill_sums(old, threads, monitor, trie);
  return trie;
}

PrefixTrie PrefixLayer::prune(const PrefixTrie& old, std::size_t most_nodes, Saving saving) const {
  PrefixTrie trie = prune_trie(old, most_nodes, cost_of(saving));
  Monitor monitor;
  fill_sums(&old, 1, monitor, trie);
  return trie;
}

// Throws if features are fused or grouped. Prefixes are sequences of ranks, but such features have no order.
void PrefixLayer::check_rows_are_sequences() const {
  const ConjunctionTables& tables = zones_.tables;
  if (tables.basis != Basis::sets || tables.fused > 0 || tables.grouped() > 0)
    throw std::invalid_argument("a prefix trie needs binary features, and no fused or grouped features");
}

// Returns the ascending ranks of each row, without rare ranks.
Sequences PrefixLayer::sequences(const data::CsrView<std::int32_t, double>& rows) const {
  Sequences result;
  BinaryRow binary;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows()); ++i) {
    const auto begin = static_cast<std::size_t>(rows.offsets[i]);
    const auto end = static_cast<std::size_t>(rows.offsets[i + 1]);
    binary.load_sorted(SparseRow<std::int32_t>{rows.columns.subspan(begin, end - begin)}, zones_.ranking,
                       zones_.tables.head);
    result.ranks.insert(result.ranks.end(), binary.head(), binary.head() + binary.head_size());
    const Rank* tail = binary.tail();
    result.ranks.insert(result.ranks.end(), tail,
                        std::lower_bound(tail, tail + binary.tail_size(), zones_.tables.rare));
    const auto begin_of_row = result.ranks.begin() + static_cast<std::ptrdiff_t>(result.begins.back());
    result.ranks.erase(std::unique(begin_of_row, result.ranks.end()), result.ranks.end());
    result.begins.push_back(result.ranks.size());
  }
  return result;
}

PrefixCost PrefixLayer::cost_of(Saving saving) const {
  return [this, saving](Rank rank, std::size_t depth) {
    // The last of `depth` features forms C(depth - 1, k) conjunctions with k earlier features.
    double conjunctions = 1.0, total = 0.0;
    for (int k = 1; k < zones_.tables.map.degree; ++k) {
      conjunctions *= static_cast<double>(depth) - static_cast<double>(k);
      conjunctions /= k;
      total += conjunctions;
    }
    return saving == Saving::counted || rank < zones_.tables.head ? total : entries_of(rank, depth);
  };
}

// Returns the expected number of entries that a row of `depth` ranks reads for an owner in the trie zone.
double PrefixLayer::entries_of(Rank owner, std::size_t depth) const {
  const ConjunctionTables& tables = zones_.tables;
  if (tables.map.degree < 2) return 1.0;
  const std::size_t place = owner - tables.head;
  const std::uint32_t begin = tables.owner_begins[place], end = tables.owner_begins[place + 1];
  const auto partners = static_cast<double>(end - begin);
  const double partners_in_row = std::min(partners, static_cast<double>(depth));
  const auto& begins = tables.levels[0].begins;
  const double triples_per_pair = tables.map.degree > 2 && end > begin
                                      ? static_cast<double>(begins[end] - begins[begin]) / partners
                                      : 0.0;
  return partners_in_row * (1.0 + triples_per_pair);
}

void PrefixLayer::fill_sums(const PrefixTrie* old, int threads, Monitor& monitor, PrefixTrie& trie) const {
  fill_prefix_sums(
      old, zones_.scores(), threads, monitor, [&] { return zones_.make_scratch(); },
      // Adds the contribution of the last rank of a prefix.
      [&](std::span<const Rank> path, ConjunctionScratch& scratch, double* out) {
        scratch.binary.assign(path, zones_.tables.head);
        score_ones_(zones_, {path.size() - 1, nullptr}, scratch, out);
      },
      trie);
}

}  // namespace unkernel::engines
