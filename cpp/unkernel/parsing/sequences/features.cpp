#include "unkernel/parsing/sequences/features.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "unkernel/parsing/sequences/reader.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::uint64_t code_bits = 32;  // bits of a code in a stored join
constexpr std::uint64_t code_mask = (std::uint64_t{1} << code_bits) - 1;

// Returns one more than the largest class that a stored table has as a tag. Throws std::invalid_argument if a
// code is out of range.
std::int32_t tags_in(const SequenceTableArrays& arrays, const SequenceTemplate& addresses, std::size_t tag) {
  std::uint64_t codes = first_code;
  const auto has_tag = [&](std::size_t place) { return addresses[place].attribute == tag; };
  if (has_tag(0) && addresses.size() == 1) codes = std::max<std::uint64_t>(codes, arrays.ids.size());
  for (std::size_t k = 0; k < arrays.joins.size() && k + 1 < addresses.size(); ++k) {
    for (const std::uint64_t join : arrays.joins[k]) {
      if (k == 0 && has_tag(0)) codes = std::max(codes, (join >> code_bits) + 1);
      if (has_tag(k + 1)) codes = std::max(codes, (join & code_mask) + 1);
    }
  }
  if (codes > static_cast<std::uint64_t>(first_code + most_sequence_classes))
    throw std::invalid_argument("the code of a tag is out of range");
  return static_cast<std::int32_t>(codes) - first_code;
}

// Returns a function that maps a place of a template to its code at a word.
auto codes_of(const SequenceTemplate& addresses, const Sequence& sentence, std::size_t word) {
  return [&addresses, &sentence, word](std::size_t k) -> FeatureValue {
    return sentence.code(word, addresses[k]);
  };
}

// Returns new numbers for the columns that occur at least `min_count` times, ordered by template, then by
// descending frequency. All other columns get no_column.
std::vector<std::int32_t> renumbered_columns(const FeatureRows& rows,
                                             std::span<const std::size_t> template_of,
                                             std::int64_t min_count) {
  std::vector<std::int64_t> counts(template_of.size(), 0);
  for (const std::int32_t column : rows.columns) ++counts[static_cast<std::size_t>(column)];
  std::vector<std::size_t> order;
  for (std::size_t column = 0; column < counts.size(); ++column) {
    if (counts[column] >= min_count) order.push_back(column);
  }
  std::ranges::stable_sort(
      order, {}, [&](std::size_t column) { return std::pair(template_of[column], -counts[column]); });
  std::vector<std::int32_t> renumbered(counts.size(), no_column);
  for (std::size_t k = 0; k < order.size(); ++k) renumbered[order[k]] = static_cast<std::int32_t>(k);
  return renumbered;
}

}  // namespace

void Sequence::reset(std::size_t attributes, std::size_t words) {
  words_ = words;
  stride_ = attributes + 1;
  codes_.assign((words + 2 * margin) * stride_, before_first);
  std::fill(codes_.end() - static_cast<std::ptrdiff_t>(margin * stride_), codes_.end(), behind_last);
}

SequenceFeatures::SequenceFeatures(SequenceTemplates templates, SequenceSources sources)
    : templates_(std::move(templates)), sources_(std::move(sources)), values_(templates_.attributes.size()) {
  check_sources();
}

SequenceFeatures::SequenceFeatures(SequenceTemplates templates, SequenceSources sources,
                                   std::vector<data::NameTable> values,
                                   std::span<const SequenceTableArrays> tables, std::int32_t features)
    : templates_(std::move(templates)), sources_(std::move(sources)), values_(std::move(values)) {
  check_sources();
  if (values_.size() != templates_.attributes.size() || tables.size() != templates_.all.size() ||
      features < 0)
    throw std::invalid_argument("the tables of features do not match the templates");
  for (const data::NameTable& names : values_) check_utf8(names);
  for (std::size_t t = 0; t < templates_.all.size(); ++t)
    tags_ = std::max(tags_, tags_in(tables[t], templates_.all[t], values_.size()));
  std::vector<std::size_t> stored;
  for (const SequenceTableArrays& table : tables) stored.push_back(table.ids.size());
  if (std::accumulate(stored.begin(), stored.end(), std::size_t{0}) < static_cast<std::size_t>(features))
    throw std::invalid_argument("the number of features is out of range");
  index_ = FeatureIndex(ranges(), stored);
  std::vector<std::uint8_t> found(static_cast<std::size_t>(features), 0);
  for (std::size_t t = 0; t < templates_.all.size(); ++t) restore_table(t, tables[t], features, found);
  if (std::ranges::find(found, 0) != found.end())
    throw std::invalid_argument("the number of features is out of range");
}

std::vector<TemplateRanges> SequenceFeatures::ranges() const {
  std::vector<TemplateRanges> ranges;
  for (const SequenceTemplate& each : templates_.all) {
    TemplateRanges& template_ranges = ranges.emplace_back();
    for (const SequenceAddress& address : each) {
      const bool is_tag = address.attribute == values_.size();
      const std::size_t values = is_tag ? static_cast<std::size_t>(tags_) : values_[address.attribute].size();
      template_ranges.push_back(first_code + values);
    }
  }
  return ranges;
}

void SequenceFeatures::check_sources() const {
  for (const Lexicon& lexicon : sources_.lexicons) lexicon.check();
}

const data::NameTable* SequenceFeatures::find_values(std::size_t column) const {
  const SequenceAttribute attribute{SequenceAttributeKind::column, static_cast<int>(column)};
  const auto place = std::ranges::find(templates_.attributes, attribute);
  if (place == templates_.attributes.end()) return nullptr;
  return &values_[static_cast<std::size_t>(place - templates_.attributes.begin())];
}

bool SequenceFeatures::look_around() const {
  return std::ranges::any_of(templates_.all, [&](const SequenceTemplate& each) {
    return std::ranges::any_of(each, [&](const SequenceAddress& address) {
      return address.offset != 0 || address.attribute == values_.size();
    });
  });
}

std::size_t SequenceFeatures::tags_seen() const {
  int farthest = 0;
  for (const SequenceTemplate& each : templates_.all) {
    for (const SequenceAddress& address : each) {
      if (address.attribute == templates_.tag_attribute()) farthest = std::max(farthest, -address.offset);
    }
  }
  return static_cast<std::size_t>(farthest);
}

// --- Files ---------------------------------------------------------------------------------------------

void SequenceFeatures::restore_table(std::size_t which, const SequenceTableArrays& arrays,
                                     std::int32_t features, std::vector<std::uint8_t>& found) {
  const SequenceTemplate& addresses = templates_.all[which];
  if (arrays.joins.size() + 1 != addresses.size())
    throw std::invalid_argument("a template and its table join a different number of values");
  std::vector<FeatureValue> values(addresses.size());
  for (std::size_t number = 0; number < arrays.ids.size(); ++number) {
    const std::int32_t id = arrays.ids[number];
    if (id == no_column) continue;
    if (id < 0 || id >= features) throw std::invalid_argument("the number of a feature is out of range");
    if (std::exchange(found[static_cast<std::size_t>(id)], 1) != 0)
      throw std::invalid_argument("the number of a feature occurs twice");
    FeatureValue joined_value = static_cast<FeatureValue>(number);
    for (std::size_t k = arrays.joins.size(); k-- > 0;) {
      if (static_cast<std::size_t>(joined_value) >= arrays.joins[k].size())
        throw std::invalid_argument("a joined value is out of range");
      const std::uint64_t join = arrays.joins[k][static_cast<std::size_t>(joined_value)];
      values[k + 1] = static_cast<FeatureValue>(join & code_mask);
      joined_value = static_cast<FeatureValue>(join >> code_bits);
    }
    values[0] = joined_value;
    index_.put(which, values, id);
  }
}

// Numbers joined values in the order of the features that use them.
void SequenceFeatures::store_table(std::size_t which, SequenceTableArrays& arrays) const {
  std::vector<FlatMap<std::uint64_t, std::int32_t>> numbers(arrays.joins.size());  // plus 1
  index_.for_each(which, [&](std::span<const FeatureValue> values, std::int32_t column) {
    auto joined_value = static_cast<std::uint64_t>(values[0]);
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const std::uint64_t join = joined_value << code_bits | static_cast<std::uint64_t>(values[k + 1]);
      std::int32_t& number = numbers[k][join];
      if (number == 0) {
        arrays.joins[k].push_back(join);
        number = static_cast<std::int32_t>(arrays.joins[k].size());
      }
      joined_value = static_cast<std::uint64_t>(number - 1);
    }
    if (joined_value >= arrays.ids.size()) arrays.ids.resize(joined_value + 1, no_column);
    arrays.ids[joined_value] = column;
  });
}

std::vector<SequenceTableArrays> SequenceFeatures::tables() const {
  std::vector<SequenceTableArrays> tables(templates_.all.size());
  for (std::size_t t = 0; t < templates_.all.size(); ++t) {
    tables[t].joins.resize(templates_.all[t].size() - 1);
    if (index_.templates() > 0) store_table(t, tables[t]);  // otherwise, nothing has been learnt
  }
  return tables;
}

// --- Rows ----------------------------------------------------------------------------------------------

std::string_view SequenceFeatures::value(const SequenceAttribute& attribute, std::string_view word,
                                         std::string& buffer) const {
  buffer.clear();
  if (attribute.kind != SequenceAttributeKind::lexicon) {
    append_value(attribute, word, buffer);
    return buffer;
  }
  append_plain(word, buffer);
  return sources_.lexicons[static_cast<std::size_t>(attribute.number)].value(buffer);
}

void SequenceFeatures::learn_values(const data::ColumnText& text, const Monitor& monitor) {
  std::string buffer;
  for (std::int64_t token = 0; token < text.tokens(); ++token) {
    monitor.throw_if_stopped();
    const std::string_view word = text.field(token, sources_.word_column);
    for (std::size_t a = 0; a < values_.size(); ++a) {
      const SequenceAttribute& attribute = templates_.attributes[a];
      values_[a].add(attribute.kind == SequenceAttributeKind::column
                         ? field(text, token, sources_.column_of(attribute))
                         : value(attribute, word, buffer));
    }
  }
}

void SequenceFeatures::set_tags(std::span<const std::int32_t> answers, bool backward,
                                Sequence& sentence) const {
  for (std::size_t i = 0; i < sentence.words(); ++i)
    sentence.set_tag(i, tag_code(answers[backward ? sentence.words() - 1 - i : i]));
}

void SequenceFeatures::row(const Sequence& sentence, std::size_t word, std::vector<std::int32_t>& ids) const {
  ids.clear();
  for (std::size_t t = 0; t < index_.templates(); ++t) {
    const std::int32_t id = index_.find(t, codes_of(templates_.all[t], sentence, word));
    if (id != no_column) ids.push_back(id);
  }
  if (!std::ranges::is_sorted(ids)) std::ranges::sort(ids);  // older files number features in another order
}

FeatureRows SequenceFeatures::rows(const SequenceText& source, std::span<const std::int32_t> answers,
                                   const Monitor& monitor) const {
  const data::ColumnText& text = source.text;
  const bool backward = source.backward;
  FeatureRows rows;
  SequenceReader reader(*this);
  Sequence sentence;
  std::vector<std::int32_t> ids;
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    monitor.throw_if_stopped();
    reader.read(source, s, sentence);
    set_tags(answers.subspan(static_cast<std::size_t>(text.first_token(s)), sentence.words()), backward,
             sentence);
    for (std::size_t i = 0; i < sentence.words(); ++i) {
      row(sentence, backward ? sentence.words() - 1 - i : i, ids);
      rows.columns.insert(rows.columns.end(), ids.begin(), ids.end());
      rows.end_row();
    }
  }
  return rows;
}

FeatureRows SequenceFeatures::learn(const SequenceText& source, std::span<const std::int32_t> answers,
                                    std::int64_t min_count, const Monitor& monitor) {
  const data::ColumnText& text = source.text;
  learn_values(text, monitor);
  for (const std::int32_t answer : answers) tags_ = std::max(tags_, answer + 1);
  index_ = FeatureIndex(ranges());

  FeatureRows rows;
  rows.offsets.reserve(answers.size() + 1);
  rows.columns.reserve(answers.size() * templates_.all.size());
  SequenceReader reader(*this);
  Sequence sentence;
  std::vector<std::size_t> template_of;  // of each column
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    monitor.throw_if_stopped();
    reader.read(source, s, sentence);
    set_tags(answers.subspan(static_cast<std::size_t>(text.first_token(s)), sentence.words()),
             source.backward, sentence);
    for (std::size_t i = 0; i < sentence.words(); ++i) {
      for (std::size_t t = 0; t < templates_.all.size(); ++t) {
        rows.columns.push_back(index_.add(t, codes_of(templates_.all[t], sentence, i)));
        template_of.resize(static_cast<std::size_t>(index_.columns()), t);
      }
      rows.end_row();
    }
  }
  const std::vector<std::int32_t> renumbered = renumbered_columns(rows, template_of, min_count);
  index_.renumber(renumbered);
  renumber(rows, renumbered);
  return rows;
}

std::int32_t SequenceFeatures::core_columns() const {
  std::int32_t end = 0;
  for (std::size_t t = 0; t < std::min(templates_.core, index_.templates()); ++t)
    index_.for_each(t, [&](std::span<const FeatureValue>, std::int32_t column) { end = column + 1; });
  return end;
}

}  // namespace unkernel::parsing
