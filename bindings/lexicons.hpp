// Lexicons, from lists.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "unkernel/parsing/features/lexicon.hpp"

namespace unkernel::bindings {

// Words of a lexicon, and the value of each.
using LexiconLists = std::pair<std::vector<std::string>, std::vector<std::string>>;

inline parsing::Lexicon lexicon_of(const LexiconLists& lists) {
  parsing::Lexicon lexicon;
  for (const std::string& word : lists.first) lexicon.words.add(word);
  for (const std::string& value : lists.second) lexicon.value_of.push_back(lexicon.values.add(value));
  if (lexicon.words.size() != lists.first.size()) throw std::invalid_argument("a word is in a lexicon twice");
  return lexicon;
}

}  // namespace unkernel::bindings
