// Writes tokens as lines of CoNLL-U.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "unkernel/parsing/text/characters.hpp"

namespace unkernel::parsing {

// Writes the comment `# text =` of a sentence. A single blank replaces the blanks between two tokens.
void write_text_comment(std::string_view text, std::span<const TokenPlace> sentence, std::string& out);

// Writes the line of a token and, for a multiword token, one more line per word. `before` has the blanks
// before the token that belong to no earlier token. Returns the number of the next word.
std::int64_t write_token(std::string_view text, const TokenPlace& token, std::string_view before,
                         std::span<const std::string> words, std::int64_t number, std::string& out);

}  // namespace unkernel::parsing
