// A chunker from a damaged or hostile file: the input changes a chunker that has learnt from a small text.
// The chunker is refused, or gives valid tags for any text, its decisions have valid rows, and it is the same
// after being stored and loaded.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
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
#include "unkernel/parsing/chunks/decoder.hpp"

namespace {

using namespace unkernel::parsing;
using unkernel::FormatError;
using unkernel::Monitor;
using unkernel::data::ColumnText;
using unkernel::data::NameTable;

constexpr std::string_view training =
    "He PRP B-NP\nsaw VBD B-VP\nthe DT B-NP\ndog NN I-NP\n\nNow RB O\nit PRP B-NP\nsaw VBD B-VP\nBob NN "
    "B-NP\n\n";
constexpr std::string_view unseen_text = "Bob NN\nsaw NN\nunheard X\n. .\n\nit PRP\n\n";
constexpr std::array<std::string_view, 3> template_texts = {
    "word[0]\npos[-1]+tag[-1]\ntag[-1]\n",
    "suffix2[0]\nshape[1]\nword[-1]+word[0]+pos[1]\ntag[-2]+tag[-1]+pos[0]\n",
    "pos[0]\nlower[0]+lower[1]+lower[2]+lower[3]+lower[-1]+lower[-2]+tag[-1]+tag[-2]\n"};

ColumnText read(std::string_view text) {
  return {std::string(text),
          "fuzz",
          {unkernel::data::ColumnFormat::chunks, 0, unkernel::data::TreeCheck::none, false, 1}};
}

struct OwnedNames {
  std::string bytes;
  std::vector<std::int64_t> ends;
};

// The content of a file in vectors that can be damaged.
struct OwnedChunker {
  std::string templates;
  std::vector<OwnedNames> values;
  std::vector<SequenceTableArrays> tables;
  std::int32_t features;
  std::vector<ChunkTag> classes;
  std::size_t types;
  std::size_t scores;
  ChunkScheme scheme;
  bool backward;
  std::size_t beam = 2;

  OwnedChunker(std::string_view text, ChunkScheme chunk_scheme, bool is_backward)
      : templates(text), scheme(chunk_scheme), backward(is_backward) {
    const ColumnText words = read(training);
    NameTable names;
    std::vector<ChunkTag> tags = read_chunk_tags(words, 2, names);
    std::vector<Chunk> buffer;
    for (std::int64_t s = 0; s < words.sentences(); ++s) {
      const auto first = static_cast<std::size_t>(words.first_token(s));
      const auto end = static_cast<std::size_t>(words.first_token(s + 1));
      recode(std::span(tags).subspan(first, end - first), scheme, buffer);
    }
    types = names.size();
    classes = tags;
    std::ranges::sort(classes);
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    scores = classes.size();
    learn(words, tags);
  }

  void learn(const ColumnText& words, std::span<const ChunkTag> tags) {
    std::vector<std::int32_t> answers;
    for (const ChunkTag tag : tags)
      answers.push_back(static_cast<std::int32_t>(std::ranges::lower_bound(classes, tag) - classes.begin()));
    SequenceFeatures learned(read_sequence_templates(templates, "templates", chunk_names()), chunk_sources());
    (void)learned.learn({.text = words, .backward = backward}, answers, 1, Monitor());
    for (const NameTable& table : learned.values()) values.push_back({table.bytes(), table.ends()});
    tables = learned.tables();
    features = learned.features();
  }

  void damage(FuzzBytes& bytes) {
    switch (bytes.below(6)) {
      case 0: return bytes.damage_one(features, classes);
      case 1: return values.empty() ? void() : damage_names(bytes, values[bytes.below(values.size())]);
      case 2: return tables.empty() ? void() : damage_table(bytes, tables[bytes.below(tables.size())]);
      case 3: return damage_tables(bytes);
      case 4:
        templates = bytes.flag() ? std::string(template_texts[bytes.below(3)]) : templates + bytes.text(12);
        return;
      default:
        scores = bytes.below(8);
        scheme = static_cast<ChunkScheme>(bytes.below(5));
        backward = bytes.flag();
        beam = bytes.below(widest_beam + 2);
    }
  }

 private:
  static void damage_names(FuzzBytes& bytes, OwnedNames& names) {
    if (bytes.flag()) return bytes.damage_one(names.ends, names.bytes);
    names.bytes += bytes.text(4);
    names.ends.push_back(static_cast<std::int64_t>(names.bytes.size()));
  }
  static void damage_table(FuzzBytes& bytes, SequenceTableArrays& table) {
    if (table.joins.empty() || bytes.flag()) return bytes.damage(table.ids);
    bytes.damage(table.joins[bytes.below(table.joins.size())]);
  }
  void damage_tables(FuzzBytes& bytes) {
    const std::size_t first = bytes.below(tables.size()), second = bytes.below(tables.size());
    if (tables.empty() || bytes.flag()) return tables.push_back({});
    if (bytes.flag()) return tables.pop_back();
    std::swap(tables[first], tables[second]);
  }
};

const std::array<OwnedChunker, 3>& valid_chunkers() {
  static const std::array<OwnedChunker, 3> all = {OwnedChunker(template_texts[0], ChunkScheme::iob2, false),
                                                  OwnedChunker(template_texts[1], ChunkScheme::iobes, true),
                                                  OwnedChunker(template_texts[2], ChunkScheme::ioe1, false)};
  return all;
}

// Restores the features like the reader of files.
SequenceFeatures restore_features(const OwnedChunker& stored) {
  SequenceTemplates templates = read_sequence_templates(stored.templates, "templates", chunk_names());
  std::vector<NameTable> values;
  for (const OwnedNames& names : stored.values) values.push_back(NameTable::of(names.bytes, names.ends));
  return SequenceFeatures(std::move(templates), chunk_sources(), std::move(values), stored.tables,
                          stored.features);
}

const ColumnText& texts() {
  static const ColumnText text = [] {
    std::string all;
    const ColumnText words = read(training);
    for (std::int64_t token = 0; token < words.tokens(); ++token)
      all.append(words.field(token, 0)).append(" ").append(words.field(token, 1)).append("\n");
    return read(all.append("\n").append(unseen_text));
  }();
  return text;
}

void check_rows(const FeatureRows& rows, std::int32_t features) {
  CHECK(rows.offsets.size() == static_cast<std::size_t>(texts().tokens()) + 1);
  for (std::size_t row = 0; row + 1 < rows.offsets.size(); ++row) {
    for (auto k = static_cast<std::size_t>(rows.offsets[row]);
         k < static_cast<std::size_t>(rows.offsets[row + 1]); ++k) {
      CHECK(rows.columns[k] >= 0 && rows.columns[k] < features);
      CHECK(k == static_cast<std::size_t>(rows.offsets[row]) || rows.columns[k - 1] < rows.columns[k]);
    }
  }
}

// Checks the rows of decisions, from which explanations are made, also after storing and loading the
// features.
void check_explained(const OwnedChunker& stored, const SequenceFeatures& features,
                     std::span<const ChunkTag> predicted, bool store_again) {
  std::vector<std::int32_t> answers;
  for (const ChunkTag tag : predicted) {
    const auto match = std::ranges::find(stored.classes, tag);
    answers.push_back(
        match == stored.classes.end() ? -1 : static_cast<std::int32_t>(match - stored.classes.begin()));
  }
  const FeatureRows rows = features.rows({.text = texts(), .backward = stored.backward}, answers, Monitor());
  check_rows(rows, features.features());
  if (!store_again) return;
  const SequenceFeatures reloaded(read_sequence_templates(stored.templates, "templates", chunk_names()),
                                  chunk_sources(), features.values(), features.tables(), features.features());
  const FeatureRows reloaded_rows =
      reloaded.rows({.text = texts(), .backward = stored.backward}, answers, Monitor());
  CHECK(reloaded_rows.offsets == rows.offsets && reloaded_rows.columns == rows.columns);
}

void check_tags(std::vector<ChunkTag> predicted, std::size_t types) {
  CHECK(predicted.size() == static_cast<std::size_t>(texts().tokens()));
  for (std::int64_t s = 0; s < texts().sentences(); ++s) {
    ChunkTag before = outside;
    for (std::int64_t token = texts().first_token(s); token < texts().first_token(s + 1); ++token) {
      const ChunkTag tag = predicted[static_cast<std::size_t>(token)];
      CHECK(tag >= 0 && tag <= static_cast<ChunkTag>(marks * types));
      CHECK(may_follow(ChunkScheme::iob2, before, tag));
      before = tag;
    }
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() { return seeds_of_damage(3, 6, 4); }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  OwnedChunker stored = valid_chunkers()[bytes.below(3)];
  for (std::size_t remaining = bytes.below(4); remaining > 0; --remaining) stored.damage(bytes);
  const auto inside = [&](ChunkTag tag) {
    return tag >= 0 && tag <= static_cast<ChunkTag>(marks * stored.types);
  };
  if (!std::ranges::all_of(stored.classes, inside)) return 0;  // the file's reader checks these
  try {
    const SequenceFeatures features = restore_features(stored);
    const HashEngine engine(stored.scores, features.features());
    const Monitor monitor;
    const std::vector<ChunkTag> predicted =
        chunk_text(texts(), {features, engine, stored.classes, stored.scheme, stored.backward, stored.beam},
                   {1, &monitor});
    check_tags(predicted, stored.types);
    check_explained(stored, features, predicted, fuzz_also(FuzzInput(data, size).hash(), 8));
  } catch (const std::invalid_argument&) {
  } catch (const FormatError&) {}
  return 0;
}
