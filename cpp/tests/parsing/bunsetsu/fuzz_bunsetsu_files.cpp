// A bunsetsu parser from a damaged or hostile file: the input changes a parser that has learnt from a few
// sentences. The parser is refused, or parses any sentence into a tree, and the rows of its decisions have
// features with names.
#include <cstddef>
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
#include "parsing/hash_engine.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/parsing/bunsetsu/parser.hpp"

namespace {

using namespace unkernel::parsing;
using unkernel::Monitor;
using unkernel::data::BadSentence;
using unkernel::data::BunsetsuText;
using unkernel::data::NameTable;
using unkernel::data::no_head;

constexpr std::string_view training =
    "* 0 2D\n彼 かれ 彼 名詞 普通名詞 * *\nは は は 助詞 副助詞 * *\n、 、 、 特殊 読点 * *\n"
    "* 1 2D\n「 「 「 特殊 括弧始 * *\n本 ほん 本 名詞 普通名詞 * *\nを を を 助詞 格助詞 * *\n"
    "* 2 -1D\n読む よむ 読む 動詞 * マ行 基本形\n」 」 」 特殊 括弧終 * *\n。 。 。 特殊 句点 * *\nEOS\n"
    "* 0 1D\n本 ほん 本 名詞 普通名詞 * *\nが が が 助詞 格助詞 * *\n* 1 -1D\nある ある ある 動詞 * ラ行 "
    "基本形\nEOS\n";
constexpr std::string_view unseen_text =
    "* 0 1D\n新 しん 新 未知 * * *\n* 1 2D\n本 ほん 本 名詞 普通名詞 * *\nは は は 助詞 副助詞 * *\n* 2 "
    "-1D\n。 。 。 特殊 句点 * "
    "*\nEOS\n* 0 -1D\nある ある ある 動詞 * ラ行 基本形\nEOS\nEOS\n";
const std::vector<std::vector<std::string>>& template_lists() {
  static const std::vector<std::vector<std::string>> all = {
      {"modifier.content.surface", "modifier.function.pos", "candidate.content.surface", "between.distance"},
      {"before.last.surface", "modifier.particles", "modifier.punctuation", "candidate.brackets",
       "candidate.beginning", "after.first.subpos", "after.end", "between.particles", "between.brackets",
       "same.modifier.after"},
      {"between.particles"}};
  return all;
}

BunsetsuText read(std::string_view text) { return {std::string(text), "fuzz", 1, BadSentence::fail}; }

// The content of a file in vectors that can be damaged.
struct OwnedParser {
  std::vector<std::string> templates;
  std::string names;
  std::vector<std::int64_t> name_ends;
  std::vector<std::int32_t> begins, values;

  explicit OwnedParser(const std::vector<std::string>& template_names) : templates(template_names) {
    const BunsetsuText text = read(training);
    const BunsetsuFeatures learned =
        bunsetsu_training(text, text.heads(), read_bunsetsu_templates(templates), 1, Monitor()).features;
    names = learned.symbols().bytes();
    name_ends = learned.symbols().ends();
    begins.assign(learned.begins().begin(), learned.begins().end());
    values.assign(learned.values().begin(), learned.values().end());
  }

  void damage(FuzzBytes& bytes) {
    switch (bytes.below(4)) {
      case 0: return bytes.damage_one(names, name_ends);
      case 1: return bytes.damage_one(begins, values);
      case 2: return damage_templates(bytes);
      default:
        names += bytes.text(4);
        name_ends.push_back(static_cast<std::int64_t>(names.size()));
        if (!bytes.flag()) return;
        values.push_back(static_cast<std::int32_t>(bytes.below(name_ends.size())));
        if (!begins.empty()) begins.back() = static_cast<std::int32_t>(values.size());
    }
  }

 private:
  void damage_templates(FuzzBytes& bytes) {
    const auto& other = template_lists()[bytes.below(template_lists().size())];
    if (templates.empty() || bytes.flag()) return templates.push_back(other[bytes.below(other.size())]);
    std::string& changed = templates[bytes.below(templates.size())];
    if (bytes.flag()) return std::swap(changed, templates.back());
    if (bytes.flag()) return templates.pop_back();
    changed = bytes.flag() ? other[bytes.below(other.size())] : bytes.text(12);
  }
};

const std::vector<OwnedParser>& valid_parsers() {
  static const std::vector<OwnedParser> all(template_lists().begin(), template_lists().end());
  return all;
}

const BunsetsuText& texts() {
  static const BunsetsuText text = read(std::string(training) + std::string(unseen_text));
  return text;
}

void check_trees(std::span<const std::int32_t> heads) {
  CHECK(heads.size() == texts().bunsetsu());
  for (std::size_t s = 0; s < texts().sentences(); ++s) {
    const std::size_t first = texts().first_bunsetsu(s), end = texts().first_bunsetsu(s + 1);
    for (std::size_t b = first; b < end; ++b) {
      const std::int32_t head = heads[b];
      if (b + 1 == end) {
        CHECK(head == no_head);
      } else {
        CHECK(head > static_cast<std::int32_t>(b - first) && head < static_cast<std::int32_t>(end - first));
      }
    }
  }
}

// Checks the rows of decisions and their names, as explanations request them.
void check_explained(const BunsetsuFeatures& features, std::span<const std::int32_t> heads) {
  const BunsetsuDecisions decisions = bunsetsu_decisions(texts(), heads, features, Monitor());
  CHECK(decisions.rows.offsets.size() == decisions.labels.size() + 1);
  for (const std::int32_t column : decisions.rows.columns) {
    CHECK(column >= 0 && static_cast<std::size_t>(column) < features.columns());
    const std::string name = features.name(static_cast<std::size_t>(column));
    CHECK(name.find('=') != std::string::npos);
  }
  const BunsetsuSymbols symbols(texts(), features);
  const UnknownPos unknown = unknown_pos(symbols, 2);
  CHECK(unknown.bunsetsu <= unknown.decided && unknown.examples.size() <= 2);
}

}  // namespace

std::vector<std::string> fuzz_seeds() { return seeds_of_damage(3, 4, 6); }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  OwnedParser stored = valid_parsers()[bytes.below(3)];
  for (std::size_t remaining = bytes.below(4); remaining > 0; --remaining) stored.damage(bytes);
  const std::size_t scores = bytes.byte() > 250 ? 2 : 1;
  try {
    const BunsetsuFeatures features(stored_bunsetsu_templates(stored.templates),
                                    NameTable::of(stored.names, stored.name_ends), stored.begins,
                                    stored.values);
    const HashEngine engine(scores, static_cast<std::int32_t>(features.columns()));
    const Monitor monitor;
    const std::vector<std::int32_t> heads = parse_bunsetsu(texts(), features, engine, {1, &monitor});
    CHECK(scores == 1);
    check_trees(heads);
    check_explained(features, heads);
  } catch (const std::invalid_argument&) {}
  return 0;
}
