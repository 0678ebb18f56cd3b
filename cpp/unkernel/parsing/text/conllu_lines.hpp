// Writes tokens as lines of CoNLL-U.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "unkernel/parsing/text/characters.hpp"

namespace unkernel::parsing {

// Writes the comment `# text =`: the tokens, separated by single blanks where there are blanks.
void write_text_comment(std::string_view text, std::span<const TokenPlace> sentence, std::string& out);

// Writes the lines of a token: one, or for a multiword token its own line and those of its words. `before`
// are blanks before the token that belong to no other token. Returns the number of the next word.
std::int64_t write_token(std::string_view text, const TokenPlace& token, std::string_view before,
                         std::span<const std::string> words, std::int64_t number, std::string& out);

}  // namespace unkernel::parsing
