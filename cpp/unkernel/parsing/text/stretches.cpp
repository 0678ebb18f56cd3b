#include "unkernel/parsing/text/stretches.hpp"

#include <algorithm>

#include "unkernel/data/text/utf8.hpp"

namespace unkernel::parsing {
namespace {

constexpr std::size_t longest_character = 4;  // bytes

std::size_t begin_of_character(std::string_view text, std::size_t begin, std::size_t at) {
  const std::size_t first = at - std::min(at - begin, longest_character - 1);
  for (std::size_t k = at; k > first; --k) {
    if (!data::continues_character(text[k])) return k;
  }
  return data::continues_character(text[first]) ? at : first;
}

// Returns where to cut a paragraph: after the last blanks that begin before `limit`. Without such blanks,
// cuts at the last character that begins at or before `limit`, after any blanks there. The result is larger
// than `begin`.
std::size_t cut_before(const CharacterKinds& kinds, std::string_view text, std::size_t begin,
                       std::size_t limit) {
  const std::size_t last = begin_of_character(text, begin, limit);
  for (std::size_t at = last; at > begin;) {
    at = begin_of_character(text, begin, at - 1);
    if (kinds.kind(decode(text, at).code) == blank_kind) return skip_blanks(kinds, text, at);
  }
  return skip_blanks(kinds, text, last);
}

}  // namespace

std::size_t skip_blanks(const CharacterKinds& kinds, std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Decoded decoded = decode(text, at);
    if (kinds.kind(decoded.code) != blank_kind) break;
    at += decoded.bytes;
  }
  return at;
}

Stretch stretch_from(const CharacterKinds& kinds, std::string_view text, std::size_t begin) {
  const std::string_view near = text.substr(0, std::min(text.size(), begin + longest_stretch));
  for (std::size_t at = begin; at < near.size();) {
    const std::size_t line_end = near.find('\n', at);
    if (line_end == std::string_view::npos) break;
    // Advances even if line ends are not blanks in the kinds.
    at = skip_blanks(kinds, text, line_end + 1);
    if (std::ranges::count(text.substr(line_end, at - line_end), '\n') > 1) return {at, true};
  }
  if (near.size() == text.size()) return {text.size(), true};
  return {cut_before(kinds, text, begin, near.size()), false};
}

Stretch whole_stretches(const CharacterKinds& kinds, std::string_view text) {
  Stretch result{0, true};
  for (Stretch last{skip_blanks(kinds, text, 0), true}; last.end < text.size();) {
    last = stretch_from(kinds, text, last.end);
    // Unless a whole character follows, the blanks after the stretch may continue in the next block.
    if (last.end + longest_character <= text.size()) result = last;
  }
  return result;
}

}  // namespace unkernel::parsing
