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
constexpr std::size_t not_a_word_template = std::numeric_limits<std::size_t>::max();
constexpr std::int32_t most_children = 3;  // more children count as this number
constexpr std::size_t distances = 8;

// Returns the class of a distance: 1, 2, 3, 4, then ranges of distances.
FeatureValue distance_class(std::int32_t distance) {
  if (distance < 5) return distance - 1;
  if (distance < 7) return 4;
  if (distance < 10) return 5;
  return distance < 15 ? 6 : 7;
}

// Returns the number of values of an attribute.
std::size_t count_values(Attribute attribute, const Vocabulary& vocabulary, std::size_t labels) {
  switch (attribute) {
    case Attribute::label: return std::max<std::size_t>(labels, 1);
    case Attribute::left_valency:
    case Attribute::right_valency: return most_children + 1;
    case Attribute::distance: return distances;
    case Attribute::direction: return 2;
    default: return vocabulary.symbols(attribute);
  }
}

// Returns the value of one part of a template, or a negative number if it has none.
FeatureValue value(const TemplateValue& part, const Situation& situation, std::span<const Word> words) {
  if (is_string(part.attribute)) return situation.symbols.of(part.attribute, words[part.address]);
  const Arc& arc = situation.arc;
  if (part.attribute == Attribute::direction) return arc.child < arc.head;
  if (part.attribute == Attribute::distance) {
    return arc.head == no_word || arc.child == no_word ? no_value
                                                       : distance_class(std::abs(arc.head - arc.child));
  }
  const Word word = words[part.address];
  if (word == no_word) return no_value;
  const ArcEagerState& state = situation.state;
  if (part.attribute == Attribute::label) return state.label(word);
  return std::min(
      part.attribute == Attribute::left_valency ? state.left_children(word) : state.right_children(word),
      most_children);
}

bool is_string_of_word(const Template& feature) {
  return feature.values.size() == 1 && is_string(feature.values.front().attribute);
}

// Returns a function that maps the index of a template's part to the value of the part.
auto values_in(const Template& feature, const Situation& situation, std::span<const Word> words) {
  return [&feature, &situation, words](std::size_t part) {
    return value(feature.values[part], situation, words);
  };
}

}  // namespace

FeatureSpace::FeatureSpace(const TemplateSet& set, const Vocabulary& vocabulary, std::size_t labels)
    : set_(set), ranges_(ranges(vocabulary, labels)), begins_(set.templates.size() + 1, 0) {
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    const bool is_of_word = is_string_of_word(set_.templates[k]);
    word_template_index_.push_back(is_of_word ? word_templates_.size() : not_a_word_template);
    if (is_of_word) word_templates_.push_back(k);
  }
  clear_index();
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    if (!index_.has_keys(k))
      throw std::invalid_argument("the feature '" + set_.templates[k].text +
                                  "' has too many values: join fewer attributes");
  }
}

std::vector<TemplateRanges> FeatureSpace::ranges(const Vocabulary& vocabulary, std::size_t labels) const {
  std::vector<TemplateRanges> all_ranges;
  for (const Template& feature : set_.templates) {
    TemplateRanges& template_ranges = all_ranges.emplace_back();
    for (const TemplateValue& part : feature.values)
      template_ranges.push_back(count_values(part.attribute, vocabulary, labels));
  }
  return all_ranges;
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

void FeatureSpace::assign_columns(const FeatureCounts& counts, std::int64_t min_count) {
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
  const bool is_consistent = begins.size() == set_.templates.size() + 1 && begins.front() == 0 &&
                             std::is_sorted(begins.begin(), begins.end()) &&
                             begins.back() == static_cast<std::int64_t>(keys.size()) &&
                             keys.size() < std::numeric_limits<std::int32_t>::max();
  if (!is_consistent) throw std::invalid_argument("the features do not fit the templates");
  keys_.assign(keys.begin(), keys.end());
  begins_.assign(begins.begin(), begins.end());
  fill_index();
}

void FeatureSpace::clear_index() {
  std::vector<std::size_t> features;
  for (std::size_t k = 0; k < set_.templates.size(); ++k)
    features.push_back(static_cast<std::size_t>(begins_[k + 1] - begins_[k]));
  index_ = FeatureIndex(ranges_, features);
}

// Fills the index from keys_ and begins_.
void FeatureSpace::fill_index() {
  clear_index();
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    for (std::int64_t column = begins_[k]; column < begins_[k + 1]; ++column)
      index_.put(k, index_.values_of(k, keys_[static_cast<std::size_t>(column)]),
                 static_cast<std::int32_t>(column));
  }
}

void FeatureSpace::look_up(const SentenceSymbols& symbols, WordColumns& columns) const {
  columns.resize(symbols.words() + 1, word_templates_.size());
  for (std::size_t number = 0; number < word_templates_.size(); ++number) {
    const std::size_t template_index = word_templates_[number];
    const Attribute attribute = set_.templates[template_index].values.front().attribute;
    for (std::size_t word = 0; word <= symbols.words(); ++word) {
      columns.at(word, number) = index_.find(template_index, [&](std::size_t) -> FeatureValue {
        return symbols.of(attribute, static_cast<Word>(word));
      });
    }
  }
}

// Writes the columns of the features. Writes every column; if a feature has none, the next column overwrites
// it. A branch would be mispredicted.
void FeatureSpace::extract(const Situation& situation, FeatureRow& row) const {
  find_words(situation, row.words);
  row.columns.resize(set_.templates.size());
  std::int32_t* end = row.columns.data();
  for (std::size_t k = 0; k < set_.templates.size(); ++k) {
    const Template& feature = set_.templates[k];
    *end = word_template_index_[k] == not_a_word_template
               ? index_.find(k, values_in(feature, situation, row.words))
               : situation.columns.of(row.words[feature.values.front().address], word_template_index_[k]);
    end += *end != no_column;
  }
  row.columns.resize(static_cast<std::size_t>(end - row.columns.data()));
}

}  // namespace unkernel::parsing
