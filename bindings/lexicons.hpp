// Makes tables of names, and lexicons, from lists.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "unkernel/data/text/name_table.hpp"
#include "unkernel/parsing/features/lexicon.hpp"

namespace unkernel::bindings {

// Throws std::invalid_argument with this message if a name occurs twice.
inline data::NameTable make_name_table(const std::vector<std::string>& names, const char* message) {
  data::NameTable table;
  for (const std::string& name : names) table.add(name);
  if (table.size() != names.size()) throw std::invalid_argument(message);
  return table;
}

// A lexicon as a list of words and a list of the words' values.
using LexiconLists = std::pair<std::vector<std::string>, std::vector<std::string>>;

inline parsing::Lexicon make_lexicon(const LexiconLists& lists) {
  parsing::Lexicon lexicon;
  lexicon.words = make_name_table(lists.first, "a word is in a lexicon twice");
  for (const std::string& value : lists.second) lexicon.value_of.push_back(lexicon.values.add(value));
  return lexicon;
}

}  // namespace unkernel::bindings
