#include "unkernel/parsing/features/lexicon.hpp"

#include <algorithm>
#include <stdexcept>

#include "unkernel/data/text/utf8.hpp"

namespace unkernel::parsing {

void check_utf8(const data::NameTable& names) {
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string_view name = names.name(static_cast<std::int32_t>(k));
    if (data::first_bad_byte(name) != name.size())
      throw std::invalid_argument("a word, or the value of a word, is not UTF-8 text");
  }
}

void Lexicon::check() const {
  check_utf8(words);
  check_utf8(values);
  const auto known = static_cast<std::int32_t>(values.size());
  if (value_of.size() != words.size() ||
      std::ranges::any_of(value_of, [&](std::int32_t value) { return value < 0 || value >= known; }))
    throw std::invalid_argument("a lexicon must have one value per word");
}

}  // namespace unkernel::parsing
