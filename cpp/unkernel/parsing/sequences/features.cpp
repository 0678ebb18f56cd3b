#include "unkernel/parsing/sequences/features.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "unkernel/data/text/utf8.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::uint64_t code_bits = 32;  // of stored joins
constexpr std::uint64_t code_mask = (std::uint64_t{1} << code_bits) - 1;

std::vector<SequenceTemplate> all_templates(const SequenceTemplates& templates) {
  std::vector<SequenceTemplate> all = templates.fixed;
  all.insert(all.end(), templates.dynamic.begin(), templates.dynamic.end());
  for (SequenceTemplate& each : all) {
    for (SequenceAddress& address : each) {
      if (address.attribute == tag_attribute) address.attribute = templates.attributes.size();
    }
  }
  return all;
}

// The largest class whose tag a stored table has, plus one. Throws std::invalid_argument.
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

// Values are parts of texts, which are UTF-8. Throws std::invalid_argument.
void check_are_text(const data::NameTable& names) {
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string_view name = names.name(static_cast<std::int32_t>(k));
    if (data::first_bad_byte(name) != name.size())
      throw std::invalid_argument("a value of the words is not UTF-8 text");
  }
}

// The codes of a template at a word, by place.
auto codes_of(const SequenceTemplate& addresses, const Sequence& sentence, std::size_t word) {
  return [&addresses, &sentence, word](std::size_t k) -> FeatureValue {
    return sentence.at(addresses[k].attribute, word)[addresses[k].offset];
  };
}

}  // namespace

void Sequence::reset(std::size_t attributes, std::size_t words) {
  attributes_ = attributes;
  words_ = words;
  stride_ = words + 2 * margin;
  codes_.assign((attributes + 1) * stride_, before_first);
  for (std::size_t a = 0; a <= attributes; ++a)
    std::fill_n(codes_.begin() + static_cast<std::ptrdiff_t>(a * stride_ + margin + words), margin,
                behind_last);
}

SequenceFeatures::SequenceFeatures(SequenceTemplates templates, SequenceSources sources)
    : templates_(std::move(templates)),
      sources_(std::move(sources)),
      all_(all_templates(templates_)),
      values_(templates_.attributes.size()) {
  check_sources();
}

SequenceFeatures::SequenceFeatures(SequenceTemplates templates, SequenceSources sources,
                                   std::vector<data::NameTable> values,
                                   std::span<const SequenceTableArrays> tables, std::int32_t features)
    : templates_(std::move(templates)),
      sources_(std::move(sources)),
      all_(all_templates(templates_)),
      values_(std::move(values)) {
  check_sources();
  if (values_.size() != templates_.attributes.size() || tables.size() != all_.size() || features < 0)
    throw std::invalid_argument("the tables of features do not match the templates");
  for (const data::NameTable& names : values_) check_are_text(names);
  for (std::size_t t = 0; t < all_.size(); ++t)
    tags_ = std::max(tags_, tags_in(tables[t], all_[t], values_.size()));
  std::vector<std::size_t> stored;
  for (const SequenceTableArrays& table : tables) stored.push_back(table.ids.size());
  if (std::accumulate(stored.begin(), stored.end(), std::size_t{0}) < static_cast<std::size_t>(features))
    throw std::invalid_argument("the number of features is out of range");
  index_ = FeatureIndex(ranges(), stored);
  std::vector<std::uint8_t> found(static_cast<std::size_t>(features), 0);
  for (std::size_t t = 0; t < all_.size(); ++t) restore_table(t, tables[t], features, found);
  if (std::ranges::find(found, 0) != found.end())
    throw std::invalid_argument("the number of features is out of range");
}

std::vector<TemplateRanges> SequenceFeatures::ranges() const {
  std::vector<TemplateRanges> ranges;
  for (const SequenceTemplate& each : all_) {
    TemplateRanges& own = ranges.emplace_back();
    for (const SequenceAddress& address : each) {
      const bool is_tag = address.attribute == values_.size();
      const std::size_t values = is_tag ? static_cast<std::size_t>(tags_) : values_[address.attribute].size();
      own.push_back(first_code + values);
    }
  }
  return ranges;
}

void SequenceFeatures::check_sources() const {
  for (const Lexicon& lexicon : sources_.lexicons) {
    check_are_text(lexicon.words);
    check_are_text(lexicon.values);
    const auto known = static_cast<std::int32_t>(lexicon.values.size());
    if (lexicon.value_of.size() != lexicon.words.size() ||
        std::ranges::any_of(lexicon.value_of,
                            [&](std::int32_t value) { return value < 0 || value >= known; }))
      throw std::invalid_argument("a lexicon has not one value per word");
  }
}

const data::NameTable* SequenceFeatures::known(std::size_t column) const {
  const SequenceAttribute wanted{SequenceAttributeKind::column, static_cast<int>(column)};
  const auto found = std::ranges::find(templates_.attributes, wanted);
  return found == templates_.attributes.end()
             ? nullptr
             : &values_[static_cast<std::size_t>(found - templates_.attributes.begin())];
}

bool SequenceFeatures::look_around() const {
  return std::ranges::any_of(all_, [&](const SequenceTemplate& each) {
    return std::ranges::any_of(each, [&](const SequenceAddress& address) {
      return address.offset != 0 || address.attribute == values_.size();
    });
  });
}

std::size_t SequenceFeatures::tags_seen() const {
  int farthest = 0;
  for (const SequenceTemplate& each : templates_.dynamic) {
    for (const SequenceAddress& address : each) {
      if (address.attribute == tag_attribute) farthest = std::max(farthest, -address.offset);
    }
  }
  return static_cast<std::size_t>(farthest);
}

// --- Files ---------------------------------------------------------------------------------------------

void SequenceFeatures::restore_table(std::size_t which, const SequenceTableArrays& arrays,
                                     std::int32_t features, std::vector<std::uint8_t>& found) {
  const SequenceTemplate& addresses = all_[which];
  if (arrays.joins.size() + 1 != addresses.size())
    throw std::invalid_argument("a template and its table join different numbers of values");
  std::vector<FeatureValue> values(addresses.size());
  for (std::size_t number = 0; number < arrays.ids.size(); ++number) {
    const std::int32_t id = arrays.ids[number];
    if (id == no_column) continue;
    if (id < 0 || id >= features) throw std::invalid_argument("the number of a feature is out of range");
    if (std::exchange(found[static_cast<std::size_t>(id)], 1) != 0)
      throw std::invalid_argument("the number of a feature occurs twice");
    FeatureValue left = static_cast<FeatureValue>(number);
    for (std::size_t k = arrays.joins.size(); k-- > 0;) {
      if (static_cast<std::size_t>(left) >= arrays.joins[k].size())
        throw std::invalid_argument("a joined value is out of range");
      const std::uint64_t join = arrays.joins[k][static_cast<std::size_t>(left)];
      values[k + 1] = static_cast<FeatureValue>(join & code_mask);
      left = static_cast<FeatureValue>(join >> code_bits);
    }
    values[0] = left;
    index_.put(which, values, id);
  }
}

// Numbers are assigned in the order of the features.
void SequenceFeatures::store_table(std::size_t which, SequenceTableArrays& arrays) const {
  std::vector<FlatMap<std::uint64_t, std::int32_t>> numbers(arrays.joins.size());  // plus 1
  index_.for_each(which, [&](std::span<const FeatureValue> values, std::int32_t column) {
    auto left = static_cast<std::uint64_t>(values[0]);
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const std::uint64_t join = left << code_bits | static_cast<std::uint64_t>(values[k + 1]);
      std::int32_t& number = numbers[k][join];
      if (number == 0) {
        arrays.joins[k].push_back(join);
        number = static_cast<std::int32_t>(arrays.joins[k].size());
      }
      left = static_cast<std::uint64_t>(number - 1);
    }
    if (left >= arrays.ids.size()) arrays.ids.resize(left + 1, no_column);
    arrays.ids[left] = column;
  });
}

std::vector<SequenceTableArrays> SequenceFeatures::tables() const {
  std::vector<SequenceTableArrays> tables(all_.size());
  for (std::size_t t = 0; t < all_.size(); ++t) {
    tables[t].joins.resize(all_[t].size() - 1);
    if (index_.templates() > 0) store_table(t, tables[t]);  // otherwise nothing has been learned
  }
  return tables;
}

// --- Rows ----------------------------------------------------------------------------------------------

std::int32_t SequenceFeatures::value_of(const Lexicon& lexicon, std::string_view word,
                                        std::string& room) const {
  room.clear();
  append_small(word, room);
  const std::int32_t found = lexicon.words.find(room);
  return found < 0 ? -1 : lexicon.value_of[static_cast<std::size_t>(found)];
}

template <class Number>
void SequenceFeatures::read_with(const SequenceText& source, std::int64_t sentence, Sequence& to,
                                 std::string& room, const Number& number) const {
  const data::ColumnText& text = source.text;
  const std::int64_t first = text.first_token(sentence);
  const std::int64_t last = text.first_token(sentence + 1) - 1;
  const auto words = static_cast<std::size_t>(last - first + 1);
  to.reset(templates_.attributes.size(), words);
  const auto field = [&](std::int64_t token, int column) -> std::string_view {
    for (const GivenColumn& given : source.given) {
      if (given.column != column) continue;
      const std::int32_t value = given.values[static_cast<std::size_t>(token)];
      return value < 0 ? std::string_view() : given.names.name(value);
    }
    return column < text.columns() ? text.field(token, column) : std::string_view();
  };
  for (std::size_t i = 0; i < words; ++i) {
    const std::int64_t token =
        source.backward ? last - static_cast<std::int64_t>(i) : first + static_cast<std::int64_t>(i);
    const std::string_view word = text.field(token, sources_.word_column);
    for (std::size_t a = 0; a < templates_.attributes.size(); ++a) {
      const SequenceAttribute& attribute = templates_.attributes[a];
      const auto which = static_cast<std::size_t>(attribute.number);
      std::int32_t found = -1;
      if (attribute.kind == SequenceAttributeKind::lexicon) {
        const Lexicon& lexicon = sources_.lexicons[which];
        const std::int32_t value = value_of(lexicon, word, room);
        found = number(a, value < 0 ? std::string_view() : lexicon.values.name(value));
      } else if (attribute.kind == SequenceAttributeKind::column) {
        found = number(a, field(token, sources_.columns[which]));
      } else {
        room.clear();
        append_value(attribute, word, room);
        found = number(a, room);
      }
      to.set(a, i, found < 0 ? unknown : first_code + found);
    }
  }
}

void SequenceFeatures::read(const SequenceText& text, std::int64_t sentence, Sequence& to,
                            std::string& room) const {
  read_with(text, sentence, to, room,
            [&](std::size_t a, std::string_view value) { return values_[a].find(value); });
}

void SequenceFeatures::set_tags(std::span<const std::int32_t> answers, bool backward,
                                Sequence& sentence) const {
  for (std::size_t i = 0; i < sentence.words(); ++i)
    sentence.set_tag(i, tag_code(answers[backward ? sentence.words() - 1 - i : i]));
}

void SequenceFeatures::row(const Sequence& sentence, std::size_t word, std::vector<std::int32_t>& ids) const {
  ids.clear();
  for (std::size_t t = 0; t < index_.templates(); ++t) {
    const std::int32_t id = index_.find(t, codes_of(all_[t], sentence, word));
    if (id != no_column) ids.push_back(id);
  }
  std::ranges::sort(ids);
}

FeatureRows SequenceFeatures::rows(const SequenceText& source, std::span<const std::int32_t> answers,
                                   const Monitor& monitor) const {
  const data::ColumnText& text = source.text;
  const bool backward = source.backward;
  FeatureRows rows;
  Sequence sentence;
  std::string room;
  std::vector<std::int32_t> ids;
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    monitor.throw_if_stopped();
    read(source, s, sentence, room);
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
  const bool backward = source.backward;
  Sequence sentence;
  std::string room;
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    monitor.throw_if_stopped();
    read_with(source, s, sentence, room,
              [&](std::size_t a, std::string_view value) { return values_[a].add(value); });
  }
  for (const std::int32_t answer : answers) tags_ = std::max(tags_, answer + 1);
  index_ = FeatureIndex(ranges());

  FeatureRows rows;
  rows.offsets.reserve(answers.size() + 1);
  rows.columns.reserve(answers.size() * all_.size());
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    monitor.throw_if_stopped();
    read(source, s, sentence, room);
    set_tags(answers.subspan(static_cast<std::size_t>(text.first_token(s)), sentence.words()), backward,
             sentence);
    for (std::size_t i = 0; i < sentence.words(); ++i) {
      const auto begin = static_cast<std::ptrdiff_t>(rows.columns.size());
      for (std::size_t t = 0; t < all_.size(); ++t)
        rows.columns.push_back(index_.add(t, codes_of(all_[t], sentence, i)));
      std::sort(rows.columns.begin() + begin, rows.columns.end());
      rows.end_row();
    }
  }
  const auto kept = frequent_columns(rows, static_cast<std::size_t>(index_.columns()), min_count);
  index_.renumber(kept);
  renumber(rows, kept);
  return rows;
}

}  // namespace unkernel::parsing
