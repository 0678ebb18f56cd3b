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

// The attributes derived from the form. The other string attributes are columns of the text.
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

// Returns a field. If XPOS is `_`, as in treebanks without language-specific tags, returns the universal tag
// instead.
std::string_view field_of(const data::ColumnText& text, std::int64_t token, int column) {
  const std::string_view field = text.field(token, column);
  return column == conll::xpos && field == "_" ? text.field(token, conll::upos) : field;
}

std::string_view normalised(std::string_view form, std::string& buffer) {
  buffer.assign(form);
  std::transform(buffer.begin(), buffer.end(), buffer.begin(),
                 [](char c) { return data::is_digit(c) ? '0' : small(c); });
  return buffer;
}

std::string_view shape(std::string_view form, std::string& buffer) {
  buffer.clear();
  append_shape(form, {.beyond_ascii = 'u', .longest = 8}, buffer);
  return buffer;
}

}  // namespace

std::string_view derived(Attribute attribute, std::string_view form, std::string& buffer) {
  const auto length = [&](Attribute first) {
    return static_cast<std::size_t>(attribute) - static_cast<std::size_t>(first) + 1;
  };
  switch (attribute) {
    case Attribute::word: return normalised(form, buffer);
    case Attribute::prefix1:
    case Attribute::prefix2:
    case Attribute::prefix3:
    case Attribute::prefix4:
      return data::first_characters(normalised(form, buffer), length(Attribute::prefix1));
    case Attribute::suffix1:
    case Attribute::suffix2:
    case Attribute::suffix3:
    case Attribute::suffix4:
      return data::last_characters(normalised(form, buffer), length(Attribute::suffix1));
    case Attribute::shape: return shape(form, buffer);
    default: return form;
  }
}

UsedAttributes used_attributes(const ParserTemplates& templates) {
  UsedAttributes used{};
  for (const TemplateSet* set : {&templates.moves, &templates.labels}) {
    for (const Template& feature : set->templates) {
      for (const TemplateValue& value : feature.values) {
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
    throw std::invalid_argument("the templates use clusters, but no clusters are given");
}

void Vocabulary::restore(const std::array<std::vector<std::string_view>, string_attributes>& strings) {
  for (std::size_t k = 0; k < string_attributes; ++k) {
    for (const std::string_view name : strings[k]) tables_[k].add(name);
    if (tables_[k].size() != strings[k].size())
      throw std::invalid_argument("the vocabulary has a string twice");
  }
  precompute_forms();
}

template <class Visit>
void Vocabulary::for_each_derived(std::string_view form, const Visit& visit) const {
  std::string buffer;
  for (const Attribute attribute : derived_attributes) {
    if (!used_[static_cast<std::size_t>(attribute)]) continue;
    visit(attribute, attribute == Attribute::cluster ? clusters_.value(normalised(form, buffer))
                                                     : derived(attribute, form, buffer));
  }
}

void Vocabulary::learn(const data::ColumnText& text, std::int64_t sentence) {
  for (std::int64_t token = text.first_token(sentence); token < text.first_token(sentence + 1); ++token) {
    for (const ColumnOf& source : columns) {
      const auto place = static_cast<std::size_t>(source.attribute);
      if (used_[place]) tables_[place].add(field_of(text, token, source.column));
    }
    for_each_derived(text.field(token, conll::form), [&](Attribute attribute, std::string_view value) {
      tables_[static_cast<std::size_t>(attribute)].add(value);
    });
  }
}

// Derives the strings of all forms in the training text, so that a lookup derives none.
void Vocabulary::precompute_forms() {
  forms_ = data::NameTable();
  form_symbols_.clear();
  const data::NameTable& forms =
      names(used_[static_cast<std::size_t>(Attribute::form)] ? Attribute::form : Attribute::word);
  for (std::size_t k = 0; k < forms.size(); ++k) {
    const std::string_view form = forms.name(static_cast<std::int32_t>(k));
    forms_.add(form);
    for_each_derived(form, [&](Attribute attribute, std::string_view value) {
      form_symbols_.push_back(find(attribute, value));
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
  const std::size_t derived_count = forms_.size() == 0 ? 0 : form_symbols_.size() / forms_.size();
  for (std::size_t word = 1; word <= words; ++word) {
    const std::int64_t token = first + static_cast<std::int64_t>(word) - 1;
    for (const ColumnOf& source : columns) {
      if (used_[static_cast<std::size_t>(source.attribute)])
        symbols.at(source.attribute, word) = find(source.attribute, field_of(text, token, source.column));
    }
    const std::string_view form = text.field(token, conll::form);
    const std::int32_t form_number = forms_.find(form);
    if (form_number < 0) {
      for_each_derived(form, [&](Attribute attribute, std::string_view value) {
        symbols.at(attribute, word) = find(attribute, value);
      });
      continue;
    }
    const Symbol* symbols_of_form =
        form_symbols_.data() + static_cast<std::size_t>(form_number) * derived_count;
    for (const Attribute attribute : derived_attributes) {
      if (used_[static_cast<std::size_t>(attribute)]) symbols.at(attribute, word) = *symbols_of_form++;
    }
  }
}

}  // namespace unkernel::parsing
