// Reads feature templates for words in a sequence, as a text that users write.
//
//   word[-1]            the word before this one; # begins a comment
//   suffix3[0]          the last three letters of this word
//   word[0]+tag[-1]     two values joined into one feature
//
// There is one template per line. Attributes are
//   word, lower             the word as it is, and with ASCII letters in lower case
//   shape                   X for an upper-case letter, x for a lower-case letter, d for a digit; no repeats
//   prefix1 .. prefix9,     the first or last characters (not bytes) of `lower`
//   suffix1 .. suffix9
//   tag                     the tag assigned to a previous word
// and those that a task adds: columns of the text, such as pos, and lexicons, which map words to values.
//
// Positions count in reading direction: -1 is the word read just before, which is the word to the right if
// text is read backward. Learners join features with each other. Features after the line [beside] are joined
// only with the features before it, which are the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace unkernel::parsing {

enum class SequenceAttributeKind { word, lower, column, lexicon, shape, prefix, suffix, tag };

struct SequenceAttribute {
  SequenceAttributeKind kind;
  int number;  // letters of a prefix or suffix; index of a column or lexicon; otherwise 0
  bool operator==(const SequenceAttribute&) const = default;
};

// One value of a template: an attribute of the word at an offset.
struct SequenceAddress {
  std::size_t attribute;  // index in SequenceTemplates; tags come after all others
  int offset;
  bool operator==(const SequenceAddress&) const = default;
};

constexpr int farthest_offset = 9;
constexpr std::size_t most_joined = 8;
constexpr std::size_t most_templates = 1000;

using SequenceTemplate = std::vector<SequenceAddress>;

struct SequenceTemplates {
  std::vector<SequenceAttribute> attributes;  // those that templates use, except tags
  // First the core, then the templates after [beside]. Within each, templates with tags come last.
  std::vector<SequenceTemplate> all;
  std::size_t core = 0;

  std::size_t tag_attribute() const { return attributes.size(); }
};

// The names of the attributes that a task adds.
struct SequenceNames {
  std::vector<std::string> columns;
  std::vector<std::string> lexicons;
};

// Reads the templates of a text. Throws FormatError with file, line and column.
SequenceTemplates read_sequence_templates(std::string_view text, const std::string& file,
                                          const SequenceNames& names);

// Appends the value of an attribute that depends only on the word itself.
void append_value(const SequenceAttribute& attribute, std::string_view word, std::string& to);
// Appends a word as lexicons spell it: ASCII letters in lower case, and 0 for each digit.
void append_plain(std::string_view word, std::string& to);

}  // namespace unkernel::parsing
