// Tags words: fills several columns of a text one after another, each of them word by word.
//
// The features of a later column use the predicted values of earlier columns, not the values in the text.
// Decisions may be split into parts by the values of the first one or two columns: a part is a classifier
// that chooses among the classes that occurred in training with the same values. Earlier columns predict only
// values that occurred in training, so there is a part for every word. Words that had a single class in
// training are looked up instead of scored; each thread caches their classes.
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

// Words whose class in a part is certain in any context.
struct CertainClasses {
  data::NameTable words;
  FlatMap<std::uint64_t, std::int32_t> classes;  // word_in_part(word, part) -> class + 1
};

inline std::uint64_t word_in_part(std::int32_t word, std::size_t part) {
  return static_cast<std::uint64_t>(word) << 32 | part;
}

// A column to predict, without the engines that score its classes.
struct TagColumn {
  const SequenceFeatures& features;
  int text_column;        // the text column that the predictions replace for later columns
  data::NameTable names;  // of its classes
  std::vector<std::vector<std::int32_t>> classes;  // by part
  std::size_t split;                               // how many first columns split the decisions
  FlatMap<std::uint64_t, std::int32_t> part_of;    // case -> part + 1; other cases have part 0
  CertainClasses certain;
};

// Throws std::invalid_argument if a column is inconsistent.
void check(const TagColumn& column);

// A checked column, and the engines of its parts. A part with a single class has a null engine.
struct ScoredColumn {
  const TagColumn& column;
  std::vector<const engines::Engine*> engines;
};

// Returns the case of a word, given its classes in the columns that split decisions.
std::uint64_t case_of(std::span<const std::int32_t> classes);

// Returns the classes of all words, column by column. The number of threads does not change the result.
// Throws std::invalid_argument if engines do not fit their columns.
std::vector<std::vector<std::int32_t>> tag_text(const data::ColumnText& text,
                                                std::span<const ScoredColumn> columns, Threads threads);

}  // namespace unkernel::parsing
