// Feature templates: a text file defines which values of a parser's state become features.
//
//   [moves]                        features that choose the next transition
//   stack.word                     the word on top of the stack
//   input[1].xpos                  the tag of the word after the next word
//   stack.head.word                the head of the word on top of the stack
//   stack.xpos + input.xpos        two values joined into one feature
//   distance                       the distance from the top of the stack to the next word
//   [beside moves]                 features joined with features of [moves], but not with each other
//   stack.shape
//   [labels]                       features that label an arc
//   dependent[-1].xpos             the tag of the word before the dependent
//
// An address is `stack` or `input` (for moves), or `head` or `dependent` (for labels). A number in brackets
// counts from the top of the stack, from the next word, or along the sentence. Steps may follow: `head`;
// `left` and `right` (the outermost children); `left2` and `right2` (the children next to these); `before`
// and `after`. `#` begins a comment.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/parsing/arc_eager/transitions.hpp"

namespace unkernel::parsing {

// Attributes up to `cluster` are strings: fields of the text, or derived from the form of a word. Later
// attributes are numbers taken from the state of the parser.
enum class Attribute : std::uint8_t {
  form,
  word,  // the form in lower case, with 0 for each digit
  lemma,
  upos,
  xpos,
  feats,
  prefix1,
  prefix2,
  prefix3,
  prefix4,
  suffix1,
  suffix2,
  suffix3,
  suffix4,
  shape,
  cluster,
  label,
  left_valency,
  right_valency,
  distance,
  direction,
};
constexpr std::size_t string_attributes = static_cast<std::size_t>(Attribute::cluster) + 1;

constexpr bool is_string(Attribute attribute) {
  return static_cast<std::size_t>(attribute) < string_attributes;
}

enum class Base : std::uint8_t { stack, input, head, dependent };
enum class Step : std::uint8_t { head, left, left2, right, right2, before, after };

struct Address {
  Base base;
  std::int32_t offset;
  std::vector<Step> steps;

  auto operator<=>(const Address&) const = default;
};

struct TemplateValue {
  std::size_t address;  // index into the addresses of the set; unused for distance and direction
  Attribute attribute;

  auto operator<=>(const TemplateValue&) const = default;
};

struct Template {
  std::string text;
  std::vector<TemplateValue> values;
};

// The templates of a section and its [beside] section, which share addresses.
struct TemplateSet {
  std::vector<Address> addresses;
  std::vector<Template> templates;
  // The number of core templates, which come first. They are joined with all templates, later ones only with
  // the core.
  std::size_t core = 0;
};

struct ParserTemplates {
  TemplateSet moves;
  TemplateSet labels;
};

// Reads a template file. Throws a FormatError that names the line and lists the valid names.
ParserTemplates read_templates(const std::string& file, std::string_view text);

// Returns the word at an address, or 0 if there is none. `arc` is the arc to label.
Word word_at(const ArcEagerState& state, const Arc& arc, const Address& address);

}  // namespace unkernel::parsing
