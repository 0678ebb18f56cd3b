// Compares the feature index with a map, for templates of one value, of several values, and of so many values
// that their keys exceed 63 bits.
#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "check.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/parsing/features/feature_index.hpp"
#include "unkernel/parsing/features/feature_rows.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::parsing;

constexpr std::size_t wide = std::size_t{1} << 30;
const std::vector<TemplateRanges> templates{
    {5}, {3, 4}, {wide, 9, wide}, {wide, wide, wide, 2, wide, wide, 3, wide}};

using Slow = std::map<std::pair<std::size_t, std::vector<FeatureValue>>, std::int32_t>;

std::vector<FeatureValue> draw_values(const TemplateRanges& ranges, Random& random) {
  std::vector<FeatureValue> values;
  for (const std::size_t range : ranges) {
    const std::uint32_t distance = random.below(4);  // a few values at both ends of the range
    const auto value = static_cast<FeatureValue>(distance % range);
    values.push_back(random.below(2) == 0 ? value : static_cast<FeatureValue>(range) - 1 - value);
  }
  return values;
}

auto as_function(const std::vector<FeatureValue>& values) {
  return [&values](std::size_t k) { return values[k]; };
}

void check_same(const FeatureIndex& index, const Slow& slow) {
  CHECK(static_cast<std::size_t>(index.columns()) == slow.size());
  for (const auto& [feature, column] : slow)
    CHECK(index.find(feature.first, as_function(feature.second)) == column);
  std::size_t n_features = 0;
  for (std::size_t t = 0; t < index.templates(); ++t) {
    std::int32_t previous_column = -1;
    index.for_each(t, [&](std::span<const FeatureValue> values, std::int32_t column) {
      CHECK(column > previous_column && slow.at({t, {values.begin(), values.end()}}) == column);
      previous_column = column;
      ++n_features;
    });
  }
  CHECK(n_features == slow.size());
}

void test_the_index_equals_a_map() {
  Random random(1);
  FeatureIndex index(templates);
  Slow slow;
  CHECK(index.has_keys(0) && index.has_keys(1) && !index.has_keys(2) && !index.has_keys(3));
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t t = random.below(static_cast<std::uint32_t>(templates.size()));
    std::vector<FeatureValue> values = draw_values(templates[t], random);
    const auto next = static_cast<std::int32_t>(slow.size());
    CHECK(index.find(t, as_function(values)) ==
          (slow.contains({t, values}) ? slow.at({t, values}) : no_column));
    CHECK(index.add(t, as_function(values)) == slow.try_emplace({t, values}, next).first->second);
    values[random.below(static_cast<std::uint32_t>(values.size()))] = -1;
    CHECK(index.find(t, as_function(values)) == no_column);
  }
  check_same(index, slow);

  std::vector<std::int32_t> renumbered(slow.size(), no_column);
  std::int32_t n_kept = 0;
  for (std::size_t c = 0; c < renumbered.size(); ++c) {
    if (random.below(3) > 0) renumbered[c] = n_kept++;
  }
  index.renumber(renumbered);
  std::erase_if(slow, [&](const auto& entry) {
    return renumbered[static_cast<std::size_t>(entry.second)] == no_column;
  });
  for (auto& [feature, column] : slow) column = renumbered[static_cast<std::size_t>(column)];
  check_same(index, slow);
}

// Memory depends on the number of features of a template, not on the range of its values.
void test_memory_depends_on_the_number_of_features() {
  const std::vector<TemplateRanges> ranges(100, {1'000'000});
  std::vector<std::size_t> features(ranges.size(), 10);
  features[1] = 1'000'000;
  FeatureIndex index(ranges, features);
  CHECK(index.bytes() < 4'000'000 + 100'000);
  for (std::int32_t k = 0; k < 10; ++k) {
    for (const std::size_t t : {0, 1}) {
      const std::vector<FeatureValue> values{99'991 * k};
      CHECK(index.find(t, as_function(values)) == no_column);
      index.put(t, values, 2 * k + static_cast<std::int32_t>(t));
      CHECK(index.find(t, as_function(values)) == 2 * k + static_cast<std::int32_t>(t));
      CHECK_THROWS(index.put(t, values, 50), std::invalid_argument);
      index.put(t, std::vector<FeatureValue>{99'991 * k + 1}, 50 + 2 * k + static_cast<std::int32_t>(t));
    }
  }
  CHECK(index.find(0, [](std::size_t) { return FeatureValue{-1}; }) == no_column);
  CHECK_THROWS(index.put(0, std::vector<FeatureValue>{1'000'000}, 0), std::invalid_argument);
  std::vector<std::int32_t> columns;
  index.for_each(0, [&](std::span<const FeatureValue> values, std::int32_t column) {
    CHECK(values.size() == 1 && index.find(0, [&](std::size_t) { return values[0]; }) == column);
    columns.push_back(column);
  });
  CHECK(columns.size() == 20 && std::ranges::is_sorted(columns));
}

void test_keys_are_restored_from_their_values() {
  const FeatureIndex index(templates);
  for (FeatureKey key = 0; key < 12; ++key) {
    const std::vector<FeatureValue> values = index.values_of(1, key);
    FeatureKey restored_key = 0;
    CHECK(index.key_of(1, as_function(values), restored_key) && restored_key == key);
  }
}

void test_repeated_and_invalid_features_are_refused() {
  FeatureIndex index(templates);
  const std::vector<FeatureValue> valid{2, 3}, too_large{3, 0}, negative{0, -1};
  index.put(1, valid, 0);
  CHECK_THROWS(index.put(1, valid, 1), std::invalid_argument);
  CHECK_THROWS(index.put(1, too_large, 1), std::invalid_argument);
  CHECK_THROWS(index.put(1, negative, 1), std::invalid_argument);
  CHECK_THROWS(index.put(1, index.values_of(1, 12), 1), std::invalid_argument);
  CHECK_THROWS(index.put(1, index.values_of(1, static_cast<FeatureKey>(-1)), 1), std::invalid_argument);
  CHECK(index.find(1, as_function(valid)) == 0 || index.find(1, as_function(valid)) == 1);
}

void test_rare_columns_are_removed_from_rows() {
  FeatureRows rows;
  for (const auto& row : std::vector<std::vector<std::int32_t>>{{0, 2}, {}, {2, 3}, {0, 1, 2}}) {
    rows.columns.insert(rows.columns.end(), row.begin(), row.end());
    rows.end_row();
  }
  const auto new_columns = frequent_columns(rows, 5, 2);
  CHECK((new_columns == std::vector<std::int32_t>{0, no_column, 1, no_column, no_column}));
  renumber(rows, new_columns);
  CHECK((rows.columns == std::vector<std::int32_t>{0, 1, 1, 0, 1}));
  CHECK((rows.offsets == std::vector<std::int64_t>{0, 2, 2, 3, 5}));
  CHECK(frequent_columns(rows, 4, 0)[3] == no_column);  // a feature that never occurs has no column
}

}  // namespace

int main() {
  test_the_index_equals_a_map();
  test_memory_depends_on_the_number_of_features();
  test_keys_are_restored_from_their_values();
  test_repeated_and_invalid_features_are_refused();
  test_rare_columns_are_removed_from_rows();
  return 0;
}
