// Feature templates for words in a sequence, as a text that users write.
//
//   word[-1]            the word before this one; # begins a comment
//   suffix3[0]          the last three letters of this word
//   word[0]+tag[-1]     two values joined into one feature
//
// One template per line. Attributes are word, lower (the word with ASCII letters in lower case), shape (X an
// upper-case letter, x a lower-case letter, d a digit; runs collapsed), prefix1 .. prefix9 and suffix1 ..
// suffix9 (of `lower`; characters, not bytes), tag, the tag assigned to a previous word, and attributes that
// a task adds: columns of the text, such as pos, and lexicons, which give a value to words. Positions count
// in reading direction: -1 is the word read just before, which is the word to the right if text is read
// backward. Learners join features with each other; features after the line [beside] are joined only with
// the features before it, which are the core.
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
  int number;  // of letters in a prefix or suffix, or of the column or lexicon; otherwise 0
  bool operator==(const SequenceAttribute&) const = default;
};

// One value of a template: an attribute of the word at an offset.
struct SequenceAddress {
  std::size_t attribute;  // its number in SequenceTemplates; tags come after all others
  int offset;
  bool operator==(const SequenceAddress&) const = default;
};

constexpr int farthest_offset = 9;
constexpr std::size_t most_joined = 8;
constexpr std::size_t most_templates = 1000;

using SequenceTemplate = std::vector<SequenceAddress>;

struct SequenceTemplates {
  std::vector<SequenceAttribute> attributes;  // that templates use, except tags
  // First the core, then the templates after [beside]; in each of these parts, templates with tags come last.
  std::vector<SequenceTemplate> all;
  std::size_t core = 0;

  std::size_t tag_attribute() const { return attributes.size(); }
};

// The names of the attributes that a task adds.
struct SequenceNames {
  std::vector<std::string> columns;
  std::vector<std::string> lexicons;
};

// Throws FormatError with file, line and column.
SequenceTemplates read_sequence_templates(std::string_view text, const std::string& file,
                                          const SequenceNames& names);

// Appends the value of an attribute that depends on a word alone.
void append_value(const SequenceAttribute& attribute, std::string_view word, std::string& to);
// Appends a word in the form used by lexicons: with ASCII letters in lower case, and 0 for digits.
void append_plain(std::string_view word, std::string& to);

}  // namespace unkernel::parsing
