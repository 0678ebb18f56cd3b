// Stretches of text that are split by themselves: paragraphs, and parts of very long ones.
//
// A text without blank lines would have to be in memory as a whole, and one without sentence ends would be
// one sentence. So what is longer than a megabyte is cut: after its last blanks before that, or wherever it
// has none. Stretches depend on the text since the last paragraph only, and so not on how it is read.
#pragma once

#include <cstddef>
#include <string_view>

#include "unkernel/parsing/text/characters.hpp"

namespace unkernel::parsing {

constexpr std::size_t longest_stretch = std::size_t{1} << 20;  // bytes, and blanks that follow

struct Stretch {
  std::size_t end;  // where the next one begins: blanks belong to the one before them
  bool ends_paragraph;
};

// The first byte from `at` on that is no blank.
std::size_t skip_blanks(const CharacterKinds& kinds, std::string_view text, std::size_t at);

// The stretch that begins in the byte `begin` of a longer text. It has at least one byte, whatever the kinds
// say.
Stretch stretch_from(const CharacterKinds& kinds, std::string_view text, std::size_t begin);

// The stretches at the begin of a text that stay as they are whatever is added to it, for texts that are read
// block by block: where the last of them ends, or 0.
Stretch whole_stretches(const CharacterKinds& kinds, std::string_view text);

}  // namespace unkernel::parsing
