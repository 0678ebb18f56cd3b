// Restores the original text from the tokens and blanks of a tokenizer's result.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "check.hpp"

inline std::string unescape(std::string_view blanks) {
  std::string text;
  for (std::size_t k = 0; k < blanks.size(); ++k) {
    if (blanks[k] != '\\') {
      text += blanks[k];
      continue;
    }
    constexpr std::string_view letters = "stnr0", characters("\x20\t\n\r\0", 5);
    const std::size_t letter = letters.find(blanks[++k]);
    CHECK(letter != std::string_view::npos);
    text += characters[letter];
  }
  return text;
}

// Returns the value of a key in the column MISC; `missing` if there is none.
inline std::string value_of(std::string_view misc, std::string_view key, std::string missing) {
  const std::size_t begin = misc.find(key);
  if (begin == std::string_view::npos) return missing;
  const std::string_view value = misc.substr(begin + key.size());
  return unescape(value.substr(0, value.find('|')));
}

// Returns the text from which the tokenizer made these lines.
inline std::string original_text(std::string_view answer) {
  std::string text;
  int words = 0;  // remaining lines of a multiword token
  while (!answer.empty()) {
    const std::size_t end = answer.find('\n');
    const std::string_view line = answer.substr(0, end);
    answer.remove_prefix(end + 1);
    if (line.empty() || line[0] == '#') continue;
    if (words > 0) {
      --words;
      continue;
    }
    const std::size_t tab = line.find('\t');
    const std::size_t columns = line.find("\t_\t_\t_\t_\t_\t_\t_\t", tab + 1);
    CHECK(columns != std::string_view::npos);
    words = line.substr(0, tab).find('-') == std::string_view::npos ? 0 : 2;  // all rules make two words
    const std::string_view misc = line.substr(line.rfind('\t') + 1);
    const bool no_space = misc.starts_with("SpaceAfter=No");
    text += value_of(misc, "SpacesBefore=", "");
    text += line.substr(tab + 1, columns - tab - 1);
    text += value_of(misc, "SpacesAfter=", no_space ? "" : " ");
  }
  return text;
}
