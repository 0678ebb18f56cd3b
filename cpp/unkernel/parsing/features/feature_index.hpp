// Maps features, which are templates with values, to columns, for all parsers.
//
// A template has one or several places, and a feature has a value in each: a number below the range of the
// place. The values of a feature are the digits of one number, its key. For a template with one place, an
// array maps values to columns, unless the range is large compared with the number of features. For all other
// templates, a hash table maps keys to columns. If keys would need more than 63 bits, the places are divided
// into groups: a number replaces the values of one group, and becomes the first digit of the next group's
// key.
//
// Bytes   4 per value for a template with one place, at most 64 per feature; 24 to 48 per feature for
//         other templates.
// Query   one load, or one multiplication per place and one probe per group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/flat_map.hpp"

namespace unkernel::parsing {

using FeatureKey = std::uint64_t;
using FeatureValue = std::int64_t;  // negative if unknown, or if the word is missing

inline constexpr std::int32_t no_column = -1;

// The values of place k are below ranges[k].
using TemplateRanges = std::vector<std::size_t>;

class FeatureIndex {
 public:
  FeatureIndex() = default;
  // Creates an empty index for an unknown number of features.
  explicit FeatureIndex(const std::vector<TemplateRanges>& templates);
  // Creates an empty index for features[t] features of each template t.
  FeatureIndex(const std::vector<TemplateRanges>& templates, std::span<const std::size_t> features);

  std::size_t templates() const { return tables_.size(); }
  std::int32_t columns() const { return columns_; }
  std::size_t bytes() const;
  const TemplateRanges& ranges(std::size_t which) const { return tables_[which].ranges; }

  // Returns the column of the feature of template `which` that has value(k) in place k. Returns no_column if
  // a value is negative or the feature is missing.
  template <class Value>
  std::int32_t find(std::size_t which, const Value& value) const;

  // Returns the column of a feature like find(), but gives the next column to a missing feature. No value may
  // be negative.
  template <class Value>
  std::int32_t add(std::size_t which, const Value& value);

  // Inserts a feature with a given column. Throws std::invalid_argument if the feature exists, or if a value
  // is out of range.
  void put(std::size_t which, std::span<const FeatureValue> values, std::int32_t column);

  // Changes column c to renumbered[c]. Removes features that get no_column.
  void renumber(std::span<const std::int32_t> renumbered);

  // Returns whether the keys of a template fit into 63 bits. key_of() and values_of() may be called only if
  // they do.
  bool has_keys(std::size_t which) const { return tables_[which].groups.size() == 1; }
  // Computes the key of a template's values. Returns false if a value is negative.
  template <class Value>
  bool key_of(std::size_t which, const Value& value, FeatureKey& key) const {
    key = 0;
    return tables_[which].append_digits(tables_[which].groups.front(), value, key);
  }
  std::vector<FeatureValue> values_of(std::size_t which, FeatureKey key) const;

  // Calls take(values, column) for all features of a template, by ascending column.
  template <class Take>
  void for_each(std::size_t which, const Take& take) const {
    for (const Entry& entry : entries(tables_[which])) take(std::span(entry.values), entry.column);
  }

 private:
  struct Group {
    std::size_t begin, end;                     // places
    FlatMap<FeatureKey, std::int32_t> numbers;  // number + 1, or column + 1 in the last group
  };
  struct Table {
    TemplateRanges ranges;
    // Empty unless the template has one place and enough features.
    std::vector<std::int32_t> columns_of_values;
    std::vector<Group> groups;

    template <class Value>
    bool append_digits(const Group& group, const Value& value, FeatureKey& key) const {
      for (std::size_t k = group.begin; k < group.end; ++k) {
        const FeatureValue digit = value(k);
        if (digit < 0) return false;
        key = key * ranges[k] + static_cast<FeatureKey>(digit);
      }
      return true;
    }
  };
  struct Entry {
    std::vector<FeatureValue> values;
    std::int32_t column;
  };

  static Table new_table(const TemplateRanges& ranges, std::size_t features);
  static std::vector<Entry> entries(const Table& table);
  template <class Value>
  std::int32_t& number_for(Table& table, const Value& value);
  std::int32_t next_column();

  std::vector<Table> tables_;
  std::int32_t columns_ = 0;
};

template <class Value>
std::int32_t FeatureIndex::find(std::size_t which, const Value& value) const {
  const Table& table = tables_[which];
  if (!table.columns_of_values.empty()) {
    const FeatureValue only_value = value(0);
    return only_value < 0 ? no_column : table.columns_of_values[static_cast<std::size_t>(only_value)];
  }
  FeatureKey key = 0;
  for (const Group& group : table.groups) {
    if (!table.append_digits(group, value, key)) return no_column;
    const std::int32_t* number = group.numbers.find(key);
    if (number == nullptr) return no_column;
    key = static_cast<FeatureKey>(*number - 1);
  }
  return static_cast<std::int32_t>(key);
}

// Returns the slot with the column (plus 1) of a template with several places. It is 0 for a new feature.
template <class Value>
std::int32_t& FeatureIndex::number_for(Table& table, const Value& value) {
  FeatureKey key = 0;
  for (std::size_t g = 0; g + 1 < table.groups.size(); ++g) {
    Group& group = table.groups[g];
    table.append_digits(group, value, key);
    std::int32_t& number = group.numbers[key];
    if (number == 0) number = static_cast<std::int32_t>(group.numbers.size());
    key = static_cast<FeatureKey>(number - 1);
  }
  table.append_digits(table.groups.back(), value, key);
  return table.groups.back().numbers[key];
}

template <class Value>
std::int32_t FeatureIndex::add(std::size_t which, const Value& value) {
  Table& table = tables_[which];
  if (!table.columns_of_values.empty()) {
    std::int32_t& column = table.columns_of_values[static_cast<std::size_t>(value(0))];
    if (column == no_column) column = next_column();
    return column;
  }
  std::int32_t& number = number_for(table, value);
  if (number == 0) number = next_column() + 1;
  return number - 1;
}

}  // namespace unkernel::parsing
