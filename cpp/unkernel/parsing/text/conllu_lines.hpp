// Writes tokens as lines of CoNLL-U.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "unkernel/parsing/text/characters.hpp"

namespace unkernel::parsing {

// The comment `# text =`: the tokens, with one blank where there are some.
void write_text_comment(std::string_view text, std::span<const TokenPlace> sentence, std::string& out);

// The lines of a token: one, or that of a multiword token and those of its words, if there are any. `before`
// are blanks before the token that no other token has. Returns the number of the next word.
std::int64_t write_token(std::string_view text, const TokenPlace& token, std::string_view before,
                         std::span<const std::string> words, std::int64_t number, std::string& out);

}  // namespace unkernel::parsing
