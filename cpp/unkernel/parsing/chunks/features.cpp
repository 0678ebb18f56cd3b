#include "unkernel/parsing/chunks/features.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace unkernel::parsing {
namespace {

constexpr int word_column = 0;
constexpr int pos_column = 1;
constexpr std::int32_t most_features = std::numeric_limits<std::int32_t>::max() - 1;

std::vector<ChunkTemplate> all_templates(const ChunkTemplates& templates) {
  std::vector<ChunkTemplate> all = templates.fixed;
  all.insert(all.end(), templates.dynamic.begin(), templates.dynamic.end());
  for (ChunkTemplate& each : all) {
    for (ChunkAddress& address : each) {
      if (address.attribute == tag_attribute) address.attribute = templates.attributes.size();
    }
  }
  return all;
}

auto codes_of(const ChunkTemplate& addresses, const ChunkSentence& sentence, std::size_t word) {
  return [&addresses, &sentence, word](std::size_t k) {
    return sentence.at(addresses[k].attribute, word)[addresses[k].offset];
  };
}

}  // namespace

void ChunkSentence::reset(std::size_t attributes, std::size_t words) {
  attributes_ = attributes;
  words_ = words;
  stride_ = words + 2 * margin;
  codes_.assign((attributes + 1) * stride_, before_first);
  for (std::size_t a = 0; a <= attributes; ++a)
    std::fill_n(codes_.begin() + static_cast<std::ptrdiff_t>(a * stride_ + margin + words), margin,
                behind_last);
}

ChunkTable::ChunkTable(std::size_t values, const ChunkTableArrays& arrays, std::int32_t features)
    : joins_(values - 1), ids_(arrays.ids) {
  if (arrays.joins.size() != joins_.size())
    throw std::invalid_argument("a template joins another number of values than its table");
  for (std::size_t k = 0; k < joins_.size(); ++k) {
    for (const std::uint64_t stored : arrays.joins[k]) {
      std::int32_t& number = stored == Join::no_key
                                 ? throw std::invalid_argument("a joined value is out of range")
                                 : joins_[k][stored];
      if (number != 0) throw std::invalid_argument("a joined value occurs twice");
      number = static_cast<std::int32_t>(joins_[k].size());
    }
  }
  for (const std::int32_t id : ids_) {
    if (id < -1 || id >= features) throw std::invalid_argument("the number of a feature is out of range");
  }
}

void ChunkTable::renumber(std::span<const std::int32_t> renumbered) {
  for (std::int32_t& id : ids_) {
    if (id >= 0) id = renumbered[static_cast<std::size_t>(id)];
  }
}

ChunkTableArrays ChunkTable::arrays() const {
  ChunkTableArrays arrays{{}, ids_};
  for (const Join& join : joins_) {
    auto& keys = arrays.joins.emplace_back(join.size());
    join.for_each([&](std::uint64_t stored, std::int32_t number) {
      keys[static_cast<std::size_t>(number - 1)] = stored;
    });
  }
  return arrays;
}

ChunkFeatures::ChunkFeatures(ChunkTemplates templates)
    : templates_(std::move(templates)),
      all_(all_templates(templates_)),
      values_(templates_.attributes.size()) {
  for (const ChunkTemplate& each : all_) tables_.emplace_back(each.size());
}

ChunkFeatures::ChunkFeatures(ChunkTemplates templates, std::vector<data::NameTable> values,
                             std::span<const ChunkTableArrays> tables, std::int32_t features)
    : templates_(std::move(templates)),
      all_(all_templates(templates_)),
      values_(std::move(values)),
      features_(features) {
  if (values_.size() != templates_.attributes.size() || tables.size() != all_.size() || features < 0) {
    throw std::invalid_argument("the tables of features are not those of the templates");
  }
  for (std::size_t t = 0; t < all_.size(); ++t) tables_.emplace_back(all_[t].size(), tables[t], features);
}

bool ChunkFeatures::needs_pos() const {
  return std::ranges::any_of(templates_.attributes, [](const ChunkAttribute& attribute) {
    return attribute.kind == ChunkAttributeKind::pos;
  });
}

std::vector<ChunkTableArrays> ChunkFeatures::tables() const {
  std::vector<ChunkTableArrays> tables;
  for (const ChunkTable& table : tables_) tables.push_back(table.arrays());
  return tables;
}

template <class Number>
void ChunkFeatures::read_with(const data::ColumnText& text, std::int64_t sentence, bool backward,
                              ChunkSentence& to, std::string& room, const Number& number) const {
  const std::int64_t first = text.first_token(sentence);
  const std::int64_t last = text.first_token(sentence + 1) - 1;
  const auto words = static_cast<std::size_t>(last - first + 1);
  to.reset(templates_.attributes.size(), words);
  const bool has_pos = text.columns() > pos_column;
  for (std::size_t i = 0; i < words; ++i) {
    const std::int64_t token =
        backward ? last - static_cast<std::int64_t>(i) : first + static_cast<std::int64_t>(i);
    const std::string_view word = text.field(token, word_column);
    const std::string_view pos = has_pos ? text.field(token, pos_column) : std::string_view();
    for (std::size_t a = 0; a < templates_.attributes.size(); ++a) {
      room.clear();
      append_value(templates_.attributes[a], word, pos, room);
      const std::int32_t found = number(a, room);
      to.set(a, i, found < 0 ? unknown : first_code + found);
    }
  }
}

void ChunkFeatures::read(const data::ColumnText& text, std::int64_t sentence, bool backward,
                         ChunkSentence& to, std::string& room) const {
  read_with(text, sentence, backward, to, room,
            [&](std::size_t a, std::string_view value) { return values_[a].find(value); });
}

void ChunkFeatures::row(const ChunkSentence& sentence, std::size_t word,
                        std::vector<std::int32_t>& ids) const {
  ids.clear();
  for (std::size_t t = 0; t < all_.size(); ++t) {
    const std::int32_t id = tables_[t].find(codes_of(all_[t], sentence, word));
    if (id >= 0) ids.push_back(id);
  }
  std::ranges::sort(ids);
}

ChunkRows ChunkFeatures::rows(const data::ColumnText& text, std::span<const std::int32_t> answers,
                              bool backward) const {
  ChunkRows rows;
  ChunkSentence sentence;
  std::string room;
  std::vector<std::int32_t> ids;
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    read(text, s, backward, sentence, room);
    const auto first = static_cast<std::size_t>(text.first_token(s));
    const auto turned = [&](std::size_t i) { return backward ? sentence.words() - 1 - i : i; };
    for (std::size_t i = 0; i < sentence.words(); ++i) {
      const std::int32_t answer = answers[first + turned(i)];
      sentence.set_tag(i, answer < 0 ? unknown : first_code + answer);
    }
    for (std::size_t i = 0; i < sentence.words(); ++i) {
      row(sentence, turned(i), ids);
      rows.columns.insert(rows.columns.end(), ids.begin(), ids.end());
      rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
    }
  }
  return rows;
}

ChunkRows ChunkFeatures::learn(const data::ColumnText& text, std::span<const std::int32_t> answers,
                               bool backward, std::int64_t minimum) {
  ChunkRows rows;
  rows.offsets.reserve(answers.size() + 1);
  rows.columns.reserve(answers.size() * all_.size());
  ChunkSentence sentence;
  std::string room;
  for (std::int64_t s = 0; s < text.sentences(); ++s) {
    read_with(text, s, backward, sentence, room,
              [&](std::size_t a, std::string_view value) { return values_[a].add(value); });
    const auto first = static_cast<std::size_t>(text.first_token(s));
    for (std::size_t i = 0; i < sentence.words(); ++i) {
      const std::size_t token = backward ? first + sentence.words() - 1 - i : first + i;
      sentence.set_tag(i, first_code + answers[token]);
    }
    learn_sentence(sentence, rows);
  }
  drop_rare(minimum, rows);
  return rows;
}

void ChunkFeatures::learn_sentence(const ChunkSentence& sentence, ChunkRows& rows) {
  for (std::size_t i = 0; i < sentence.words(); ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(rows.columns.size());
    for (std::size_t t = 0; t < all_.size(); ++t) {
      const std::int32_t id = tables_[t].add(codes_of(all_[t], sentence, i), features_);
      if (id == features_ && ++features_ > most_features)
        throw std::length_error("there are too many features");
      rows.columns.push_back(id);
    }
    std::sort(rows.columns.begin() + begin, rows.columns.end());
    rows.offsets.push_back(static_cast<std::int64_t>(rows.columns.size()));
  }
}

// What is left keeps its order.
void ChunkFeatures::drop_rare(std::int64_t minimum, ChunkRows& rows) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(features_));
  for (const std::int32_t id : rows.columns) ++counts[static_cast<std::size_t>(id)];
  std::vector<std::int32_t> renumbered(counts.size(), -1);
  features_ = 0;
  for (std::size_t id = 0; id < counts.size(); ++id) {
    if (counts[id] >= minimum) renumbered[id] = features_++;
  }
  for (ChunkTable& table : tables_) table.renumber(renumbered);
  std::size_t kept = 0;
  std::size_t k = 0;
  for (std::size_t r = 1; r < rows.offsets.size(); ++r) {
    for (; k < static_cast<std::size_t>(rows.offsets[r]); ++k) {
      const std::int32_t id = renumbered[static_cast<std::size_t>(rows.columns[k])];
      if (id >= 0) rows.columns[kept++] = id;
    }
    rows.offsets[r] = static_cast<std::int64_t>(kept);
  }
  rows.columns.resize(kept);
}

}  // namespace unkernel::parsing
