// A tagger of two columns from a damaged or hostile file: the input changes a tagger that has learnt from a
// small text. The tagger is refused, or gives every word a class of each column, and the same classes on one
// thread and on three.
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "fuzz_input.hpp"
#include "parsing/hash_engine.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/parsing/tagging/tagger.hpp"

namespace {

using namespace unkernel::parsing;
using unkernel::FormatError;
using unkernel::Monitor;
using unkernel::data::ColumnText;
using unkernel::data::NameTable;

constexpr std::string_view training = "He P\nsaw V\nthe D\ndog N\n\nNow R\nit P\nsaw V\nBob N\n\n";
constexpr std::string_view unseen_text = "Bob N\nsaw X\nunheard _\n. .\n\nit P\n\n";
constexpr std::string_view first_templates = "word[0]\nsuffix2[0]+tag[-1]\ncluster[0]+word[1]\n";
constexpr std::string_view second_templates = "word[0]+pos[0]\npos[1]+pos[-1]\ntag[-1]\nshape[0]\n";
constexpr std::int32_t part_count = 3;

ColumnText read(std::string_view text) {
  return {std::string(text),
          "fuzz",
          {unkernel::data::ColumnFormat::chunks, 0, unkernel::data::TreeCheck::none, false, 1}};
}

// A word whose class in a part is certain.
struct Entry {
  std::string word;
  std::int32_t part, number;
};

// The content of a file for one column, in vectors that can be damaged.
struct OwnedColumn {
  std::string templates;
  std::vector<NameTable> values;
  std::vector<SequenceTableArrays> tables;
  std::int32_t features = 0;
  std::vector<std::string> names{"P", "V", "D", "N", "R"};
  std::vector<std::vector<std::int32_t>> classes;
  std::vector<std::vector<std::int32_t>> cases;  // case k belongs to part k modulo the number of parts
  std::size_t split;
  std::vector<std::string> clusters{"one", "two"};
  std::vector<std::int32_t> cluster_of{0, 1, 1};
  std::vector<Entry> certain{{"the", 0, 2}, {"He", 0, 0}};

  OwnedColumn(std::string_view text, std::size_t split_columns) : templates(text), split(split_columns) {
    if (split == 0) {
      classes = {{0, 1, 2, 3, 4}};
    } else {
      classes = {{0, 1}, {2}, {1, 3, 4}};
      for (std::int32_t first = 0; first < 5; ++first) cases.push_back({first});
    }
    const ColumnText words = read(training);
    const std::vector<std::int32_t> answers{0, 1, 2, 3, 4, 0, 1, 3};
    SequenceFeatures learned(read_sequence_templates(templates, "templates", sequence_names()), sources());
    (void)learned.learn({.text = words}, answers, 1, Monitor());
    values = learned.values();
    tables = learned.tables();
    features = learned.features();
  }

  static SequenceNames sequence_names() { return {.columns = {"pos"}, .lexicons = {"cluster"}}; }

  SequenceSources sources() const {
    Lexicon lexicon;
    for (const char* word : {"he", "saw", "dog"}) (void)lexicon.words.add(word);
    lexicon.value_of = cluster_of;
    for (const std::string& name : clusters) (void)lexicon.values.add(name);
    lexicon.check();
    SequenceSources scored_column{.word_column = 0, .columns = {1}, .lexicons = {}};
    scored_column.lexicons.push_back(std::move(lexicon));
    return scored_column;
  }

  void damage(FuzzBytes& bytes) {
    switch (bytes.below(6)) {
      case 0: return bytes.damage_one(features, cluster_of);
      case 1: return damage_table(bytes);
      case 2: return classes.empty() ? void() : bytes.damage(classes[bytes.below(classes.size())]);
      case 3: return cases.empty() ? cases.push_back({}) : bytes.damage(cases[bytes.below(cases.size())]);
      case 4: return damage_certain(bytes);
      default: return damage_names(bytes);
    }
  }

 private:
  void damage_table(FuzzBytes& bytes) {
    if (tables.empty()) return;
    SequenceTableArrays& table = tables[bytes.below(tables.size())];
    if (table.joins.empty() || bytes.flag()) return bytes.damage(table.ids);
    bytes.damage(table.joins[bytes.below(table.joins.size())]);
  }
  void damage_certain(FuzzBytes& bytes) {
    if (certain.empty() || bytes.byte() % 4 == 0) return certain.push_back({bytes.text(3), 0, 0});
    Entry& entry = certain[bytes.below(certain.size())];
    bytes.damage_one(entry.part, entry.number);
  }
  void damage_names(FuzzBytes& bytes) {
    switch (bytes.below(5)) {
      case 0: return names.push_back(bytes.text(3));
      case 1: return names.empty() ? void() : names.pop_back();
      case 2: return clusters.push_back(bytes.text(3));
      case 3: split = bytes.below(4); return;
      default: classes.push_back({0, static_cast<std::int32_t>(bytes.below(8))});
    }
  }
};

// Makes a table like the reader of files.
NameTable names_table(const std::vector<std::string>& names) {
  NameTable table;
  for (const std::string& name : names) (void)table.add(name);
  if (table.size() != names.size()) throw std::invalid_argument("a class is given twice");
  return table;
}

CertainClasses certain_classes(const std::vector<Entry>& entries) {
  CertainClasses certain;
  for (const auto& [word, part, number] : entries) {
    if (part < 0 || number < 0 || number >= most_sequence_classes)
      throw std::invalid_argument("a certain class is out of range");
    certain.classes[word_in_part(certain.words.add(word), static_cast<std::size_t>(part))] = number + 1;
  }
  return certain;
}

class RestoredColumn {
 public:
  RestoredColumn(const OwnedColumn& stored, int text_column)
      : features_(read_sequence_templates(stored.templates, "templates", OwnedColumn::sequence_names()),
                  stored.sources(), stored.values, stored.tables, stored.features),
        column_{features_,    text_column,      names_table(stored.names),      stored.classes,
                stored.split, parts_of(stored), certain_classes(stored.certain)} {
    check(column_);
    for (const auto& part : stored.classes) {
      const std::size_t scores = part.size() == 2 ? 1 : part.size();
      engines_.push_back(part.size() == 1 ? nullptr
                                          : std::make_unique<HashEngine>(scores, features_.features()));
    }
  }
  ScoredColumn scored() const {
    ScoredColumn scored_column{column_, {}};
    for (const auto& engine : engines_) scored_column.engines.push_back(engine.get());
    return scored_column;
  }

 private:
  static unkernel::FlatMap<std::uint64_t, std::int32_t> parts_of(const OwnedColumn& stored) {
    unkernel::FlatMap<std::uint64_t, std::int32_t> parts;
    for (std::size_t k = 0; k < stored.cases.size(); ++k) {
      if (stored.cases[k].size() != stored.split) throw std::invalid_argument("a case of other columns");
      parts[case_of(stored.cases[k])] = static_cast<std::int32_t>(k) % part_count + 1;
    }
    return parts;
  }

  SequenceFeatures features_;
  TagColumn column_;
  std::vector<std::unique_ptr<HashEngine>> engines_;
};

void check_tags(const std::vector<ScoredColumn>& columns, const ColumnText& text, bool threads) {
  const Monitor monitor;
  const auto predicted = tag_text(text, columns, {1, &monitor});
  if (threads) CHECK(predicted == tag_text(text, columns, {3, &monitor}));
  CHECK(predicted.size() == columns.size());
  for (std::size_t k = 0; k < predicted.size(); ++k) {
    CHECK(predicted[k].size() == static_cast<std::size_t>(text.tokens()));
    for (const std::int32_t first_stored : predicted[k])
      CHECK(first_stored >= 0 && static_cast<std::size_t>(first_stored) < columns[k].column.names.size());
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() { return seeds_of_damage(2, 6, 4); }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const OwnedColumn first(first_templates, 0), second(second_templates, 1);
  static const ColumnText text = read(std::string(training).append(unseen_text));
  FuzzBytes bytes(data, size);
  OwnedColumn first_stored = first, second_stored = second;
  const std::size_t damages = bytes.below(4);
  for (std::size_t k = 0; k < damages; ++k) (bytes.flag() ? first_stored : second_stored).damage(bytes);
  try {
    const RestoredColumn pos(first_stored, 1), lemma(second_stored, 2);
    check_tags({pos.scored(), lemma.scored()}, text, fuzz_also(FuzzInput(data, size).hash(), 64));
  } catch (const std::invalid_argument&) { CHECK(damages > 0); } catch (const FormatError&) {
    CHECK(damages > 0);
  }
  return 0;
}
