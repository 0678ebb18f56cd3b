// Tables from a damaged or hostile file are rejected, or scoring with them stays within their arrays. The
// scores themselves do not matter; sanitizers detect reads outside.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "check.hpp"
#include "engines/brute_force.hpp"
#include "engines/conjunctions/random_model.hpp"
#include "engines/random_machine.hpp"
#include "engines/scoring.hpp"
#include "engines/vectors/vector_tables.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/conjunction_engine.hpp"
#include "unkernel/engines/conjunctions/expansion.hpp"
#include "unkernel/engines/conjunctions/heaviest_conjunctions.hpp"
#include "unkernel/engines/conjunctions/layout.hpp"
#include "unkernel/engines/vectors/bitsliced_engine.hpp"
#include "unkernel/engines/vectors/inverted_engine.hpp"

namespace {

using unkernel::LargeVector;
using unkernel::Monitor;
using unkernel::Random;
using unkernel::engines::borrow;
using unkernel::engines::check;
using unkernel::engines::ConjunctionArrays;
using unkernel::engines::ConjunctionEngine;
using unkernel::engines::Engine;
using unkernel::engines::expand;
using unkernel::engines::ExpansionPlan;
using unkernel::engines::Keys;
using unkernel::engines::list_heaviest;
using unkernel::engines::Owned;
using unkernel::engines::PrefixTrie;
using unkernel::engines::Saving;
using unkernel::engines::SparseRow;
using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;
using unkernel::kernels::KernelFunction;

constexpr std::int64_t features = 12;
constexpr int rounds_per_table = 150;

// --- Damage -------------------------------------------------------------------------------------------

// Integers wrap around.
template <class T>
T neighbour(T number, int step) {
  if constexpr (std::is_floating_point_v<T>) {
    return number + step;
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(step));
  }
}

template <class T>
T random_number(T old, Random& random) {
  switch (random.below(6)) {
    case 0: return static_cast<T>(random.below(20));
    case 1: return neighbour(old, 1);
    case 2: return neighbour(old, -1);
    case 3: return std::numeric_limits<T>::max();
    case 4: return std::numeric_limits<T>::lowest();
    default:
      if constexpr (std::is_floating_point_v<T>) {
        return std::numeric_limits<T>::quiet_NaN();
      } else {
        return static_cast<T>(random.next());
      }
  }
}

// Changes one array. Leaves no spare capacity after the data, because a sanitizer would not detect reads of
// it.
template <class Array>
void damage(Array& array, Random& random) {
  using T = typename Array::value_type;
  std::vector<T> changed(array.begin(), array.end());
  const std::uint32_t position =
      changed.empty() ? 0 : random.below(static_cast<std::uint32_t>(changed.size()));
  switch (random.below(10)) {
    case 0: changed.resize(position); break;
    case 1: changed.insert(changed.end(), 1 + random.below(3), random_number(T{}, random)); break;
    case 2: changed.clear(); break;
    case 3: random.shuffle(std::span(changed)); break;
    default:
      if (!changed.empty()) changed[position] = random_number(changed[position], random);
  }
  array = Array(changed.begin(), changed.end());
}

// An array of ranks may also change its width.
void damage(Keys<Owned>& keys, Random& random) {
  if (random.below(4) != 0) return std::visit([&](auto& ranks) { damage(ranks, random); }, keys);
  if (const auto* narrow = std::get_if<LargeVector<std::uint16_t>>(&keys)) {
    keys = LargeVector<std::uint32_t>(narrow->begin(), narrow->end());
  } else {
    const auto& wide = std::get<LargeVector<std::uint32_t>>(keys);
    LargeVector<std::uint16_t> narrowed(wide.size());
    for (std::size_t k = 0; k < wide.size(); ++k) narrowed[k] = static_cast<std::uint16_t>(wide[k]);
    keys = std::move(narrowed);
  }
}

template <class T>
  requires std::is_arithmetic_v<T>
void damage(T& number, Random& random) {
  number = random_number(number, random);
}

void damage(Basis& basis, Random&) { basis = basis == Basis::sets ? Basis::monomials : Basis::sets; }

// Functions that damage one array or number each.
using Damages = std::vector<std::function<void(Random&)>>;

template <class... Parts>
Damages damages_to(Parts&... parts) {
  return {[&parts](Random& random) { damage(parts, random); }...};
}

void apply_damages(const Damages& damages, Random& random) {
  for (std::uint32_t remaining = 1 + random.below(2); remaining > 0; --remaining) {
    damages[random.below(static_cast<std::uint32_t>(damages.size()))](random);
  }
}

// --- Use ----------------------------------------------------------------------------------------------

const Rows<std::int32_t>& all_rows() {
  static const Rows<std::int32_t> rows = [] {
    Random random(1);
    Rows<std::int32_t> scored_rows = rows_to_score<std::int32_t>({features, 12, true}, random);
    scoring::Entries all, halves;
    for (std::int64_t column = 0; column < features; ++column) {
      all.emplace_back(column, 1.0);
      halves.emplace_back(column, 0.5);
    }
    scoring::add_entries(all, scored_rows);
    scoring::add_entries(halves, scored_rows);
    return scored_rows;
  }();
  return rows;
}

// Scores each row separately, because rows of ones are scored by other code than rows with values.
void use(const Engine& engine) {
  const auto worker = engine.worker();
  std::vector<double> out(engine.scores());
  const Rows<std::int32_t>& rows = all_rows();
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows.size()); ++row) {
    const auto columns = std::span(rows.columns).subspan(rows.begin(row), rows.end(row) - rows.begin(row));
    engine.score(SparseRow<std::int32_t>{columns, rows.values.data() + rows.begin(row)}, *worker, out.data());
  }
}

void use(const ConjunctionArrays& arrays) {
  check(borrow(arrays));
  (void)list_heaviest(borrow(arrays), 5);
  use(*make_conjunction_engine(borrow(arrays)));
}
void use(const InvertedArrays& arrays) { use(*make_inverted_engine(arrays.view())); }
void use(const BitslicedArrays& arrays) { use(*make_bitsliced_engine(arrays.view())); }

// --- Damageable parts ---------------------------------------------------------------------------------

Damages damages_of(ConjunctionArrays& a) {
  Damages all = damages_to(a.basis, a.map.degree, a.map.gamma, a.map.coef0, a.fused, a.head, a.rare,
                           a.columns, a.intercept, a.head_low, a.head_top, a.owner_weights, a.owner_begins,
                           a.probe_begins, a.probes, a.posting_begins, a.item_begins, a.items,
                           a.posting_weights, a.posting_records, a.group_begins, a.state_begins, a.states);
  for (auto& sums : a.state_sums) {
    for (auto& damage_function : damages_to(sums)) all.push_back(std::move(damage_function));
  }
  for (auto& level : a.levels) {
    for (auto& damage_function : damages_to(level.keys, level.weights, level.begins))
      all.push_back(std::move(damage_function));
  }
  all.push_back([&a](Random&) {  // all ranks get the other width, which may be valid
    for (auto* keys : {&a.levels[0].keys, &a.levels[1].keys, &a.levels[2].keys, &a.items}) {
      if (const auto* narrow = std::get_if<LargeVector<std::uint16_t>>(keys)) {
        *keys = LargeVector<std::uint32_t>(narrow->begin(), narrow->end());
      }
    }
  });
  return all;
}

Damages damages_of(InvertedArrays& a) {
  return damages_to(a.sum.kernel.degree, a.sum.kernel.gamma, a.sum.coefficients, a.sum.intercept, a.sum.norms,
                    a.columns, a.dense, a.list_begins, a.lists, a.list_values);
}

Damages damages_of(BitslicedArrays& a) {
  return damages_to(a.sum.kernel.degree, a.sum.kernel.gamma, a.sum.coefficients, a.sum.intercept, a.sum.norms,
                    a.columns, a.frequent, a.bits, a.list_begins, a.lists);
}

struct Outcomes {
  int refused = 0;
  int used = 0;
};

template <class Arrays>
void use_damaged(const Arrays& valid, Random& random, Outcomes& outcomes) {
  use(valid);
  for (int round = 0; round < rounds_per_table; ++round) {
    Arrays damaged = valid;
    apply_damages(damages_of(damaged), random);
    try {
      use(damaged);
      ++outcomes.used;
    } catch (const std::invalid_argument&) { ++outcomes.refused; }
  }
}

// Both outcomes must be frequent: otherwise the damage would test only one of them.
void check_outcomes(const Outcomes& outcomes) {
  CHECK(outcomes.refused > rounds_per_table / 10 && outcomes.used > rounds_per_table / 10);
}

// --- The tables ---------------------------------------------------------------------------------------

void test_damaged_expanded_tables() {
  Random random(2);
  Outcomes outcomes;
  for (int degree = 1; degree <= 4; ++degree) {
    for (const Basis basis : {Basis::sets, Basis::monomials}) {
      const bool sets = basis == Basis::sets;
      const RandomMachine machine(12, {features, 8, sets}, degree % 2 == 0 ? 1 : 2, random);
      const FeatureMap map{degree, FeatureMap::Kind::kernel, 0.5, 1.0};
      for (const std::uint64_t head : {0U, 2U, 5U, 12U}) {
        Monitor monitor;
        const std::uint32_t fused = sets && head == 5 ? 2 : 0;
        const std::uint32_t rare_below = sets && head < 12 ? 4 : 0;
        for (const bool by_frequency : {false, true}) {
          const ExpansionPlan plan{map, basis, {fused, head, by_frequency}, {0, 0.0}, rare_below, 0.0, 1e9};
          use_damaged(expand(machine.view(), plan, 1, monitor), random, outcomes);
        }
      }
    }
  }
  check_outcomes(outcomes);
}

void test_damaged_grouped_tables() {
  Random random(5);
  Outcomes outcomes;
  for (int degree = 1; degree <= 4; ++degree) {
    for (const std::size_t scores : {1U, 2U, 5U}) {
      const RandomMachine machine(20, {features, 8, true}, scores, random);
      const FeatureMap map{degree, FeatureMap::Kind::kernel, 0.5, 1.0};
      for (const std::uint32_t grouped : {3U, 8U, 12U}) {
        Monitor monitor;
        const ExpansionPlan plan{
            map, Basis::sets, {0, 12, false}, {grouped, 400.0}, degree % 2 == 0 ? 0U : 4U, 0.0, 1e9};
        const ConjunctionArrays valid = expand(machine.view(), plan, 1, monitor);
        CHECK(!valid.states.empty());
        use_damaged(valid, random, outcomes);
      }
    }
  }
  check_outcomes(outcomes);
}

// If there are many common features, rare features are stored as lists.
void test_damaged_tables_of_items() {
  Random random(6);
  Outcomes outcomes;
  RandomMachine machine(20, {features, 8, true}, 2, random);
  machine.vectors.features = 600;
  std::vector<std::int32_t> columns(600);
  for (std::int32_t k = 0; k < 600; ++k) columns[static_cast<std::size_t>(k)] = k;
  for (int j = 0; j < 2; ++j) {
    machine.vectors.add(j == 0 ? std::span(columns) : std::span(columns).first(590),
                        std::vector<double>(j == 0 ? 600 : 590, 1.0));
    for (int score = 0; score < 2; ++score) machine.coefficients.push_back(uniform(random));
  }
  Monitor monitor;
  const ExpansionPlan plan{
      {2, FeatureMap::Kind::kernel, 0.5, 1.0}, Basis::sets, {0, 3, false}, {0, 0.0}, 2, 0.0, 1e9};
  const ConjunctionArrays valid = expand(machine.view(), plan, 1, monitor);
  CHECK(valid.posting_records.empty() && valid.posting_begins.back() > 0);
  use_damaged(valid, random, outcomes);
  check_outcomes(outcomes);
}

// --- Tries over valid tables --------------------------------------------------------------------------

void use(ConjunctionEngine& engine, const PrefixTrie& trie) {
  engine.set_trie(std::make_shared<const PrefixTrie>(trie));
  use(engine);
  Monitor monitor;
  for (const Saving saving : {Saving::counted, Saving::entries}) {
    (void)engine.prune(trie, 2, saving);
    engine.set_trie(
        std::make_shared<const PrefixTrie>(engine.grow(&trie, all_rows().view(), 40, saving, 1, monitor)));
    use(engine);
  }
}

void test_damaged_prefix_tries() {
  Random random(7);
  Outcomes outcomes;
  for (int degree = 1; degree <= 4; ++degree) {
    const RandomMachine machine(20, {features, 8, true}, degree % 2 == 0 ? 1 : 3, random);
    for (const std::uint64_t head : {0U, 4U, 12U}) {
      Monitor monitor;
      const FeatureMap map{degree, FeatureMap::Kind::kernel, 0.5, 1.0};
      const ConjunctionArrays arrays =
          expand(machine.view(), {map, Basis::sets, {0, head, true}, {0, 0.0}, 3, 0.0, 1e9}, 1, monitor);
      const auto engine = make_conjunction_engine(borrow(arrays));
      const PrefixTrie valid = engine->grow(nullptr, machine.vectors.view(), 60, Saving::counted, 1, monitor);
      use(*engine, valid);
      for (int round = 0; round < rounds_per_table; ++round) {
        PrefixTrie damaged = valid;
        apply_damages(damages_to(damaged.first_child, damaged.ranks, damaged.counts, damaged.sums), random);
        try {
          use(*engine, damaged);
          ++outcomes.used;
        } catch (const std::invalid_argument&) { ++outcomes.refused; }
      }
    }
  }
  check_outcomes(outcomes);
}

// --- Tables that must be refused ----------------------------------------------------------------------

// Makes tables in which ranks 0 .. 3 are common and ranks 4 .. 6 are rare. Ranks have 32 bits, because arrays
// indexed by 16-bit ranks are longer than the number of ranks.
ConjunctionArrays make_tables_with_records() {
  Rows<std::int32_t> rows;
  rows.features = 7;
  const std::vector<double> ones(7, 1.0);
  for (int j = 0; j < 5; ++j) rows.add(std::vector<std::int32_t>{0, 1, 2, 3}, std::span(ones).first(4));
  rows.add(std::vector<std::int32_t>{0, 2, 4, 5, 6}, std::span(ones).first(5));
  rows.add(std::vector<std::int32_t>{1, 5, 6}, std::span(ones).first(3));
  const std::vector<double> coefficients(7, 0.5);
  const std::vector<double> intercept{0.0};
  Monitor monitor;
  ConjunctionArrays arrays =
      expand({rows.view(), coefficients, intercept},
             {{2, FeatureMap::Kind::kernel, 1.0, 1.0}, Basis::sets, {0, 2, false}, {0, 0.0}, 3, 0.0, 1e9}, 1,
             monitor);
  for (auto* keys : {&arrays.levels[0].keys, &arrays.levels[1].keys, &arrays.levels[2].keys, &arrays.items}) {
    const auto narrow = std::get<LargeVector<std::uint16_t>>(*keys);
    *keys = LargeVector<std::uint32_t>(narrow.begin(), narrow.end());
  }
  return arrays;
}

void test_records_out_of_range_are_refused() {
  const ConjunctionArrays valid = make_tables_with_records();
  use(valid);
  CHECK(valid.rare == 4 && valid.bit_words() == 2 &&
        valid.posting_records.size() == 5 * valid.record_words());
  for (const int bit : {4, 63, 64, 127}) {  // only ranks below 4 are common
    ConjunctionArrays out_of_range = valid;
    out_of_range.posting_records[static_cast<std::size_t>(bit / 64)] |= std::uint64_t{1} << bit % 64;
    CHECK_THROWS(check(borrow(out_of_range)), std::invalid_argument);
  }
  ConjunctionArrays one_vector = valid;  // all records belong to one vector, which has too many of them
  for (std::size_t end = valid.record_words(); end <= one_vector.posting_records.size();
       end += valid.record_words())
    one_vector.posting_records[end - 1] = 1;
  CHECK_THROWS(check(borrow(one_vector)), std::invalid_argument);
  ConjunctionArrays unknown_vector = valid;
  unknown_vector.posting_records.back() = 5;
  CHECK_THROWS(check(borrow(unknown_vector)), std::invalid_argument);
}

// The number of sums exceeds 64 bits, or only appears to be small.
void test_too_many_states_are_refused() {
  ConjunctionArrays arrays = make_tables_with_records();
  arrays.map.degree = 4;
  for (const std::uint32_t states : {200'000U, 70'000U, 3'000U}) {
    std::vector<double> counts(4, states);
    const double sums = unkernel::engines::count_state_sums(counts, 4);
    const double n = states;
    CHECK(std::abs(sums / (4 * n + 6 * n * n + 4 * n * n * n + n * n * n * n) - 1.0) < 1e-12);
    ConjunctionArrays hostile = arrays;
    hostile.group_begins = {0, 1, 2, 2, 2};
    hostile.state_begins = {0, states, 2 * states, 3 * states, 4 * states};
    hostile.states.assign(4 * states, 1);
    CHECK_THROWS(check(borrow(hostile)), std::invalid_argument);
  }
  const std::vector<double> one_group{3e6};
  CHECK(unkernel::engines::count_state_sums(one_group, 4) == 3e6);
}

void test_tries_are_refused_for_unsuitable_tables() {
  Random random(8);
  const RandomMachine machine(20, {features, 8, true}, 1, random);
  const FeatureMap map{3, FeatureMap::Kind::kernel, 0.5, 1.0};
  const PrefixTrie root{{1, 1}, {0}, {0}, {0.0}};
  const auto set_trie = [&](Basis basis, const unkernel::engines::HeadPlan& head, std::uint32_t grouped) {
    Monitor monitor;
    const ConjunctionArrays arrays =
        expand(machine.view(), {map, basis, head, {grouped, 1e4}, 0, 0.0, 1e9}, 1, monitor);
    const auto engine = make_conjunction_engine(borrow(arrays));
    engine->set_trie(std::make_shared<const PrefixTrie>(root));
    use(*engine);
  };
  CHECK_THROWS(set_trie(Basis::monomials, {0, 6, true}, 0), std::invalid_argument);
  CHECK_THROWS(set_trie(Basis::sets, {2, 6, false}, 0), std::invalid_argument);
  CHECK_THROWS(set_trie(Basis::sets, {0, 6, false}, 6), std::invalid_argument);
  // Ordering by columns is accepted, because it happens to equal the order by frequency.
  for (const std::uint64_t head : {0U, 1U, 2U, 12U}) {
    set_trie(Basis::sets, {0, head, true}, 0);
    set_trie(Basis::sets, {0, head, false}, 0);
  }
}

// Partners are stored in hash tables if there are many of them.
void test_damaged_tables_with_many_partners() {
  Random random(3);
  Outcomes outcomes;
  for (const int degree : {2, 3}) {
    RandomModel model({Basis::sets, {degree, FeatureMap::Kind::kernel, 0.5, 1.0}, 30, 30, 1}, random);
    model.add(brute_force::all_conjunctions(30, degree, Basis::sets), random);
    use_damaged(arrange(model.view(), {0, 3, false}, {0, 0.0}, {}, 1), random, outcomes);
  }
  check_outcomes(outcomes);
}

void test_damaged_tables_of_support_vectors() {
  Random random(4);
  Outcomes outcomes;
  for (const KernelFunction::Type type : {KernelFunction::Type::polynomial, KernelFunction::Type::rbf}) {
    for (const std::size_t scores : {1U, 2U}) {
      const KernelFunction kernel{type, 3, 0.5, 1.0};
      for (const bool binary : {true, false}) {
        const RandomMachine machine(20, {features, 8, binary}, scores, random);
        use_damaged(InvertedArrays(machine, kernel, binary), random, outcomes);
        if (binary) use_damaged(BitslicedArrays(machine, kernel, 4), random, outcomes);
      }
    }
  }
  check_outcomes(outcomes);
}

}  // namespace

int main() {
  test_damaged_expanded_tables();
  test_damaged_grouped_tables();
  test_damaged_tables_of_items();
  test_damaged_prefix_tries();
  test_records_out_of_range_are_refused();
  test_too_many_states_are_refused();
  test_tries_are_refused_for_unsuitable_tables();
  test_damaged_tables_with_many_partners();
  test_damaged_tables_of_support_vectors();
  return 0;
}
