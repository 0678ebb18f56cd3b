#include "unkernel/parsing/bunsetsu/features.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

namespace unkernel::parsing {

using data::BunsetsuText;
using data::MorphemeField;
using data::NameTable;

// --- Columns -----------------------------------------------------------------------------------------

BunsetsuFeatures::BunsetsuFeatures(std::vector<BunsetsuTemplate> templates, NameTable symbols,
                                   std::vector<std::int32_t> begins, std::vector<std::int32_t> values)
    : templates_(std::move(templates)),
      symbols_(std::move(symbols)),
      begins_(std::move(begins)),
      values_(std::move(values)) {
  if (begins_.size() != templates_.size() + 1 || begins_.front() != 0 || !std::ranges::is_sorted(begins_) ||
      static_cast<std::size_t>(begins_.back()) != values_.size()) {
    throw std::invalid_argument(
        "the templates do not begin at ascending columns from 0 to the number of columns");
  }
  table_.assign(symbols_.size() * templates_.size(), no_column);
  for (std::size_t t = 0; t < templates_.size(); ++t) {
    std::int32_t previous = -1;
    for (std::int32_t c = begins_[t]; c < begins_[t + 1]; ++c) {
      const std::int32_t symbol = values_[static_cast<std::size_t>(c)];
      if (symbol <= previous || static_cast<std::size_t>(symbol) >= symbols_.size())
        throw std::invalid_argument("the symbols of a template do not ascend, or are out of range");
      table_[static_cast<std::size_t>(symbol) * templates_.size() + t] = c;
      previous = symbol;
    }
  }
}

BunsetsuFeatures BunsetsuFeatures::all_of(std::vector<BunsetsuTemplate> templates, const NameTable& names) {
  NameTable symbols = names;
  for (const std::string_view value : bunsetsu_values::all()) symbols.add(value);
  if (symbols.size() * templates.size() >
      static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw std::length_error("there are too many different strings for features");
  }
  std::vector<std::int32_t> begins{0}, values;
  for (std::size_t t = 0; t < templates.size(); ++t) {
    for (std::size_t s = 0; s < symbols.size(); ++s) values.push_back(static_cast<std::int32_t>(s));
    begins.push_back(static_cast<std::int32_t>(values.size()));
  }
  return BunsetsuFeatures(std::move(templates), std::move(symbols), std::move(begins), std::move(values));
}

BunsetsuFeatures BunsetsuFeatures::keep_columns(std::span<const std::int32_t> new_numbers) const {
  std::vector<std::int32_t> new_symbol(symbols_.size(), -1);
  for (std::size_t c = 0; c < columns(); ++c) {
    if (new_numbers[c] != no_column) new_symbol[static_cast<std::size_t>(values_[c])] = 0;
  }
  NameTable symbols;
  for (std::size_t s = 0; s < new_symbol.size(); ++s) {
    if (new_symbol[s] == 0) new_symbol[s] = symbols.add(symbols_.name(static_cast<std::int32_t>(s)));
  }
  std::vector<std::int32_t> begins{0}, values;
  for (std::size_t t = 0; t < templates_.size(); ++t) {
    for (auto c = static_cast<std::size_t>(begins_[t]); c < static_cast<std::size_t>(begins_[t + 1]); ++c) {
      if (new_numbers[c] != no_column) values.push_back(new_symbol[static_cast<std::size_t>(values_[c])]);
    }
    begins.push_back(static_cast<std::int32_t>(values.size()));
  }
  return BunsetsuFeatures(templates_, std::move(symbols), std::move(begins), std::move(values));
}

std::string BunsetsuFeatures::name(std::size_t column) const {
  const auto next_begin = std::ranges::upper_bound(begins_, static_cast<std::int32_t>(column));
  const auto template_index = static_cast<std::size_t>(next_begin - begins_.begin()) - 1;
  return templates_[template_index].name + "=" + std::string(symbols_.name(values_[column]));
}

// --- Symbols -----------------------------------------------------------------------------------------

namespace {

struct Classified {
  std::string_view name;
  BunsetsuSymbols::Class kind;
};
// Parts of speech and their subcategories, as the tag sets of JUMAN, IPA and UniDic name them.
constexpr Classified classified[] = {
    {"特殊", BunsetsuSymbols::mark},      {"記号", BunsetsuSymbols::mark},
    {"補助記号", BunsetsuSymbols::mark},  {"助詞", BunsetsuSymbols::particle},
    {"読点", BunsetsuSymbols::comma},     {"句点", BunsetsuSymbols::period},
    {"括弧始", BunsetsuSymbols::opening}, {"括弧開", BunsetsuSymbols::opening},
    {"括弧終", BunsetsuSymbols::closing}, {"括弧閉", BunsetsuSymbols::closing},
};

// Returns the index of a distance in bunsetsu_values::distances.
std::size_t distance_class(std::size_t distance) {
  if (distance == 1) return 0;
  return distance < 6 ? 1 : 2;
}

}  // namespace

BunsetsuSymbols::BunsetsuSymbols(const BunsetsuText& text, const BunsetsuFeatures& features)
    : text_(text), features_(features) {
  const NameTable& names = text.names();
  classes_.assign(names.size(), 0);
  known_.reserve(names.size());
  for (std::size_t s = 0; s < names.size(); ++s)
    known_.push_back(features.symbols().find(names.name(static_cast<std::int32_t>(s))));
  for (const Classified& entry : classified) {
    const std::int32_t symbol = names.find(entry.name);
    if (symbol >= 0) classes_[static_cast<std::size_t>(symbol)] |= entry.kind;
  }
}

namespace {

// Returns the last morpheme that is not a punctuation mark, or -1 if there are only marks.
std::int64_t function_word(const BunsetsuSymbols& symbols, std::size_t bunsetsu) {
  const BunsetsuText& text = symbols.text();
  for (std::size_t m = text.first_morpheme(bunsetsu + 1); m-- > text.first_morpheme(bunsetsu);) {
    if (!symbols.is(text.symbol(m, MorphemeField::pos), BunsetsuSymbols::mark))
      return static_cast<std::int64_t>(m);
  }
  return -1;
}

}  // namespace

UnknownPos unknown_pos(const BunsetsuSymbols& symbols, std::size_t most_examples) {
  const auto templates = symbols.features().templates();
  const auto pos_of_function_words = std::ranges::find_if(templates, [](const BunsetsuTemplate& feature) {
    return feature.kind == BunsetsuKind::word && feature.word == BunsetsuWord::function &&
           feature.field == MorphemeField::pos;
  });
  UnknownPos unknown;
  if (pos_of_function_words == templates.end()) return unknown;
  const BunsetsuText& text = symbols.text();
  for (std::size_t s = 0; s < text.sentences(); ++s) {
    const std::size_t end = std::max(text.first_bunsetsu(s + 1), text.first_bunsetsu(s) + 1) - 1;
    for (std::size_t b = text.first_bunsetsu(s); b < end; ++b) {  // the last one has no decision
      ++unknown.decided;
      const std::int64_t word = function_word(symbols, b);
      if (word < 0) continue;
      const auto m = static_cast<std::size_t>(word);
      if (symbols.known(text.symbol(m, MorphemeField::pos)) >= 0) continue;
      ++unknown.bunsetsu;
      std::string name(text.field(m, MorphemeField::pos));
      const bool is_listed = std::ranges::find(unknown.examples, name) != unknown.examples.end();
      if (unknown.examples.size() < most_examples && !is_listed) unknown.examples.push_back(std::move(name));
    }
  }
  return unknown;
}

// --- Rows --------------------------------------------------------------------------------------------

BunsetsuRows::BunsetsuRows(const BunsetsuSymbols& symbols) : symbols_(symbols) {
  const BunsetsuFeatures& features = symbols.features();
  const auto templates = features.templates();
  for (std::size_t role = 0; role < std::size(first_template_); ++role) {
    const auto first = std::ranges::find_if(
        templates, [&](const auto& feature) { return static_cast<std::size_t>(feature.role) >= role; });
    first_template_[role] = static_cast<std::size_t>(first - templates.begin());
  }
  competing_template_ = templates.size();
  for (std::size_t t = 0; t < templates.size(); ++t) {
    Categories columns{};
    columns.yes = features.column(t, bunsetsu_values::yes);
    columns.no = features.column(t, bunsetsu_values::no);
    for (std::size_t k = 0; k < 4; ++k)
      columns.brackets[k] = features.column(t, bunsetsu_values::brackets[k]);
    for (std::size_t k = 0; k < 4; ++k)
      columns.punctuation[k] = features.column(t, bunsetsu_values::punctuation[k]);
    for (std::size_t k = 0; k < 3; ++k)
      columns.distances[k] = features.column(t, bunsetsu_values::distances[k]);
    categories_.push_back(columns);
    if (templates[t].role == BunsetsuRole::pair && templates[t].kind == BunsetsuKind::particles)
      competing_template_ = t;
  }
}

void BunsetsuRows::load(std::size_t sentence) {
  const BunsetsuText& text = symbols_.text();
  const std::size_t first = text.first_bunsetsu(sentence);
  bunsetsu_.resize(text.first_bunsetsu(sentence + 1) - first);
  particles_.clear();
  columns_.clear();
  std::int32_t openings = 0, closings = 0;
  for (std::size_t b = 0; b < size(); ++b) {
    Bunsetsu& bunsetsu = bunsetsu_[b];
    read_morphemes(text.first_morpheme(first + b), text.first_morpheme(first + b + 1), bunsetsu);
    bunsetsu.openings_before = openings;
    bunsetsu.closings_before = closings;
    openings += bunsetsu.openings;
    closings += bunsetsu.closings;
    for (std::size_t role = 0; role < bunsetsu_roles; ++role)
      fill_part(b, static_cast<BunsetsuRole>(role), bunsetsu);
    bunsetsu.competing.begin = static_cast<std::uint32_t>(columns_.size());
    if (competing_template_ < categories_.size()) add_particles(competing_template_, bunsetsu);
    bunsetsu.competing.end = static_cast<std::uint32_t>(columns_.size());
  }
}

void BunsetsuRows::read_morphemes(std::size_t begin, std::size_t end, Bunsetsu& bunsetsu) {
  const BunsetsuText& text = symbols_.text();
  using Class = BunsetsuSymbols::Class;
  bunsetsu = {};
  std::ranges::fill(bunsetsu.words, no_morpheme);
  bunsetsu.particles.begin = static_cast<std::uint32_t>(particles_.size());
  for (std::size_t m = begin; m < end; ++m) {
    const std::int32_t pos = text.symbol(m, MorphemeField::pos);
    if (symbols_.is(pos, Class::mark)) {
      const std::int32_t subpos = text.symbol(m, MorphemeField::subpos);
      bunsetsu.comma |= symbols_.is(subpos, Class::comma);
      bunsetsu.period |= symbols_.is(subpos, Class::period);
      bunsetsu.openings += symbols_.is(subpos, Class::opening);
      bunsetsu.closings += symbols_.is(subpos, Class::closing);
      continue;
    }
    bunsetsu.words[static_cast<std::size_t>(BunsetsuWord::function)] = static_cast<std::int64_t>(m);
    if (symbols_.is(pos, Class::particle)) {
      const std::int32_t symbol = symbols_.known(text.symbol(m, MorphemeField::surface));
      if (symbol >= 0) particles_.push_back(symbol);
    } else {
      bunsetsu.words[static_cast<std::size_t>(BunsetsuWord::content)] = static_cast<std::int64_t>(m);
    }
  }
  bunsetsu.words[static_cast<std::size_t>(BunsetsuWord::first)] = static_cast<std::int64_t>(begin);
  bunsetsu.words[static_cast<std::size_t>(BunsetsuWord::last)] = static_cast<std::int64_t>(end) - 1;
  const std::int64_t content = bunsetsu.words[static_cast<std::size_t>(BunsetsuWord::content)];
  bunsetsu.content =
      content == no_morpheme ? -1 : text.symbol(static_cast<std::size_t>(content), MorphemeField::surface);
  // Ascending symbols give ascending columns.
  const auto begin_of_particles = particles_.begin() + bunsetsu.particles.begin;
  std::sort(begin_of_particles, particles_.end());
  particles_.erase(std::unique(begin_of_particles, particles_.end()), particles_.end());
  bunsetsu.particles.end = static_cast<std::uint32_t>(particles_.size());
}

void BunsetsuRows::fill_part(std::size_t number, BunsetsuRole role, Bunsetsu& bunsetsu) {
  const auto place = static_cast<std::size_t>(role);
  const auto templates = symbols_.features().templates();
  Range& part = bunsetsu.parts[place];
  part.begin = static_cast<std::uint32_t>(columns_.size());
  for (std::size_t t = first_template_[place]; t < first_template_[place + 1]; ++t) {
    const Categories& columns = categories_[t];
    switch (templates[t].kind) {
      case BunsetsuKind::word: add_word(t, templates[t], bunsetsu); break;
      case BunsetsuKind::beginning: add(number == 0 ? columns.yes : columns.no); break;
      case BunsetsuKind::end: add(number + 1 == size() ? columns.yes : columns.no); break;
      case BunsetsuKind::brackets:
        add(columns.brackets[bracket_state(bunsetsu.openings, bunsetsu.closings)]);
        break;
      case BunsetsuKind::punctuation:
        add(columns.punctuation[(bunsetsu.comma ? 1 : 0) + (bunsetsu.period ? 2 : 0)]);
        break;
      case BunsetsuKind::particles: add_particles(t, bunsetsu); break;
      case BunsetsuKind::distance:
      case BunsetsuKind::same: break;  // used by pairs only
    }
  }
  part.end = static_cast<std::uint32_t>(columns_.size());
}

void BunsetsuRows::add_word(std::size_t template_index, const BunsetsuTemplate& feature,
                            const Bunsetsu& bunsetsu) {
  const std::int64_t morpheme = bunsetsu.words[static_cast<std::size_t>(feature.word)];
  if (morpheme == no_morpheme) return;
  const std::int32_t symbol =
      symbols_.known(symbols_.text().symbol(static_cast<std::size_t>(morpheme), feature.field));
  if (symbol >= 0) add(symbols_.features().column(template_index, symbol));
}

void BunsetsuRows::add_particles(std::size_t template_index, const Bunsetsu& bunsetsu) {
  for (std::uint32_t p = bunsetsu.particles.begin; p < bunsetsu.particles.end; ++p)
    add(symbols_.features().column(template_index, particles_[p]));
}

std::size_t BunsetsuRows::bracket_state(std::int32_t openings, std::int32_t closings) {
  if (openings != closings) return openings > closings ? 0 : 1;
  return openings == 0 ? 2 : 3;
}

void BunsetsuRows::add_dependent(std::size_t bunsetsu) {
  const Range particles = bunsetsu_[bunsetsu].competing;
  if (particles.begin == particles.end) return;
  competitors_.insert(competitors_.end(), columns_.begin() + particles.begin,
                      columns_.begin() + particles.end);
  std::ranges::sort(competitors_);
  competitors_.erase(std::unique(competitors_.begin(), competitors_.end()), competitors_.end());
}

void BunsetsuRows::append(Range part) {
  row_.insert(row_.end(), columns_.begin() + part.begin, columns_.begin() + part.end);
}

std::span<const std::int32_t> BunsetsuRows::row(std::size_t modifier, std::size_t candidate) {
  row_.clear();
  for (std::size_t role = 0; role < bunsetsu_roles; ++role) {
    const Bunsetsu* bunsetsu = in_role(static_cast<BunsetsuRole>(role), modifier, candidate);
    if (bunsetsu != nullptr) append(bunsetsu->parts[role]);
  }
  const std::size_t pair = static_cast<std::size_t>(BunsetsuRole::pair);
  for (std::size_t t = first_template_[pair]; t < first_template_[pair + 1]; ++t)
    add_pair(t, modifier, candidate);
  return row_;
}

const BunsetsuRows::Bunsetsu* BunsetsuRows::in_role(BunsetsuRole role, std::size_t modifier,
                                                    std::size_t candidate) const {
  switch (role) {
    case BunsetsuRole::before: return modifier == 0 ? nullptr : &bunsetsu_[modifier - 1];
    case BunsetsuRole::modifier: return &bunsetsu_[modifier];
    case BunsetsuRole::candidate: return &bunsetsu_[candidate];
    case BunsetsuRole::after: return candidate + 1 == size() ? nullptr : &bunsetsu_[candidate + 1];
    case BunsetsuRole::pair: break;
  }
  return nullptr;
}

void BunsetsuRows::add_pair(std::size_t template_index, std::size_t modifier, std::size_t candidate) {
  const BunsetsuTemplate& feature = symbols_.features().templates()[template_index];
  const Categories& columns = categories_[template_index];
  std::int32_t column = no_column;
  switch (feature.kind) {
    case BunsetsuKind::same: {
      const Bunsetsu* left = in_role(feature.left, modifier, candidate);
      const Bunsetsu* right = in_role(feature.right, modifier, candidate);
      if (left != nullptr && right != nullptr && left->content >= 0 && left->content == right->content)
        column = columns.yes;
      break;
    }
    case BunsetsuKind::distance: column = columns.distances[distance_class(candidate - modifier)]; break;
    case BunsetsuKind::brackets: {
      const Bunsetsu& from = bunsetsu_[modifier + 1];
      const Bunsetsu& to = bunsetsu_[candidate];
      column = columns.brackets[bracket_state(to.openings_before - from.openings_before,
                                              to.closings_before - from.closings_before)];
      break;
    }
    case BunsetsuKind::particles: row_.insert(row_.end(), competitors_.begin(), competitors_.end()); break;
    default: break;
  }
  if (column != no_column) row_.push_back(column);
}

}  // namespace unkernel::parsing
