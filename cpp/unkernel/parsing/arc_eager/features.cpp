#include "unkernel/parsing/arc_eager/features.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace unkernel::parsing {
namespace {

constexpr std::int64_t no_value = -1;
constexpr std::int32_t no_column = -1;
constexpr std::int32_t most_children = 3;  // more are counted as so many
constexpr std::size_t distances = 8;

// 1, 2, 3, 4, then ranges.
std::int64_t distance_class(std::int32_t distance) {
  if (distance < 5) return distance - 1;
  return distance < 7 ? 4 : distance < 10 ? 5 : distance < 15 ? 6 : 7;
}

// What stands in a template's place; -1 for nothing.
std::int64_t value(const TemplateValue& place, const Situation& situation, std::span<const Word> words) {
  if (is_string(place.attribute)) return situation.symbols.of(place.attribute, words[place.address]);
  const Arc& arc = situation.arc;
  if (place.attribute == Attribute::direction) return arc.child < arc.head;
  if (place.attribute == Attribute::distance) {
    return arc.head == no_word || arc.child == no_word ? no_value
                                                       : distance_class(std::abs(arc.head - arc.child));
  }
  const Word word = words[place.address];
  if (word == no_word) return no_value;
  const ArcEagerState& state = situation.state;
  if (place.attribute == Attribute::label) return state.label(word);
  return std::min(
      place.attribute == Attribute::left_valency ? state.left_children(word) : state.right_children(word),
      most_children);
}

}  // namespace

FeatureSpace::FeatureSpace(const TemplateSet& set, const Vocabulary& vocabulary, std::size_t labels)
    : set_(set), vocabulary_(&vocabulary), labels_(labels), begins_(set.templates.size() + 1, 0) {
  for (const Template& one : set_.templates) {
    FeatureKey room = std::numeric_limits<FeatureKey>::max() / 2;
    for (const TemplateValue& place : one.values) room /= range(place.attribute);
    if (room == 0)
      throw std::invalid_argument("the feature '" + one.text + "' has too many values: join fewer");
  }
  index();
}

std::size_t FeatureSpace::range(Attribute attribute) const {
  switch (attribute) {
    case Attribute::label: return std::max<std::size_t>(labels_, 1);
    case Attribute::left_valency:
    case Attribute::right_valency: return most_children + 1;
    case Attribute::distance: return distances;
    case Attribute::direction: return 2;
    default: return vocabulary_->symbols(attribute);
  }
}

void FeatureSpace::find_words(const Situation& situation, std::vector<Word>& words) const {
  words.resize(set_.addresses.size());
  for (std::size_t k = 0; k < words.size(); ++k)
    words[k] = word_at(situation.state, situation.arc, set_.addresses[k]);
}

bool FeatureSpace::key(const Template& one, const Situation& situation, std::span<const Word> words,
                       FeatureKey& key) const {
  key = 0;
  for (const TemplateValue& place : one.values) {
    const std::int64_t found = value(place, situation, words);
    if (found < 0) return false;
    key = key * range(place.attribute) + static_cast<FeatureKey>(found);
  }
  return true;
}

void FeatureSpace::count(const Situation& situation, FeatureRow& row, FeatureCounts& counts) const {
  find_words(situation, row.words);
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    FeatureKey found;
    if (key(set_.templates[k], situation, row.words, found)) ++counts[k][found];
  }
}

void FeatureSpace::number(const FeatureCounts& counts, std::int64_t minimum) {
  keys_.clear();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    std::vector<std::pair<std::int64_t, FeatureKey>> frequent;
    counts[k].for_each([&](FeatureKey found, std::int64_t times) {
      if (times >= minimum) frequent.emplace_back(-times, found);
    });
    std::sort(frequent.begin(), frequent.end());
    for (const auto& entry : frequent) keys_.push_back(entry.second);
    begins_[k + 1] = static_cast<std::int64_t>(keys_.size());
  }
  index();
}

void FeatureSpace::restore(std::span<const FeatureKey> keys, std::span<const std::int64_t> begins) {
  const bool sound = begins.size() == set_.templates.size() + 1 && begins.front() == 0 &&
                     std::is_sorted(begins.begin(), begins.end()) &&
                     begins.back() == static_cast<std::int64_t>(keys.size()) &&
                     keys.size() < std::numeric_limits<std::int32_t>::max();
  if (!sound) throw std::invalid_argument("the features do not fit the templates");
  keys_.assign(keys.begin(), keys.end());
  begins_.assign(begins.begin(), begins.end());
  index();
}

// From keys_ and begins_.
void FeatureSpace::index() {
  const std::size_t count = set_.templates.size();
  columns_of_value_.assign(count, {});
  columns_of_key_.assign(count, {});
  for (std::size_t k = 0; k < count; ++k) {
    const Template& one = set_.templates[k];
    const bool single = one.values.size() == 1;
    const std::size_t values = range(one.values.front().attribute);
    if (single) columns_of_value_[k].assign(values, no_column);
    for (std::int64_t column = begins_[k]; column < begins_[k + 1]; ++column) {
      const FeatureKey found = keys_[static_cast<std::size_t>(column)];
      if (single ? found >= values : found == FlatMap<FeatureKey, std::int32_t>::no_key)
        throw std::invalid_argument("a feature has a value that there is not");
      (single ? columns_of_value_[k][found] : columns_of_key_[k][found]) = static_cast<std::int32_t>(column);
    }
  }
}

void FeatureSpace::extract(const Situation& situation, FeatureRow& row) const {
  find_words(situation, row.words);
  row.columns.clear();
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    const Template& one = set_.templates[k];
    std::int32_t column = no_column;
    if (one.values.size() == 1) {
      const std::int64_t found = value(one.values.front(), situation, row.words);
      if (found >= 0) column = columns_of_value_[k][static_cast<std::size_t>(found)];
    } else if (FeatureKey joined; key(one, situation, row.words, joined)) {
      const std::int32_t* known = columns_of_key_[k].find(joined);
      if (known != nullptr) column = *known;
    }
    if (column != no_column) row.columns.push_back(column);
  }
}

}  // namespace unkernel::parsing
