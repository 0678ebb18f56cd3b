#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "engines/brute_force.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunction_engine.hpp"

namespace {

using brute_force::Ranks;
using unkernel::Random;
using unkernel::data::CsrView;
using unkernel::engines::Basis;
using unkernel::engines::ConjunctionEngine;
using unkernel::engines::ConjunctionWeights;
using unkernel::engines::FeatureMap;
using unkernel::engines::Key;

struct Shape {
  Basis basis;
  FeatureMap map;
  std::uint64_t used;
  std::int64_t features;
  std::size_t scores;
};

double uniform(Random& random) { return random.below(2001) / 1000.0 - 1.0; }

struct Model {
  Shape shape;
  std::vector<std::int64_t> columns;
  std::vector<Key> keys;
  std::vector<double> weights;
  std::vector<double> constants;
  std::map<Ranks, std::size_t> places;  // the twin's own index: which conjunction has which row of weights

  // Columns in no particular order, all different; the weights come later.
  Model(const Shape& like, Random& random) : shape(like) {
    const auto stride = static_cast<std::uint64_t>(shape.features) / shape.used;
    for (std::uint64_t rank = 0; rank < shape.used; ++rank) columns.push_back(static_cast<std::int64_t>(rank * stride));
    random.shuffle(std::span(columns));
    for (std::size_t s = 0; s < shape.scores; ++s) constants.push_back(uniform(random));
  }

  void add(std::vector<Ranks> chosen, Random& random) {
    const brute_force::Numbering number(shape.used, shape.map.degree, shape.basis);
    std::map<Key, Ranks> by_key;
    for (Ranks& ranks : chosen) {
      if (!ranks.empty()) by_key.emplace(number(ranks), std::move(ranks));
    }
    for (auto& [key, ranks] : by_key) {
      places.emplace(std::move(ranks), keys.size());
      keys.push_back(key);
      for (std::size_t s = 0; s < shape.scores; ++s) weights.push_back(uniform(random));
    }
  }

  ConjunctionWeights view() const {
    return {shape.basis, shape.map, shape.features, columns, keys, weights, constants};
  }
};

template <class Index>
struct Rows {
  std::vector<Index> offsets{0};
  std::vector<Index> columns;
  std::vector<double> values;
  std::int64_t features;

  CsrView<Index, double> view() const { return {offsets, columns, values, features}; }
};

Ranks some_ranks(std::uint64_t used, std::size_t size, Random& random) {
  std::set<std::uint64_t> ranks;
  while (ranks.size() < std::min<std::uint64_t>(size, used)) ranks.insert(random.below(static_cast<std::uint32_t>(used)));
  return {ranks.begin(), ranks.end()};
}

enum class Values { ones, mixed };

// Also: entries in any order, explicit zeros, and columns that no rank has, where there are any.
template <class Index>
void add_row(const Model& model, const Ranks& ranks, Values values, Random& random, Rows<Index>& rows) {
  std::vector<std::pair<std::int64_t, double>> entries;
  for (const auto rank : ranks) {
    const double value = values == Values::ones ? 1.0 : random.below(5) == 0 ? 0.0 : uniform(random);
    entries.emplace_back(model.columns[rank], value);
  }
  if (model.shape.features > static_cast<std::int64_t>(model.shape.used)) {
    std::int64_t unseen = model.shape.features - 1;
    while (std::find(model.columns.begin(), model.columns.end(), unseen) != model.columns.end()) --unseen;
    entries.emplace_back(unseen, 5.0);
  }
  random.shuffle(std::span(entries));
  for (const auto& [column, value] : entries) {
    rows.columns.push_back(static_cast<Index>(column));
    rows.values.push_back(value);
  }
  rows.offsets.push_back(static_cast<Index>(rows.columns.size()));
}

template <class Index>
std::vector<double> slow_scores(const Model& model, const Rows<Index>& rows, std::size_t row) {
  std::map<std::uint64_t, double> present;  // by rank, ascending
  for (auto k = static_cast<std::size_t>(rows.offsets[row]); k < static_cast<std::size_t>(rows.offsets[row + 1]); ++k) {
    const auto found = std::find(model.columns.begin(), model.columns.end(), static_cast<std::int64_t>(rows.columns[k]));
    if (found == model.columns.end() || rows.values[k] == 0.0) continue;
    present[static_cast<std::uint64_t>(found - model.columns.begin())] = rows.values[k];
  }
  Ranks candidates;
  for (const auto& entry : present) candidates.push_back(entry.first);
  std::vector<double> scores = model.constants;
  for (const Ranks& ranks : brute_force::conjunctions(candidates, model.shape.map.degree, model.shape.basis)) {
    const auto place = model.places.find(ranks);
    if (place == model.places.end()) continue;
    std::vector<double> values;
    for (const auto rank : ranks) values.push_back(present[rank]);
    const double factor = brute_force::factor(model.shape.map, model.shape.basis, values);
    for (std::size_t s = 0; s < scores.size(); ++s) {
      scores[s] += factor * model.weights[place->second * model.shape.scores + s];
    }
  }
  return scores;
}

template <class Index>
std::vector<double> engine_scores(const ConjunctionEngine& engine, const Rows<Index>& rows, int threads) {
  std::vector<double> out((rows.offsets.size() - 1) * engine.scores(), std::nan(""));
  engine.score(rows.view(), out, threads);
  return out;
}

template <class Index>
void check_scores(const Model& model, const Rows<Index>& rows) {
  const ConjunctionEngine engine(model.view());
  CHECK(engine.scores() == model.shape.scores && engine.features() == model.shape.features);
  const std::vector<double> out = engine_scores(engine, rows, 1);
  for (std::size_t row = 0; row + 1 < rows.offsets.size(); ++row) {
    const std::vector<double> expected = slow_scores(model, rows, row);
    for (std::size_t s = 0; s < expected.size(); ++s) CHECK(close(out[row * expected.size() + s], expected[s]));
  }
}

// Conjunctions of the rows themselves (half of them) and of no row at all.
template <class Index>
void check_random_model(const Shape& shape, std::size_t row_size, Random& random) {
  Model model(shape, random);
  Rows<Index> rows;
  rows.features = shape.features;
  std::vector<Ranks> chosen;
  for (int row = 0; row < 12; ++row) {
    const Ranks ranks = row == 5 ? Ranks{} : some_ranks(shape.used, row_size, random);
    add_row(model, ranks, row % 3 == 0 ? Values::ones : Values::mixed, random, rows);
    for (Ranks& conjunction : brute_force::conjunctions(ranks, shape.map.degree, shape.basis)) {
      if (random.below(2) == 0) chosen.push_back(std::move(conjunction));
    }
    chosen.push_back(some_ranks(shape.used, 1, random));
  }
  model.add(std::move(chosen), random);
  check_scores(model, rows);
}

std::vector<FeatureMap> maps(int degree) {
  return {{degree, FeatureMap::Kind::kernel, 0.5, 2.0},
          {degree, FeatureMap::Kind::kernel, 1.0, 0.0},
          {degree, FeatureMap::Kind::plain, 1.0, 1.0}};
}

// coef0 = 0 under a model of sets is a degenerate map: only conjunctions that it has may have weights.
bool has_all_sets(const FeatureMap& map) { return map.set(1) > 0.0 && (map.degree < 2 || map.set(2) > 0.0); }

void test_equals_the_sum_over_conjunctions() {
  Random random(1);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (int degree = 1; degree <= 3; ++degree) {
      for (const FeatureMap& map : maps(degree)) {
        CHECK(has_all_sets(map));
        for (const std::size_t scores : {1U, 2U, 3U}) {
          check_random_model<std::int32_t>({basis, map, 9, 9, scores}, 5, random);
          check_random_model<std::int64_t>({basis, map, 40, 60, scores}, 6, random);
        }
      }
    }
  }
}

// So many features that only the first of them have a dense table.
void test_equals_the_sum_where_a_part_is_hashed() {
  Random random(2);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (const std::size_t scores : {1U, 4U}) {
      check_random_model<std::int32_t>({basis, maps(1)[0], 600'000, 600'001, scores}, 8, random);
      check_random_model<std::int32_t>({basis, maps(2)[0], 4'000, 5'000, scores}, 20, random);
      check_random_model<std::int64_t>({basis, maps(3)[0], 400, 500, scores}, 10, random);
      check_random_model<std::int64_t>({basis, maps(3)[2], 2'000, std::int64_t{1} << 40, scores}, 10, random);
    }
  }
}

// A row reaches beyond the dense table, and no conjunction there has a weight: there is no hash table.
void test_a_dense_part_alone_answers_for_all_features() {
  Random random(3);
  for (const Basis basis : {Basis::sets, Basis::monomials}) {
    for (int degree = 2; degree <= 3; ++degree) {
      Model model({basis, maps(degree)[0], 3'000, 3'000, 1}, random);
      model.add({{0}, {1, 0}, {2}}, random);
      Rows<std::int32_t> rows;
      rows.features = 3'000;
      add_row(model, {0, 1, 2, 1'000, 2'999}, Values::ones, random, rows);
      add_row(model, {0, 2'998, 2'999}, Values::mixed, random, rows);
      check_scores(model, rows);
    }
  }
}

void test_no_conjunctions_and_no_features() {
  Random random(4);
  Model model({Basis::sets, maps(2)[0], 5, 7, 2}, random);
  Rows<std::int32_t> rows;
  rows.features = 7;
  add_row(model, {1, 2}, Values::ones, random, rows);
  add_row(model, {}, Values::ones, random, rows);
  check_scores(model, rows);
  model.columns.clear();
  check_scores(model, rows);
}

void test_threads_change_nothing() {
  Random random(5);
  Model model({Basis::monomials, maps(2)[0], 4'000, 4'000, 3}, random);
  Rows<std::int32_t> rows;
  rows.features = 4'000;
  std::vector<Ranks> chosen;
  for (int row = 0; row < 3000; ++row) {
    const Ranks ranks = some_ranks(4'000, 8, random);
    add_row(model, ranks, Values::mixed, random, rows);
    if (row % 10 == 0) chosen.push_back({ranks[7], ranks[3]});
    chosen.push_back({ranks[7]});
  }
  model.add(std::move(chosen), random);
  const ConjunctionEngine engine(model.view());
  const std::vector<double> alone = engine_scores(engine, rows, 1);
  for (const int threads : {2, 5}) CHECK(engine_scores(engine, rows, threads) == alone);
}

template <class Damage>
void check_refused(const Damage& damage) {
  Random random(6);
  Model model({Basis::sets, maps(2)[0], 6, 8, 2}, random);
  model.add({{0}, {3}, {5, 2}}, random);
  (void)ConjunctionEngine(model.view());
  damage(model);
  CHECK_THROWS(ConjunctionEngine(model.view()), std::invalid_argument);
}

void test_what_is_not_a_model_is_refused() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  check_refused([](Model& m) { m.keys[0] = 0; });
  check_refused([](Model& m) { m.keys[1] = m.keys[0]; });
  check_refused([](Model& m) { std::swap(m.keys[0], m.keys[1]); });
  check_refused([](Model& m) { m.keys.back() = 1 + 6 + 15; });  // one more than 6 features have
  check_refused([](Model& m) { m.keys.back() = static_cast<Key>(-1); });
  check_refused([](Model& m) { m.columns[2] = 8; });
  check_refused([](Model& m) { m.columns[2] = -1; });
  check_refused([](Model& m) { m.columns[2] = m.columns[4]; });
  check_refused([](Model& m) { m.columns.resize(4); });  // a key speaks of rank 5
  check_refused([](Model& m) { m.weights.pop_back(); });
  check_refused([](Model& m) { m.weights.clear(); });
  check_refused([&](Model& m) { m.weights[3] = nan; });
  check_refused([&](Model& m) { m.weights[3] = -infinity; });
  check_refused([&](Model& m) { m.constants[0] = nan; });
  check_refused([](Model& m) { m.constants.pop_back(); });
  check_refused([](Model& m) {
    m.constants.clear();
    m.weights.clear();
    m.keys.clear();
  });
  check_refused([](Model& m) { m.shape.map.degree = 4; });
  check_refused([](Model& m) { m.shape.map.degree = 1; });  // keys beyond the six singles
}

void test_rows_that_do_not_fit_are_refused() {
  Random random(7);
  Model model({Basis::sets, maps(2)[0], 6, 8, 1}, random);
  model.add({{0}, {5, 2}}, random);
  const ConjunctionEngine engine(model.view());
  std::vector<double> out(1);
  const std::vector<std::int32_t> offsets{0, 1};
  const std::vector<double> values{1.0};
  for (const std::int32_t column : {-1, 8, 1 << 30}) {
    const std::vector<std::int32_t> columns{column};
    CHECK_THROWS(engine.score(CsrView<std::int32_t, double>{offsets, columns, values, 8}, out, 1), std::invalid_argument);
  }
  const std::vector<std::int32_t> columns{1};
  for (const std::int64_t features : {7, 9}) {
    CHECK_THROWS(engine.score(CsrView<std::int32_t, double>{offsets, columns, values, features}, out, 1),
                 std::invalid_argument);
  }
}

}  // namespace

int main() {
  test_equals_the_sum_over_conjunctions();
  test_equals_the_sum_where_a_part_is_hashed();
  test_a_dense_part_alone_answers_for_all_features();
  test_no_conjunctions_and_no_features();
  test_threads_change_nothing();
  test_what_is_not_a_model_is_refused();
  test_rows_that_do_not_fit_are_refused();
  return 0;
}
