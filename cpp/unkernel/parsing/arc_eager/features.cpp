#include "unkernel/parsing/arc_eager/features.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace unkernel::parsing {
namespace {

constexpr FeatureValue no_value = -1;
constexpr std::size_t not_of_words = std::numeric_limits<std::size_t>::max();
constexpr std::int32_t most_children = 3;  // larger numbers of children count as this one
constexpr std::size_t distances = 8;

// Returns the class of a distance: 1, 2, 3, 4, then ranges.
FeatureValue distance_class(std::int32_t distance) {
  if (distance < 5) return distance - 1;
  return distance < 7 ? 4 : distance < 10 ? 5 : distance < 15 ? 6 : 7;
}

// Returns the number of values of an attribute.
std::size_t range(Attribute attribute, const Vocabulary& vocabulary, std::size_t labels) {
  switch (attribute) {
    case Attribute::label: return std::max<std::size_t>(labels, 1);
    case Attribute::left_valency:
    case Attribute::right_valency: return most_children + 1;
    case Attribute::distance: return distances;
    case Attribute::direction: return 2;
    default: return vocabulary.symbols(attribute);
  }
}

// Returns the value at a place of a template; negative if there is none.
FeatureValue value(const TemplateValue& place, const Situation& situation, std::span<const Word> words) {
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

bool takes_one_string(const Template& one) {
  return one.values.size() == 1 && is_string(one.values.front().attribute);
}

// Returns the values of a template, by place.
auto values_in(const Template& one, const Situation& situation, std::span<const Word> words) {
  return [&one, &situation, words](std::size_t place) { return value(one.values[place], situation, words); };
}

}  // namespace

FeatureSpace::FeatureSpace(const TemplateSet& set, const Vocabulary& vocabulary, std::size_t labels)
    : set_(set), ranges_(ranges(vocabulary, labels)), begins_(set.templates.size() + 1, 0) {
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    const bool of_word = takes_one_string(set_.templates[k]);
    number_.push_back(of_word ? of_words_.size() : not_of_words);
    if (of_word) of_words_.push_back(k);
  }
  make_index();
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    if (!index_.has_keys(k))
      throw std::invalid_argument("the feature '" + set_.templates[k].text +
                                  "' has too many values: join fewer");
  }
}

std::vector<TemplateRanges> FeatureSpace::ranges(const Vocabulary& vocabulary, std::size_t labels) const {
  std::vector<TemplateRanges> made;
  for (const Template& one : set_.templates) {
    TemplateRanges& own = made.emplace_back();
    for (const TemplateValue& place : one.values) own.push_back(range(place.attribute, vocabulary, labels));
  }
  return made;
}

void FeatureSpace::find_words(const Situation& situation, std::vector<Word>& words) const {
  words.resize(set_.addresses.size());
  for (std::size_t k = 0; k < words.size(); ++k)
    words[k] = word_at(situation.state, situation.arc, set_.addresses[k]);
}

void FeatureSpace::count(const Situation& situation, FeatureRow& row, FeatureCounts& counts) const {
  find_words(situation, row.words);
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    FeatureKey key;
    if (index_.key_of(k, values_in(set_.templates[k], situation, row.words), key)) ++counts[k][key];
  }
}

void FeatureSpace::number(const FeatureCounts& counts, std::int64_t min_count) {
  keys_.clear();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    std::vector<std::pair<std::int64_t, FeatureKey>> frequent;
    counts[k].for_each([&](FeatureKey key, std::int64_t times) {
      if (times >= min_count) frequent.emplace_back(-times, key);
    });
    std::sort(frequent.begin(), frequent.end());
    for (const auto& entry : frequent) keys_.push_back(entry.second);
    begins_[k + 1] = static_cast<std::int64_t>(keys_.size());
  }
  fill_index();
}

void FeatureSpace::restore(std::span<const FeatureKey> keys, std::span<const std::int64_t> begins) {
  const bool sound = begins.size() == set_.templates.size() + 1 && begins.front() == 0 &&
                     std::is_sorted(begins.begin(), begins.end()) &&
                     begins.back() == static_cast<std::int64_t>(keys.size()) &&
                     keys.size() < std::numeric_limits<std::int32_t>::max();
  if (!sound) throw std::invalid_argument("the features do not fit the templates");
  keys_.assign(keys.begin(), keys.end());
  begins_.assign(begins.begin(), begins.end());
  fill_index();
}

void FeatureSpace::make_index() {
  std::vector<std::size_t> features;
  for (std::size_t k = 0; k < set_.templates.size(); ++k)
    features.push_back(static_cast<std::size_t>(begins_[k + 1] - begins_[k]));
  index_ = FeatureIndex(ranges_, features);
}

// Uses keys_ and begins_.
void FeatureSpace::fill_index() {
  make_index();
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    for (std::int64_t column = begins_[k]; column < begins_[k + 1]; ++column)
      index_.put(k, index_.values_of(k, keys_[static_cast<std::size_t>(column)]),
                 static_cast<std::int32_t>(column));
  }
}

void FeatureSpace::look_up(const SentenceSymbols& symbols, WordColumns& columns) const {
  columns.resize(symbols.words() + 1, of_words_.size());
  for (std::size_t number = 0; number < of_words_.size(); ++number) {
    const std::size_t which = of_words_[number];
    const Attribute attribute = set_.templates[which].values.front().attribute;
    for (std::size_t word = 0; word <= symbols.words(); ++word) {
      columns.at(word, number) = index_.find(
          which, [&](std::size_t) -> FeatureValue { return symbols.of(attribute, static_cast<Word>(word)); });
    }
  }
}

// Writes every column, and overwrites a missing one by the next: a branch here would be mispredicted.
void FeatureSpace::extract(const Situation& situation, FeatureRow& row) const {
  find_words(situation, row.words);
  row.columns.resize(set_.templates.size());
  std::int32_t* end = row.columns.data();
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    const Template& one = set_.templates[k];
    *end = number_[k] == not_of_words
               ? index_.find(k, values_in(one, situation, row.words))
               : situation.columns.of(row.words[one.values.front().address], number_[k]);
    end += *end != no_column;
  }
  row.columns.resize(static_cast<std::size_t>(end - row.columns.data()));
}

}  // namespace unkernel::parsing
