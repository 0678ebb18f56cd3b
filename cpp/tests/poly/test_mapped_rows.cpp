// Compares on-the-fly and condensed rows with the explicit feature map.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/close.hpp"
#include "check.hpp"
#include "engines/brute_force.hpp"
#include "poly/random_examples.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/poly/condensed_rows.hpp"
#include "unkernel/poly/on_the_fly_rows.hpp"
#include "unkernel/solve/row_view.hpp"

namespace {

using unkernel::Monitor;
using unkernel::Random;
using unkernel::kernels::Basis;
using unkernel::kernels::FeatureMap;
using unkernel::kernels::Key;
using unkernel::poly::CondensedRows;
using unkernel::poly::DistinctRows;
using unkernel::poly::OnTheFlyRows;

static_assert(unkernel::solve::KernelView<OnTheFlyRows<2, true>>);
static_assert(unkernel::solve::KernelView<CondensedRows<3, false, std::uint16_t>>);

struct Entry {
  double monomial;          // m_T(x)
  double squared_constant;  // c_T^2
};
using Mapped = std::map<Key, Entry>;

struct Twin {
  Twin(const DistinctRows& examples, const FeatureMap& map, bool binary)
      : basis(binary ? Basis::sets : Basis::monomials),
        number(static_cast<std::uint64_t>(examples.used_features()), map.degree, basis) {
    for (std::int64_t i = 0; i < examples.rows(); ++i) rows.push_back(map_row(examples, map, i));
  }

  Mapped map_row(const DistinctRows& examples, const FeatureMap& map, std::int64_t i) const {
    brute_force::Ranks ranks;
    std::map<std::uint64_t, double> values;
    for (auto k = examples.offsets[static_cast<std::size_t>(i)];
         k < examples.offsets[static_cast<std::size_t>(i) + 1]; ++k) {
      const auto position = static_cast<std::size_t>(k);
      ranks.push_back(static_cast<std::uint64_t>(examples.features[position]));
      values[ranks.back()] = examples.binary() ? 1.0 : examples.values[position];
    }
    Mapped row;
    for (const auto& conjunction : brute_force::conjunctions(ranks, map.degree, basis)) {
      double product = 1.0;
      for (const auto rank : conjunction) product *= values[rank];
      row[number(conjunction)] = {product, brute_force::squared_constant(map, basis, conjunction)};
    }
    return row;
  }

  double kernel(std::size_t i, std::size_t j) const {
    double sum = 0.0;
    for (const auto& [key, entry] : rows[i]) {
      if (const auto other = rows[j].find(key); other != rows[j].end()) {
        sum += entry.squared_constant * entry.monomial * other->second.monomial;
      }
    }
    return sum;
  }

  std::set<Key> occurring_keys() const {
    std::set<Key> keys{0};
    for (const Mapped& row : rows) {
      for (const auto& entry : row) keys.insert(entry.first);
    }
    return keys;
  }

  Basis basis;
  brute_force::Numbering number;
  std::vector<Mapped> rows;
};

// Returns the key of the conjunction at each position of a view's weight vector.
template <class Rows>
std::vector<Key> keys_of(const Rows& rows) {
  if constexpr (requires { rows.columns(); }) {
    return rows.columns().keys;
  } else {
    std::vector<Key> keys(rows.dimension());
    std::iota(keys.begin(), keys.end(), Key{0});
    return keys;
  }
}

// Returns a distinct weight for each conjunction, independent of its place.
double weight_of(Key key) { return static_cast<double>(Random::mix(key + 1) >> 40) / (1 << 24) - 0.5; }

template <class Rows>
void check_dot(const Rows& rows, const Twin& twin, const std::vector<Key>& keys) {
  std::vector<double> weights;
  for (const Key key : keys) weights.push_back(weight_of(key));
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    double expected = 0.0;
    for (const auto& [key, entry] : twin.rows[static_cast<std::size_t>(i)])
      expected += entry.monomial * weight_of(key);
    CHECK(close(rows.dot(i, weights.data()), expected));
  }
}

template <class Rows>
void check_axpy(const Rows& rows, const Twin& twin, const std::vector<Key>& keys) {
  std::vector<double> weights(rows.dimension(), 0.0);
  std::map<Key, double> expected;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const double step = 0.25 * static_cast<double>(i % 5) - 0.4;
    rows.axpy(i, step, weights.data());
    for (const auto& [key, entry] : twin.rows[static_cast<std::size_t>(i)]) {
      expected[key] += step * entry.squared_constant * entry.monomial;
    }
  }
  for (std::size_t column = 0; column < keys.size(); ++column)
    CHECK(close(weights[column], expected[keys[column]]));
}

template <class Rows>
void check_kernel(const Rows& rows, const Twin& twin) {
  std::vector<std::int32_t> subset;
  const auto step_between_rows = static_cast<std::int32_t>(1 + rows.size() / 40);
  for (std::int32_t i = 0; i < rows.size(); i += step_between_rows) subset.push_back(i);
  const std::vector<double> gram = rows.gram(subset, 1);
  CHECK(rows.gram(subset, 3) == gram);
  for (std::size_t i = 0; i < subset.size(); ++i) {
    for (std::size_t j = 0; j < subset.size(); ++j) {
      const double expected =
          twin.kernel(static_cast<std::size_t>(subset[i]), static_cast<std::size_t>(subset[j]));
      CHECK(close(gram[i * subset.size() + j], expected));
    }
  }
  double map_row = 0.0;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    CHECK(close(rows.squared_norm(i), twin.kernel(static_cast<std::size_t>(i), static_cast<std::size_t>(i))));
    map_row += static_cast<double>(twin.rows[static_cast<std::size_t>(i)].size());
    rows.prefetch_header(i);
    rows.prefetch(i);
  }
  CHECK(close(rows.mean_map_size() * static_cast<double>(rows.size()), map_row));
}

// There is one column per conjunction that occurs. The columns of conjunctions whose first member is a rank
// are contiguous, and begin with the rank alone.
template <class Rows>
void check_columns(const Rows& rows, const Twin& twin, std::int64_t used_features) {
  const auto& [segments, keys] = rows.columns();
  CHECK(rows.dimension() == keys.size() && keys[0] == 0);
  CHECK(std::set<Key>(keys.begin(), keys.end()) == twin.occurring_keys());
  CHECK(keys.size() == twin.occurring_keys().size());
  CHECK(segments.size() == static_cast<std::size_t>(used_features) + 1 && segments[0] == 1);
  CHECK(segments.back() == static_cast<std::int64_t>(keys.size()));
  for (std::uint64_t rank = 0; rank + 1 < segments.size(); ++rank) {
    const auto first = static_cast<std::size_t>(segments[rank]);
    const auto last = static_cast<std::size_t>(segments[rank + 1]);
    CHECK(keys[first] == twin.number({rank}));
    for (std::size_t column = first; column < last; ++column) {
      CHECK(keys[column] >= twin.number({rank}));
      CHECK(rank + 2 == segments.size() || keys[column] < twin.number({rank + 1}));
    }
  }
}

template <class Rows>
void check_view(const Rows& rows, const Twin& twin) {
  const std::vector<Key> keys = keys_of(rows);
  CHECK(keys.size() == rows.dimension());
  check_dot(rows, twin, keys);
  check_axpy(rows, twin, keys);
  check_kernel(rows, twin);
}

template <int Degree, bool Binary, class Local>
void check_condensed(const DistinctRows& examples, const FeatureMap& map, const Twin& twin) {
  const Monitor monitor;
  const CondensedRows<Degree, Binary, Local> rows(examples, map, 1, monitor);
  check_view(rows, twin);
  check_columns(rows, twin, examples.used_features());
  const CondensedRows<Degree, Binary, Local> threaded(examples, map, 3, monitor);
  CHECK(threaded.columns().keys == rows.columns().keys &&
        threaded.columns().segments == rows.columns().segments);
  check_dot(threaded, twin, keys_of(threaded));
}

template <int Degree, bool Binary>
void test_all_views_equal_the_explicit_map() {
  const RandomRows<std::int32_t> input = random_rows<std::int32_t>(60, {12, 7, Binary}, 10 * Degree + Binary);
  const DistinctRows examples = input.examples();
  CHECK(examples.binary() == Binary);
  for (const FeatureMap& map : {FeatureMap{Degree, FeatureMap::Kind::kernel, 0.5, 2.0},
                                FeatureMap{Degree, FeatureMap::Kind::kernel, 1.5, 0.0},
                                FeatureMap{Degree, FeatureMap::Kind::plain, 1.0, 1.0}}) {
    const Twin twin(examples, map, Binary);
    const OnTheFlyRows<Degree, Binary> on_the_fly(examples, map);
    CHECK(on_the_fly.dimension() == twin.number.count());
    check_view(on_the_fly, twin);
    if constexpr (Degree > 1) {
      check_condensed<Degree, Binary, std::uint16_t>(examples, map, twin);
      check_condensed<Degree, Binary, std::uint32_t>(examples, map, twin);
    }
  }
}

// With more possible conjunctions than bits, they are numbered feature by feature. From 1,450 features on, a
// block of degree 3 is too large for an array and is hashed.
template <int Degree, bool Binary>
void test_more_possible_conjunctions_than_bits(std::int64_t features, std::uint32_t longest_segment_of_twin) {
  RandomRows<std::int32_t> input;
  input.features = features;
  const std::vector<double> values(longest_segment_of_twin, Binary ? 1.0 : 0.5);
  for (std::int32_t first = 0; first < features;
       first += static_cast<std::int32_t>(longest_segment_of_twin) - 1) {
    std::set<std::int32_t> columns{static_cast<std::int32_t>(features) - 1};
    for (std::int32_t c = first; columns.size() < longest_segment_of_twin; ++c)
      columns.insert(c % static_cast<std::int32_t>(features));
    const std::vector<std::int32_t> row(columns.begin(), columns.end());
    input.add(row, values, 0, 1.0);
    input.add(std::span(row).first(5), std::span(values).first(5), 1, 1.0);
  }
  const DistinctRows examples = input.examples();
  CHECK(examples.used_features() == features);
  const FeatureMap map{Degree, FeatureMap::Kind::kernel, 0.5, 2.0};
  const Twin twin(examples, map, Binary);
  CHECK(twin.number.count() > Key{1} << 28);
  check_condensed<Degree, Binary, std::uint16_t>(examples, map, twin);
  check_condensed<Degree, Binary, std::uint32_t>(examples, map, twin);
}

// Segments may not be longer than the bound that decides between columns of two and of four bytes.
void test_longest_segment_is_an_upper_bound() {
  for (const bool binary : {true, false}) {
    for (int degree = 2; degree <= 3; ++degree) {
      for (const std::int64_t count : {1, 20, 400}) {
        const DistinctRows examples = random_rows<std::int32_t>(count, {15, 6, binary}, 40).examples();
        const FeatureMap map{degree, FeatureMap::Kind::kernel, 1.0, 1.0};
        const Twin twin(examples, map, binary);
        const std::set<Key> keys = twin.occurring_keys();
        std::int64_t longest_segment_of_twin = 0;
        for (std::uint64_t a = 0; a < static_cast<std::uint64_t>(examples.used_features()); ++a) {
          const auto begin = keys.lower_bound(twin.number({a}));
          const auto next = a + 1 < static_cast<std::uint64_t>(examples.used_features())
                                ? keys.lower_bound(twin.number({a + 1}))
                                : keys.end();
          longest_segment_of_twin =
              std::max(longest_segment_of_twin, static_cast<std::int64_t>(std::distance(begin, next)));
        }
        const std::int64_t bound = unkernel::poly::longest_segment(examples, degree);
        CHECK(bound >= longest_segment_of_twin);
        CHECK(count > 1 ||
              bound == std::max<std::int64_t>(longest_segment_of_twin, 1));  // exact if there is only one row
      }
    }
  }
}

// One long row, whose longest segment has nearly 65,536 conjunctions, the most that two bytes can number.
void test_the_longest_segment_that_two_bytes_can_number() {
  RandomRows<std::int32_t> input;
  input.features = 362;
  std::vector<std::int32_t> columns(362);
  std::iota(columns.begin(), columns.end(), 0);
  const std::vector<double> ones(362, 1.0);
  // Sets of degree 3: the segment of position a has 1 + a + C(a, 2) conjunctions; 65,342 of them at a = 361.
  input.add(columns, ones, 0, 1.0);
  const DistinctRows examples = input.examples();
  const std::int64_t bound = unkernel::poly::longest_segment(examples, 3);
  CHECK(bound == 1 + 361 + 361 * 360 / 2 && bound <= 65536);
  const FeatureMap map{3, FeatureMap::Kind::kernel, 1.0, 1.0};
  const Monitor monitor;
  const CondensedRows<3, true, std::uint16_t> two_bytes(examples, map, 1, monitor);
  const CondensedRows<3, true, std::uint32_t> four_bytes(examples, map, 1, monitor);
  CHECK(two_bytes.columns().keys == four_bytes.columns().keys);
  std::vector<double> weights;
  for (const Key key : two_bytes.columns().keys) weights.push_back(weight_of(key));
  CHECK(two_bytes.dot(0, weights.data()) == four_bytes.dot(0, weights.data()));
  double sum = 0.0;
  for (const double weight : weights) sum += weight;
  CHECK(close(two_bytes.dot(0, weights.data()), sum, 1e-9));
}

void test_a_stopped_monitor_interrupts_condensing() {
  const DistinctRows examples = random_rows<std::int32_t>(50, {12, 7, true}, 50).examples();
  Monitor monitor;
  monitor.stop();
  const FeatureMap map{2, FeatureMap::Kind::kernel, 1.0, 1.0};
  CHECK_THROWS((CondensedRows<2, true, std::uint16_t>(examples, map, 1, monitor)), unkernel::Interrupted);
}

}  // namespace

int main() {
  test_all_views_equal_the_explicit_map<1, true>();
  test_all_views_equal_the_explicit_map<1, false>();
  test_all_views_equal_the_explicit_map<2, true>();
  test_all_views_equal_the_explicit_map<2, false>();
  test_all_views_equal_the_explicit_map<3, true>();
  test_all_views_equal_the_explicit_map<3, false>();
  test_more_possible_conjunctions_than_bits<3, true>(1600, 12);
  test_more_possible_conjunctions_than_bits<3, false>(1300, 10);
  test_more_possible_conjunctions_than_bits<2, true>(24'000, 60);
  test_longest_segment_is_an_upper_bound();
  test_the_longest_segment_that_two_bytes_can_number();
  test_a_stopped_monitor_interrupts_condensing();
  return 0;
}
