// Tables of conjunctions and a prefix trie from a damaged or hostile file: the input changes some arrays of
// valid tables. The tables are refused, or scoring, growing the trie and listing the heaviest conjunctions
// stay inside the arrays.
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "engines/fuzz_use.hpp"
#include "engines/random_machine.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/conjunction_engine.hpp"
#include "unkernel/engines/conjunctions/expansion.hpp"
#include "unkernel/engines/conjunctions/heaviest_conjunctions.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::engines;

constexpr std::int64_t features = 12;

struct ValidTables {
  ConjunctionArrays arrays;
  PrefixTrie trie;
};

ValidTables make_valid_tables(const RandomMachine& machine, const ExpansionPlan& plan) {
  Monitor monitor;
  ValidTables valid{expand(machine.view(), plan, 1, monitor), {}};
  try {
    const auto engine = make_conjunction_engine(borrow(valid.arrays));
    valid.trie = engine->grow(nullptr, machine.vectors.view(), 20, Saving::counted, 1, monitor);
  } catch (const std::invalid_argument&) {}  // this form has no trie
  return valid;
}

// Tables with heads of no, some and all features, fused or not, ordered by column or by frequency; with rare
// features; with groups of features.
const std::vector<ValidTables>& valid_tables() {
  static const std::vector<ValidTables> all = [] {
    std::vector<ValidTables> list;
    Random random(1);
    for (int degree = 1; degree <= 4; ++degree) {
      const FeatureMap map{degree, FeatureMap::Kind::kernel, 0.5, 1.0};
      const std::size_t scores = degree % 2 == 0 ? 1 : 2;
      const RandomMachine ones(8, {features, 6, true}, scores, random);
      const RandomMachine reals(8, {features, 6, false}, scores, random);
      list.push_back(make_valid_tables(ones, {map, Basis::sets, {0, 0, true}, {0, 0.0}, 3, 0.0, 1e9}));
      list.push_back(make_valid_tables(ones, {map, Basis::sets, {2, 5, false}, {0, 0.0}, 3, 0.0, 1e9}));
      list.push_back(make_valid_tables(ones, {map, Basis::sets, {0, 12, true}, {0, 0.0}, 0, 0.0, 1e9}));
      list.push_back(make_valid_tables(ones, {map, Basis::sets, {0, 12, false}, {8, 400.0}, 2, 0.0, 1e9}));
      list.push_back(make_valid_tables(reals, {map, Basis::monomials, {0, 3, false}, {0, 0.0}, 0, 0.0, 1e9}));
    }
    return list;
  }();
  return all;
}

void damage_keys(FuzzBytes& bytes, Keys<Owned>& keys) {
  if (!bytes.flag()) return std::visit([&](auto& ranks) { bytes.damage(ranks); }, keys);
  if (const auto* slim = std::get_if<LargeVector<std::uint16_t>>(&keys))
    keys = LargeVector<std::uint32_t>(slim->begin(), slim->end());
}

void damage_tables(FuzzBytes& bytes, ConjunctionArrays& a) {
  switch (bytes.below(8)) {
    case 0: return bytes.damage_one(a.map.degree, a.map.gamma, a.map.coef0, a.fused, a.head, a.rare);
    case 1: return bytes.damage_one(a.columns, a.intercept, a.head_low, a.head_top);
    case 2: return bytes.damage_one(a.owner_weights, a.owner_begins, a.probe_begins, a.probes);
    case 3: return bytes.damage_one(a.posting_begins, a.item_begins, a.posting_weights, a.posting_records);
    case 4: return bytes.damage_one(a.group_begins, a.state_begins, a.states);
    case 5: return bytes.damage(a.state_sums[bytes.below(a.state_sums.size())]);
    case 6: {
      auto& level = a.levels[bytes.below(a.levels.size())];
      if (bytes.flag()) return damage_keys(bytes, level.keys);
      return bytes.damage_one(level.weights, level.begins);
    }
    default:
      if (bytes.flag()) return damage_keys(bytes, a.items);
      a.basis = a.basis == Basis::sets ? Basis::monomials : Basis::sets;
  }
}

void use_trie(ConjunctionEngine& engine, PrefixTrie trie, FuzzBytes& bytes) {
  for (std::size_t left = bytes.below(3); left > 0; --left)
    bytes.damage_one(trie.first_child, trie.ranks, trie.counts, trie.sums);
  engine.set_trie(std::make_shared<const PrefixTrie>(trie));
  const Saving saving = bytes.flag() ? Saving::counted : Saving::entries;
  (void)engine.prune(trie, bytes.below(8), saving);
  Rows<std::int32_t> rows;
  rows.features = features;
  fuzz_row(bytes, features, rows);
  Monitor monitor;
  engine.set_trie(
      std::make_shared<const PrefixTrie>(engine.grow(&trie, rows.view(), 20, saving, 1, monitor)));
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (char table = 0; table < 20; ++table) {
    for (char damages = 0; damages < 3; ++damages) {
      const char part = static_cast<char>(table + damages), other = static_cast<char>(7 * table + 3);
      seeds.push_back({table, damages, part, 1, 4, other, 4,  2, part, 3, 5, 1, 8, 1, 2,
                       3,     4,       5,    6, 7, 8,     70, 1, 2,    3, 4, 5, 6, 7, 8});
    }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  const ValidTables& valid = valid_tables()[bytes.below(valid_tables().size())];
  ConjunctionArrays arrays = valid.arrays;
  for (std::size_t left = bytes.below(4); left > 0; --left) damage_tables(bytes, arrays);
  try {
    const ConjunctionTables tables = borrow(arrays);
    const auto engine = make_conjunction_engine(tables);
    if (bytes.flag()) (void)list_heaviest(tables, bytes.below(6));
    if (bytes.flag()) use_trie(*engine, valid.trie, bytes);
    use_engine(*engine, bytes, features);
  } catch (const std::invalid_argument&) {}
  return 0;
}
