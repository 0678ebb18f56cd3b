// Divides a text into stretches that are tokenized independently: paragraphs, and parts of very long ones.
//
// Without a limit, memory would have to hold the whole of a text without blank lines, and a text in which no
// sentence ends would be one sentence. So paragraphs longer than a megabyte are cut at their last blanks
// before that size, or at that size if they have no blanks. Stretches depend only on the text since the last
// paragraph, not on how the text is read.
#pragma once

#include <cstddef>
#include <string_view>

#include "unkernel/parsing/text/characters.hpp"

namespace unkernel::parsing {

constexpr std::size_t longest_stretch = std::size_t{1} << 20;  // bytes, without the blanks that follow

struct Stretch {
  std::size_t end;  // where the next stretch begins, after any blanks
  bool ends_paragraph;
};

// Returns the position of the first byte, from `at` on, that is not a blank.
std::size_t skip_blanks(const CharacterKinds& kinds, std::string_view text, std::size_t at);

// Returns the stretch that begins at the byte `begin` of a longer text. It has at least one byte, even if the
// kinds of characters are damaged.
Stretch stretch_from(const CharacterKinds& kinds, std::string_view text, std::size_t begin);

// Returns the last stretch that cannot change if more text follows; its end is 0 if there is none. For texts
// that are read block by block.
Stretch whole_stretches(const CharacterKinds& kinds, std::string_view text);

}  // namespace unkernel::parsing
