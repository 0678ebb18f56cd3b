// Features of a chunker's decisions, and their numbers.
//
// A word's values are looked up once: each attribute has a table of the values that were seen in training,
// and a value's code is its number there. A template of one value finds its feature at that code in an array;
// one that joins several goes through a hash table for each further value, (what was found so far, code) ->
// number. No two features share a number, and what was not seen in training has none. A feature costs 4
// bytes, a joined one 16 to 32 more for each join; finding one costs a load, or a probe for each join.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unkernel/base/flat_map.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/name_table.hpp"
#include "unkernel/parsing/chunks/templates.hpp"

namespace unkernel::parsing {

// Codes that stand for no value: of words before the first and behind the last, and of values not seen in
// training.
constexpr std::int32_t before_first = 0;
constexpr std::int32_t behind_last = 1;
constexpr std::int32_t first_code = 2;
constexpr std::int32_t unknown = -1;

// A sentence in the direction of reading: the codes of all attributes of its words, and of tags as far as
// they are known.
class ChunkSentence {
 public:
  void reset(std::size_t attributes, std::size_t words);
  std::size_t words() const { return words_; }
  void set(std::size_t attribute, std::size_t word, std::int32_t code) {
    codes_[attribute * stride_ + margin + word] = code;
  }
  // Tags are the last attribute.
  void set_tag(std::size_t word, std::int32_t code) { set(attributes_, word, code); }
  const std::int32_t* at(std::size_t attribute, std::size_t word) const {
    return codes_.data() + attribute * stride_ + margin + word;
  }

 private:
  static constexpr std::size_t margin = farthest_offset;

  std::vector<std::int32_t> codes_;
  std::size_t attributes_ = 0;
  std::size_t words_ = 0;
  std::size_t stride_ = 0;
};

// The examples of a training text: rows of ascending features, all of value 1.
struct ChunkRows {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
};

// One template's part of ChunkFeatures, as plain arrays.
struct ChunkTableArrays {
  std::vector<std::vector<std::uint64_t>> joins;  // for each further value: keys, by number
  std::vector<std::int32_t> ids;                  // of codes, or of the last join's numbers; -1: no feature
};

class ChunkTable {
 public:
  explicit ChunkTable(std::size_t values) : joins_(values - 1) {}
  // Throws std::invalid_argument where they are not sound.
  ChunkTable(std::size_t values, const ChunkTableArrays& arrays, std::int32_t features);

  // The number of the feature, or -1. `code(k)` is the code of the k-th value.
  template <class Code>
  std::int32_t find(const Code& code) const;
  // The same, where new ones get the number `next`.
  template <class Code>
  std::int32_t add(const Code& code, std::int32_t next);

  // Gives each feature the number that `renumbered` has for it.
  void renumber(std::span<const std::int32_t> renumbered);
  ChunkTableArrays arrays() const;

 private:
  using Join = FlatMap<std::uint64_t, std::int32_t>;  // values are numbers plus 1

  static std::uint64_t key(std::int32_t left, std::int32_t code) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(code);
  }

  std::vector<Join> joins_;
  std::vector<std::int32_t> ids_;
};

class ChunkFeatures {
 public:
  explicit ChunkFeatures(ChunkTemplates templates);
  // As it was stored. Throws std::invalid_argument where the parts do not fit each other.
  ChunkFeatures(ChunkTemplates templates, std::vector<data::NameTable> values,
                std::span<const ChunkTableArrays> tables, std::int32_t features);

  // Numbers the features of a text, in the order of first sight, and drops those that occur fewer than
  // `minimum` times. `answers` are the classes of all words, the words' tags while they are read.
  ChunkRows learn(const data::ColumnText& text, std::span<const std::int32_t> answers, bool backward,
                  std::int64_t minimum);

  // A sentence of a text, without tags.
  void read(const data::ColumnText& text, std::int64_t sentence, bool backward, ChunkSentence& to,
            std::string& room) const;
  // The features of a word, ascending; all words before it must have tags.
  void row(const ChunkSentence& sentence, std::size_t word, std::vector<std::int32_t>& ids) const;
  // The rows of all words of a text, in its order, as they are met while these answers are given; -1 is no
  // class.
  ChunkRows rows(const data::ColumnText& text, std::span<const std::int32_t> answers, bool backward) const;

  std::int32_t features() const { return features_; }
  const std::vector<data::NameTable>& values() const { return values_; }
  std::vector<ChunkTableArrays> tables() const;
  bool needs_pos() const;

 private:
  template <class Number>
  void read_with(const data::ColumnText& text, std::int64_t sentence, bool backward, ChunkSentence& to,
                 std::string& room, const Number& number) const;
  void learn_sentence(const ChunkSentence& sentence, ChunkRows& rows);
  void drop_rare(std::int64_t minimum, ChunkRows& rows);

  ChunkTemplates templates_;
  std::vector<ChunkTemplate> all_;  // fixed ones, then dynamic ones; tags are the last attribute
  std::vector<data::NameTable> values_;
  std::vector<ChunkTable> tables_;
  std::int32_t features_ = 0;
};

template <class Code>
std::int32_t ChunkTable::find(const Code& code) const {
  std::int32_t number = code(0);
  for (std::size_t k = 0; k < joins_.size() && number >= 0; ++k) {
    const std::int32_t next = code(k + 1);
    if (next < 0) return -1;
    const std::int32_t* found = joins_[k].find(key(number, next));
    number = found == nullptr ? -1 : *found - 1;
  }
  return static_cast<std::uint32_t>(number) < ids_.size() ? ids_[static_cast<std::size_t>(number)] : -1;
}

template <class Code>
std::int32_t ChunkTable::add(const Code& code, std::int32_t next) {
  std::int32_t number = code(0);
  for (std::size_t k = 0; k < joins_.size(); ++k) {
    std::int32_t& found = joins_[k][key(number, code(k + 1))];
    if (found == 0) found = static_cast<std::int32_t>(joins_[k].size());
    number = found - 1;
  }
  const auto place = static_cast<std::size_t>(number);
  if (place >= ids_.size()) ids_.resize(place + 1, -1);
  if (ids_[place] < 0) ids_[place] = next;
  return ids_[place];
}

}  // namespace unkernel::parsing
