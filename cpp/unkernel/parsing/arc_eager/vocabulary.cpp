#include "unkernel/parsing/arc_eager/vocabulary.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "unkernel/data/decimal.hpp"
#include "unkernel/data/text/utf8.hpp"
#include "unkernel/parsing/features/word_pieces.hpp"

namespace unkernel::parsing {
namespace {

namespace conll = data::conll;

// These are derived from the form; the other strings have their own columns.
constexpr Attribute derived_attributes[] = {Attribute::form,    Attribute::word,    Attribute::prefix1,
                                            Attribute::prefix2, Attribute::prefix3, Attribute::prefix4,
                                            Attribute::suffix1, Attribute::suffix2, Attribute::suffix3,
                                            Attribute::suffix4, Attribute::shape,   Attribute::cluster};
struct ColumnOf {
  Attribute attribute;
  int column;
};
constexpr ColumnOf columns[] = {{Attribute::lemma, conll::lemma},
                                {Attribute::upos, conll::upos},
                                {Attribute::xpos, conll::xpos},
                                {Attribute::feats, conll::feats}};

// A treebank without language-specific tags has `_` in their column: uses the universal tags instead.
std::string_view field_of(const data::ColumnText& text, std::int64_t token, int column) {
  const std::string_view field = text.field(token, column);
  return column == conll::xpos && field == "_" ? text.field(token, conll::upos) : field;
}

std::string_view normalised(std::string_view form, std::string& room) {
  room.assign(form);
  std::transform(room.begin(), room.end(), room.begin(),
                 [](char c) { return data::is_digit(c) ? '0' : small(c); });
  return room;
}

std::string_view shape(std::string_view form, std::string& room) {
  room.clear();
  append_shape(form, {.beyond_ascii = 'u', .longest = 8}, room);
  return room;
}

}  // namespace

std::string_view derived(Attribute attribute, std::string_view form, std::string& room) {
  const auto order = [&](Attribute first) {
    return static_cast<std::size_t>(attribute) - static_cast<std::size_t>(first) + 1;
  };
  switch (attribute) {
    case Attribute::word: return normalised(form, room);
    case Attribute::prefix1:
    case Attribute::prefix2:
    case Attribute::prefix3:
    case Attribute::prefix4: return data::first_characters(normalised(form, room), order(Attribute::prefix1));
    case Attribute::suffix1:
    case Attribute::suffix2:
    case Attribute::suffix3:
    case Attribute::suffix4: return data::last_characters(normalised(form, room), order(Attribute::suffix1));
    case Attribute::shape: return shape(form, room);
    default: return form;
  }
}

UsedAttributes used_attributes(const ParserTemplates& templates) {
  UsedAttributes used{};
  for (const TemplateSet* set : {&templates.moves, &templates.labels}) {
    for (const Template& one : set->templates) {
      for (const TemplateValue& value : one.values) {
        if (is_string(value.attribute)) used[static_cast<std::size_t>(value.attribute)] = true;
      }
    }
  }
  return used;
}

Vocabulary::Vocabulary(const UsedAttributes& used, Lexicon clusters)
    : used_(used), clusters_(std::move(clusters)) {
  clusters_.check();
  if (used_[static_cast<std::size_t>(Attribute::cluster)] && clusters_.words.size() == 0)
    throw std::invalid_argument("the templates have features of clusters, and no clusters are given");
}

void Vocabulary::restore(const std::array<std::vector<std::string_view>, string_attributes>& strings) {
  for (std::size_t k = 0; k < string_attributes; ++k) {
    for (const std::string_view name : strings[k]) tables_[k].add(name);
    if (tables_[k].size() != strings[k].size())
      throw std::invalid_argument("a string of the vocabulary occurs twice");
  }
  settle();
}

template <class Take>
void Vocabulary::for_each_derived(std::string_view form, const Take& take) const {
  std::string room;
  for (const Attribute attribute : derived_attributes) {
    if (!used_[static_cast<std::size_t>(attribute)]) continue;
    take(attribute, attribute == Attribute::cluster ? clusters_.value(normalised(form, room))
                                                    : derived(attribute, form, room));
  }
}

void Vocabulary::learn(const data::ColumnText& text, std::int64_t sentence) {
  for (std::int64_t token = text.first_token(sentence); token < text.first_token(sentence + 1); ++token) {
    for (const ColumnOf& from : columns) {
      const auto place = static_cast<std::size_t>(from.attribute);
      if (used_[place]) tables_[place].add(field_of(text, token, from.column));
    }
    for_each_derived(text.field(token, conll::form), [&](Attribute attribute, std::string_view value) {
      tables_[static_cast<std::size_t>(attribute)].add(value);
    });
  }
}

// Precomputes the strings derived from the forms seen in training, so that frequent forms need no derivation.
void Vocabulary::settle() {
  forms_ = data::NameTable();
  of_forms_.clear();
  const data::NameTable& known =
      names(used_[static_cast<std::size_t>(Attribute::form)] ? Attribute::form : Attribute::word);
  for (std::size_t k = 0; k < known.size(); ++k) {
    const std::string_view form = known.name(static_cast<std::int32_t>(k));
    forms_.add(form);
    for_each_derived(form, [&](Attribute attribute, std::string_view value) {
      of_forms_.push_back(find(attribute, value));
    });
  }
}

Symbol Vocabulary::find(Attribute attribute, std::string_view name) const {
  const std::int32_t number = names(attribute).find(name);
  return number < 0 ? unknown_symbol : number + 1;
}

void Vocabulary::look_up(const data::ColumnText& text, std::int64_t sentence,
                         SentenceSymbols& symbols) const {
  const std::int64_t first = text.first_token(sentence);
  const auto words = static_cast<std::size_t>(text.first_token(sentence + 1) - first);
  symbols.resize(words);
  for (std::size_t k = 0; k < string_attributes; ++k)
    symbols.at(static_cast<Attribute>(k), 0) = absent_symbol;
  const std::size_t derived_count = forms_.size() == 0 ? 0 : of_forms_.size() / forms_.size();
  for (std::size_t word = 1; word <= words; ++word) {
    const std::int64_t token = first + static_cast<std::int64_t>(word) - 1;
    for (const ColumnOf& from : columns) {
      if (used_[static_cast<std::size_t>(from.attribute)])
        symbols.at(from.attribute, word) = find(from.attribute, field_of(text, token, from.column));
    }
    const std::string_view form = text.field(token, conll::form);
    const std::int32_t known = forms_.find(form);
    if (known < 0) {
      for_each_derived(form, [&](Attribute attribute, std::string_view value) {
        symbols.at(attribute, word) = find(attribute, value);
      });
      continue;
    }
    const Symbol* of_form = of_forms_.data() + static_cast<std::size_t>(known) * derived_count;
    for (const Attribute attribute : derived_attributes) {
      if (used_[static_cast<std::size_t>(attribute)]) symbols.at(attribute, word) = *of_form++;
    }
  }
}

}  // namespace unkernel::parsing
