// Tags words: fills several columns of a text in turn, each word by word.
//
// A later column sees the earlier ones, of all words, in the place of what the text has there. Its decisions
// may be split by the first one or two columns: a part chooses among the classes that occurred in training
// with the same classes of those. As an earlier column only gives what occurred, too, there is a part for
// every word. Words that training leaves no doubt about are looked up, not scored; each thread remembers
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/name_table.hpp"
#include "unkernel/engines/engine.hpp"
#include "unkernel/parsing/sequences/features.hpp"

namespace unkernel::parsing {

constexpr std::size_t most_split_columns = 2;

// Words with a certain class in a part, whatever is around them.
struct CertainClasses {
  data::NameTable words;
  FlatMap<std::uint64_t, std::int32_t> classes;  // word_in_part(word, part) -> class + 1
};

inline std::uint64_t word_in_part(std::int32_t word, std::size_t part) {
  return static_cast<std::uint64_t>(word) << 32 | part;
}

// What is known of a column before engines score; the same for all texts.
struct TagColumn {
  const SequenceFeatures& features;
  int text_column;                                 // which column of the text later ones see it as
  data::NameTable names;                           // of its classes
  std::vector<std::vector<std::int32_t>> classes;  // of each part
  std::size_t split;                               // by how many of the first columns
  FlatMap<std::uint64_t, std::int32_t> part_of;    // case -> part + 1; words of other cases have part 0
  CertainClasses certain;
};

// Throws std::invalid_argument if a column is inconsistent.
void check(const TagColumn& column);

// A column that was checked, and the engines of its parts; null for one with a single class.
struct ScoredColumn {
  const TagColumn& column;
  std::vector<const engines::Engine*> engines;
};

// The case of a word with these classes in the columns that decisions are split by.
std::uint64_t case_of(std::span<const std::int32_t> classes);

// The classes of all words, column by column. They do not depend on the number of threads. Throws
// std::invalid_argument if engines do not fit their columns.
std::vector<std::vector<std::int32_t>> tag_text(const data::ColumnText& text,
                                                std::span<const ScoredColumn> columns, Threads threads);

}  // namespace unkernel::parsing
