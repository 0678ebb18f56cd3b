#include "unkernel/engines/conjunctions/conjunction_tables.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <vector>

#include "unkernel/engines/conjunctions/state_index.hpp"

namespace unkernel::engines {
namespace {

[[noreturn]] void fail_table(const std::string& what) {
  throw std::invalid_argument("not a valid table of conjunctions: " + what);
}

template <class T>
std::span<const T> view(const LargeVector<T>& vector) {
  return {vector.data(), vector.size()};
}

Keys<Borrowed> view(const Keys<Owned>& keys) {
  return std::visit([](const auto& vector) -> Keys<Borrowed> { return view(vector); }, keys);
}

std::size_t size_of(const Keys<Borrowed>& keys) {
  return std::visit([](const auto& span) { return span.size(); }, keys);
}

std::size_t bytes_of(const Keys<Borrowed>& keys) {
  return std::visit([](const auto& span) { return span.size_bytes(); }, keys);
}

// Throws unless the array starts at 0, never descends, ends at `end`, and has `count` + 1 entries.
void check_begins(std::span<const std::uint32_t> begins, std::size_t count, std::size_t end,
                  const char* name) {
  bool valid = begins.size() == count + 1 && begins.front() == 0 && begins.back() == end;
  std::uint32_t descends = 0;
  for (std::size_t i = 0; valid && i < count; ++i)
    descends |= static_cast<std::uint32_t>(begins[i] > begins[i + 1]);
  if (!valid || descends != 0) fail_table(std::string(name) + " do not fit");
}

void check_size(std::size_t size, std::size_t entries, std::size_t width, const char* name) {
  if (width != 0 && (size / width != entries || size % width != 0))
    fail_table(std::string("the number of ") + name + " does not fit");
}

void check_head(const ConjunctionTables& tables) {
  const HeadIndex index(tables.map.degree, tables.basis);
  const std::uint64_t ranks = tables.head - tables.fused;
  if (!is_ordered_by_column(tables) && (tables.fused > 0 || tables.head > most_sorted_head))
    fail_table("the columns of frequent features do not ascend");
  if (ranks > index.most_ranks() || index.count(ranks, tables.fused) > most_entries)
    fail_table("too many frequent features");
  check_size(tables.head_low.size(), index.low_count(ranks) << tables.fused, tables.scores(),
             "weights of frequent features");
  check_size(tables.head_top.size(), index.top(ranks), tables.scores(), "weights of frequent features");
}

void check_probes(const ConjunctionTables& tables) {
  const std::size_t owners = tables.rare - tables.head;
  if (tables.probe_begins.empty() && tables.probes.empty()) return;
  check_begins(tables.probe_begins, owners, tables.probes.size(), "the hash tables");
  for (std::size_t i = 0; i < owners; ++i) {
    const std::uint32_t size = tables.probe_begins[i + 1] - tables.probe_begins[i];
    if (size != 0 && !std::has_single_bit(size)) fail_table("a hash table's size is not a power of 2");
  }
}

void check_trie(const ConjunctionTables& tables) {
  const std::size_t owners = tables.rare - tables.head;
  const std::size_t width = tables.scores();
  const auto last = static_cast<std::size_t>(std::max(tables.map.degree - 2, 0));
  check_size(tables.owner_weights.size(), owners, width, "weights of single features");
  if (tables.map.degree >= 2)
    check_begins(tables.owner_begins, owners, size_of(tables.levels[0].keys), "the pairs");
  for (std::size_t k = 0; k < tables.levels.size(); ++k) {
    const auto& level = tables.levels[k];
    const std::size_t entries = size_of(level.keys);
    if (entries > 0 && (k > last || tables.map.degree < 2))
      fail_table("some conjunctions have more features than the degree");
    check_size(level.weights.size(), entries, width, "weights");
    if (level.keys.index() != tables.levels[0].keys.index()) fail_table("ranks are of different widths");
    if (k < last) check_begins(level.begins, entries, size_of(tables.levels[k + 1].keys), "the partners");
  }
}

// Returns whether a record has bits for ranks that are not common.
bool has_stray_bits(const std::uint64_t* record, const ConjunctionTables& tables) {
  const std::size_t full_words = tables.rare / 64;
  std::uint64_t stray = tables.rare % 64 == 0 ? 0 : record[full_words] >> tables.rare % 64;
  for (std::size_t word = full_words + (tables.rare % 64 != 0); word < tables.bit_words(); ++word)
    stray |= record[word];
  return stray != 0;
}

void check_records(const ConjunctionTables& tables) {
  const std::size_t stride = tables.record_words();
  const std::size_t postings = tables.posting_records.size() / stride;
  if (tables.bit_words() > most_bit_words || tables.posting_records.size() % stride != 0)
    fail_table("the records of support vectors do not fit");
  if (!tables.posting_weights.empty() || tables.item_begins.size() != 1)
    fail_table("support vectors are stored both as records and as items");
  check_begins(tables.posting_begins, tables.used() - tables.rare, postings, "the support vectors");
  // A row with all rare ranks counts every record of a support vector. More records than rare ranks would
  // make the overlap exceed the table of kernel steps.
  const std::size_t max_records = std::min<std::size_t>(most_records_of_vector, tables.used() - tables.rare);
  std::vector<std::uint32_t> records_of(postings, 0);
  for (std::size_t p = 0; p < postings; ++p) {
    const std::uint64_t* record = tables.posting_records.data() + p * stride;
    const std::uint64_t vector = record[stride - 1];
    // Each vector has a posting.
    if (vector >= postings) fail_table("a support vector's number is too large");
    if (++records_of[vector] > max_records) fail_table("a support vector has too many records");
    if (has_stray_bits(record, tables)) fail_table("a support vector has bits beyond the common ranks");
  }
}

void check_postings(const ConjunctionTables& tables) {
  if (tables.item_begins.empty()) fail_table("the support vectors do not fit");
  if (tables.items.index() != tables.levels[0].keys.index()) fail_table("ranks are of different widths");
  if (tables.has_records()) return check_records(tables);
  const std::size_t postings = tables.item_begins.size() - 1;
  check_begins(tables.posting_begins, tables.used() - tables.rare, postings, "the support vectors");
  check_begins(tables.item_begins, postings, size_of(tables.items), "the items of support vectors");
  check_size(tables.posting_weights.size(), postings, tables.scores(), "coefficients");
}

void check_groups(const ConjunctionTables& tables) {
  const std::size_t groups = tables.group_begins.empty() ? 0 : tables.group_begins.size() - 1;
  if (groups > 0) {
    if (groups > most_groups || tables.fused > 0 || tables.head > most_sorted_head ||
        tables.basis != Basis::sets)
      fail_table("the groups do not fit the head");
    if (tables.grouped() > tables.head) fail_table("the groups do not fit the head");
    check_begins(tables.group_begins, groups, tables.grouped(), "the groups");
    check_begins(tables.state_begins, groups, tables.states.size(), "the states");
  } else if (!tables.states.empty() || !tables.state_begins.empty() || !tables.group_begins.empty()) {
    fail_table("there are states without groups");
  }
  std::vector<double> counts;
  for (std::size_t g = 0; g < groups; ++g) {
    if (tables.group_begins[g + 1] - tables.group_begins[g] > most_features_in_group)
      fail_table("a group has too many features");
    counts.push_back(tables.state_begins[g + 1] - tables.state_begins[g]);
  }
  if (count_state_sums(counts, tables.map.degree) > static_cast<double>(most_entries))
    fail_table("the states of the groups have too many sums");
  const StateIndex index = groups > 0 ? StateIndex(tables.state_begins, tables.map.degree) : StateIndex();
  for (std::size_t k = 0; k < tables.state_sums.size(); ++k) {
    const bool filled = groups > 0 && k < static_cast<std::size_t>(tables.map.degree);
    check_size(tables.state_sums[k].size(), filled ? index.count(k) : 0, tables.scores(), "sums of states");
  }
}

}  // namespace

ConjunctionTables borrow(const ConjunctionArrays& from) {
  ConjunctionTables to{from.basis,
                       from.map,
                       from.fused,
                       from.head,
                       from.rare,
                       view(from.columns),
                       view(from.intercept),
                       view(from.head_low),
                       view(from.head_top),
                       view(from.owner_weights),
                       view(from.owner_begins),
                       view(from.probe_begins),
                       view(from.probes),
                       {},
                       view(from.posting_begins),
                       view(from.item_begins),
                       view(from.items),
                       view(from.posting_weights),
                       view(from.posting_records),
                       view(from.group_begins),
                       view(from.state_begins),
                       view(from.states),
                       {}};
  for (std::size_t k = 0; k < to.levels.size(); ++k) {
    to.levels[k] = {view(from.levels[k].keys), view(from.levels[k].weights), view(from.levels[k].begins)};
  }
  for (std::size_t k = 0; k < to.state_sums.size(); ++k) to.state_sums[k] = view(from.state_sums[k]);
  return to;
}

bool is_ordered_by_column(const ConjunctionTables& tables) {
  const auto head = tables.columns.subspan(tables.fused, tables.head - tables.fused);
  return tables.grouped() == 0 && std::is_sorted(head.begin(), head.end());
}

void check(const ConjunctionTables& tables) {
  if (tables.scores() == 0) fail_table("no scores");
  if (tables.map.degree < 1 || tables.map.degree > most_degree) fail_table("the degree is out of range");
  if (tables.fused > most_fused || tables.fused > tables.head || tables.head > tables.rare ||
      tables.rare > tables.used())
    fail_table("the zones are out of order");
  if (tables.basis != Basis::sets && (tables.fused > 0 || tables.rare < tables.used()))
    fail_table("real features can be neither fused nor rare");
  check_head(tables);
  const bool narrow = tables.levels[0].keys.index() == 0;
  if (narrow && tables.used() > std::size_t{1} << 16) fail_table("ranks are too narrow");
  check_trie(tables);
  check_probes(tables);
  check_postings(tables);
  check_groups(tables);
}

std::size_t bytes(const ConjunctionTables& tables) {
  std::size_t total =
      tables.columns.size_bytes() + tables.intercept.size_bytes() + tables.head_low.size_bytes() +
      tables.head_top.size_bytes() + tables.owner_weights.size_bytes() + tables.owner_begins.size_bytes() +
      tables.probe_begins.size_bytes() + tables.probes.size_bytes() + tables.posting_begins.size_bytes() +
      tables.item_begins.size_bytes() + bytes_of(tables.items) + tables.posting_weights.size_bytes() +
      tables.posting_records.size_bytes() + tables.group_begins.size_bytes() +
      tables.state_begins.size_bytes() + tables.states.size_bytes();
  for (const auto& sums : tables.state_sums) total += sums.size_bytes();
  for (const auto& level : tables.levels)
    total += bytes_of(level.keys) + level.weights.size_bytes() + level.begins.size_bytes();
  return total;
}

}  // namespace unkernel::engines
