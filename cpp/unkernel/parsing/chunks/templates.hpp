// Which features a chunker looks at, as a text that users write.
//
//   word[-1]            the word before this one; # begins a comment
//   suffix3[0]          the last three letters of this one
//   word[0]+tag[-1]     both at once, as one feature
//
// A template a line. Attributes are word, lower (the word in small ASCII letters), pos, shape (X a capital, x
// a small letter, d a digit; repeated ones once), prefix1 .. prefix9 and suffix1 .. suffix9 (of `lower`;
// letters, not bytes) and tag, the answer given for a word before. Positions count in the direction of
// reading: -1 is the word that was read just before, which is the one to the right where text is read
// backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace unkernel::parsing {

enum class ChunkAttributeKind { word, lower, pos, shape, prefix, suffix, tag };

struct ChunkAttribute {
  ChunkAttributeKind kind;
  int letters;  // of prefixes and suffixes, else 0
  bool operator==(const ChunkAttribute&) const = default;
};

// One value that a template looks at.
struct ChunkAddress {
  std::size_t attribute;  // its number in ChunkTemplates; of tags: tag_attribute
  int offset;
  bool operator==(const ChunkAddress&) const = default;
};

constexpr std::size_t tag_attribute = static_cast<std::size_t>(-1);
constexpr int farthest_offset = 9;
constexpr std::size_t most_joined = 8;
constexpr std::size_t most_templates = 1000;

using ChunkTemplate = std::vector<ChunkAddress>;

struct ChunkTemplates {
  std::vector<ChunkAttribute> attributes;  // those in use, but for tags
  std::vector<ChunkTemplate> fixed;        // known before anything is answered
  std::vector<ChunkTemplate> dynamic;      // those that look at tags
};

// Throws FormatError that names file, line and column.
ChunkTemplates read_chunk_templates(std::string_view text, const std::string& file);

// Appends the value that a word and its part of speech have.
void append_value(const ChunkAttribute& attribute, std::string_view word, std::string_view pos,
                  std::string& to);

}  // namespace unkernel::parsing
