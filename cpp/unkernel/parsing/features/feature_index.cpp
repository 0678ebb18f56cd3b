#include "unkernel/parsing/features/feature_index.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace unkernel::parsing {
namespace {

constexpr FeatureKey most_keys = std::numeric_limits<FeatureKey>::max() / 2;
constexpr FeatureKey most_numbers = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t most_values_per_feature = 16;
constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

}  // namespace

FeatureIndex::FeatureIndex(const std::vector<TemplateRanges>& templates) {
  for (const TemplateRanges& ranges : templates) tables_.push_back(new_table(ranges, any_number));
}

FeatureIndex::FeatureIndex(const std::vector<TemplateRanges>& templates,
                           std::span<const std::size_t> features) {
  for (std::size_t t = 0; t < templates.size(); ++t) tables_.push_back(new_table(templates[t], features[t]));
}

FeatureIndex::Table FeatureIndex::new_table(const TemplateRanges& ranges, std::size_t features) {
  Table table{ranges, {}, {}};
  for (std::size_t begin = 0; begin < ranges.size();) {
    FeatureKey capacity = begin == 0 ? most_keys : most_keys / most_numbers;
    std::size_t end = begin;
    for (; end < ranges.size() && capacity / std::max<std::size_t>(ranges[end], 1) > 0; ++end)
      capacity /= std::max<std::size_t>(ranges[end], 1);
    if (end == begin) throw std::length_error("a value of a feature has too large a range");
    table.groups.push_back({begin, end, {}});
    begin = end;
  }
  if (ranges.size() == 1 && ranges[0] / most_values_per_feature <= features)
    table.columns_of_values.assign(std::max<std::size_t>(ranges[0], 1), no_column);
  return table;
}

std::size_t FeatureIndex::bytes() const {
  std::size_t total = 0;
  for (const Table& table : tables_) {
    total += sizeof(Table) + table.columns_of_values.size() * sizeof(std::int32_t);
    for (const Group& group : table.groups) total += sizeof(Group) + group.numbers.bytes();
  }
  return total;
}

std::int32_t FeatureIndex::next_column() {
  if (columns_ == std::numeric_limits<std::int32_t>::max())
    throw std::length_error("there are too many features");
  return columns_++;
}

void FeatureIndex::put(std::size_t which, std::span<const FeatureValue> values, std::int32_t column) {
  Table& table = tables_[which];
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k] < 0 || static_cast<std::size_t>(values[k]) >= table.ranges[k])
      throw std::invalid_argument("a value of a feature is out of range");
  }
  bool is_duplicate = false;
  if (!table.columns_of_values.empty()) {
    std::int32_t& place = table.columns_of_values[static_cast<std::size_t>(values[0])];
    is_duplicate = std::exchange(place, column) != no_column;
  } else {
    std::int32_t& number = number_for(table, [&](std::size_t k) { return values[k]; });
    is_duplicate = std::exchange(number, column + 1) != 0;
  }
  if (is_duplicate) throw std::invalid_argument("a feature occurs twice");
  columns_ = std::max(columns_, column + 1);
}

std::vector<FeatureValue> FeatureIndex::values_of(std::size_t which, FeatureKey key) const {
  const TemplateRanges& ranges = tables_[which].ranges;
  std::vector<FeatureValue> values(ranges.size());
  for (std::size_t k = ranges.size(); k-- > 1; key /= ranges[k])
    values[k] = static_cast<FeatureValue>(key % ranges[k]);
  values[0] = static_cast<FeatureValue>(std::min(key, most_keys));  // stays out of range
  return values;
}

// Returns the features of a table with their values, by ascending column.
std::vector<FeatureIndex::Entry> FeatureIndex::entries(const Table& table) {
  std::vector<Entry> found;
  if (!table.columns_of_values.empty()) {
    for (std::size_t value = 0; value < table.columns_of_values.size(); ++value) {
      if (table.columns_of_values[value] != no_column)
        found.push_back({{static_cast<FeatureValue>(value)}, table.columns_of_values[value]});
    }
  } else {
    // The values that each number of the previous group represents.
    std::vector<Entry> before{{{}, 0}};
    for (const Group& group : table.groups) {
      FeatureKey keys = 1;  // by number of the previous group
      for (std::size_t k = group.begin; k < group.end; ++k) keys *= table.ranges[k];
      found.assign(group.numbers.size(), {});
      std::size_t next = 0;
      group.numbers.for_each([&](FeatureKey key, std::int32_t number) {
        Entry& entry = found[next++];
        entry = {before[static_cast<std::size_t>(key / keys)].values, number - 1};
        entry.values.resize(group.end);
        for (std::size_t k = group.end; k-- > group.begin; key /= table.ranges[k])
          entry.values[k] = static_cast<FeatureValue>(key % table.ranges[k]);
      });
      std::ranges::sort(found, {}, &Entry::column);
      before = found;
    }
  }
  std::ranges::sort(found, {}, &Entry::column);
  return found;
}

void FeatureIndex::renumber(std::span<const std::int32_t> renumbered) {
  columns_ = 0;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const std::vector<Entry> all = entries(tables_[t]);
    tables_[t] = new_table(TemplateRanges(tables_[t].ranges), any_number);
    for (const Entry& entry : all) {
      const std::int32_t column = renumbered[static_cast<std::size_t>(entry.column)];
      if (column != no_column) put(t, entry.values, column);
    }
  }
}

}  // namespace unkernel::parsing
