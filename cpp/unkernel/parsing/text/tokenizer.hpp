// Splits plain text into sentences, tokens and words, and writes them as CoNLL-U.
//
// One pass over the characters makes one decision each: the character is inside a token, or the token ends,
// or token and sentence end (tokenizer_spec.hpp). Blank lines always end a sentence. A text of more than a
// megabyte without blank lines is cut, too (stretches.hpp). Time is linear in the text. Besides the result,
// only a window of the text and one sentence are in memory.
//
// The result preserves every byte. Tokens are spans of the text. Blanks other than a single one are in the
// column MISC, as UDPipe writes them: SpacesAfter=, and SpacesBefore= at the first token, with \s \t \n \r
// for blanks, tabs and line ends, and \0 for NUL.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/base/monitor.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/parsing/text/multiwords.hpp"
#include "unkernel/parsing/text/tokenizer_spec.hpp"

namespace unkernel::parsing {

struct TokenizerParts {
  const TokenizerSpec& spec;
  const engines::Engine& boundaries;  // one score per Boundary
  const Multiwords& multiwords;
  const engines::Engine* splits;  // one score, positive for a split; null if nothing is split
};

// Throws std::invalid_argument if an engine has a wrong number of scores.
void check(const TokenizerParts& parts);

// Returns CoNLL-U with the columns ID, FORM and MISC; the empty string for a text of blanks. If
// `begins_paragraph` is false, the text continues a paragraph. The number of threads does not change the
// result.
std::string tokenize(const TokenizerParts& parts, std::string_view text, bool begins_paragraph, int threads,
                     const Monitor& monitor);

// Features of those tokens of a gold text for which the context decides whether to split them.
struct SplitRows {
  std::vector<std::uint64_t> features;  // equally many per choice
  std::vector<std::int64_t> tokens;     // their numbers in the text
};
SplitRows split_rows(const TokenizerSpec& spec, const Multiwords& multiwords, const SplitText& given,
                     const Monitor& monitor);

}  // namespace unkernel::parsing
