// A table that maps words to values, such as clusters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "unkernel/data/text/name_table.hpp"

namespace unkernel::parsing {

struct Lexicon {
  data::NameTable words;               // in lower case and with 0 for digits
  std::vector<std::int32_t> value_of;  // by word
  data::NameTable values;

  // Returns the value of a word; the empty string if the word is not in the lexicon.
  std::string_view value(std::string_view word) const {
    const std::int32_t number = words.find(word);
    return number < 0 ? std::string_view() : values.name(value_of[static_cast<std::size_t>(number)]);
  }
  // Throws std::invalid_argument unless each word has a value, and all words and values are UTF-8 text.
  void check() const;
};

// Throws std::invalid_argument unless all names are UTF-8 text.
void check_utf8(const data::NameTable& names);

}  // namespace unkernel::parsing
