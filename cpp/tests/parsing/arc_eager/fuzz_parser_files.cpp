// A parser from a damaged or hostile file: the input changes a parser that has learnt from a small treebank.
// The parser is refused, or parses sentences into trees with labels that it has.
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz.hpp"
#include "fuzz_bytes.hpp"
#include "parsing/hash_engine.hpp"
#include "unkernel/base/monitor.hpp"
#include "unkernel/parsing/arc_eager/parser.hpp"
#include "unkernel/parsing/arc_eager/spec.hpp"

namespace {

using namespace unkernel;
using namespace unkernel::parsing;
using data::ColumnText;

constexpr std::string_view templates =
    "[moves]\nstack.word\ninput.xpos\nstack.xpos + input.xpos\nstack.label + distance\n"
    "[labels]\nhead.word\ndependent.suffix3\ndirection + dependent.xpos\n";
// The second tree is not projective, so that there are labels of lifted words.
constexpr std::string_view treebank =
    "1\tDogs\tdog\tN\tNNS\t_\t2\tsubj\t_\t_\n2\tbark\tbark\tV\tVBP\t_\t0\troot\t_\t_\n3\tnow\tnow\tA\tRB\t_"
    "\t2\tadv\t_\t_\n\n"
    "1\ta\ta\tN\tNN\t_\t3\tobj\t_\t_\n2\tb\tb\tV\tVB\t_\t0\troot\t_\t_\n3\tc\tc\tN\tNN\t_\t4\tmod\t_\t_"
    "\n4\td\td\tA\tRB\t_\t2\tadv\t_\t_\n\n";

ColumnText read(std::string_view text) {
  return {std::string(text), "fuzz", {data::ColumnFormat::conllu, 0, data::TreeCheck::none, false, 1}};
}

// The content of a file in vectors that can be damaged.
struct OwnedSpec {
  SpecOptions options;
  std::array<std::vector<std::string>, string_attributes> strings;
  std::vector<std::string> labels;
  std::vector<std::int32_t> lifted_labels;
  std::int32_t root_label;
  std::vector<std::int32_t> move_parts, arc_parts;
  std::vector<std::vector<std::int32_t>> move_classes, arc_classes;
  std::vector<FeatureKey> move_keys, arc_keys;
  std::vector<std::int64_t> move_begins, arc_begins;

  explicit OwnedSpec(const SpecOptions& spec_options) : options(spec_options) {
    ArcEagerSpec spec("templates", templates, options);
    (void)spec.learn(read(treebank), Monitor());
    for (std::size_t k = 0; k < string_attributes; ++k) {
      const auto& names = spec.vocabulary().names(static_cast<Attribute>(k));
      for (std::size_t i = 0; i < names.size(); ++i)
        strings[k].emplace_back(names.name(static_cast<std::int32_t>(i)));
    }
    for (std::int32_t label = 0; label < static_cast<std::int32_t>(spec.labels().size()); ++label) {
      if (spec.labels().head_label(label) == no_label) {
        labels.emplace_back(spec.labels().name(label));
      } else {
        lifted_labels.push_back(spec.labels().plain(label));
        lifted_labels.push_back(spec.labels().head_label(label));
      }
    }
    root_label = spec.root_label();
    move_parts = spec.moves().part_of_case();
    arc_parts = spec.arcs().part_of_case();
    for (std::size_t part = 0; part < spec.moves().size(); ++part)
      move_classes.push_back(spec.moves().classes(part));
    for (std::size_t part = 0; part < spec.arcs().size(); ++part)
      arc_classes.push_back(spec.arcs().classes(part));
    move_keys = spec.move_features().keys();
    arc_keys = spec.arc_features().keys();
    move_begins = spec.move_features().begins();
    arc_begins = spec.arc_features().begins();
  }

  void damage(FuzzBytes& bytes) {
    switch (bytes.below(5)) {
      case 0: return bytes.damage_one(lifted_labels, root_label, move_parts, arc_parts);
      case 1: return bytes.damage_one(move_keys, arc_keys, move_begins, arc_begins);
      case 2: return damage_names(bytes, bytes.flag() ? labels : strings[bytes.below(string_attributes)]);
      case 3: return damage_classes(bytes, bytes.flag() ? move_classes : arc_classes);
      default: (bytes.flag() ? options.split_moves : options.split_labels) = bytes.flag();
    }
  }

  ArcEagerSpec::Stored view() const {
    ArcEagerSpec::Stored stored{{},
                                {labels.begin(), labels.end()},
                                lifted_labels,
                                root_label,
                                move_parts,
                                arc_parts,
                                move_classes,
                                arc_classes,
                                move_keys,
                                arc_keys,
                                move_begins,
                                arc_begins};
    for (std::size_t k = 0; k < string_attributes; ++k)
      stored.strings[k] = {strings[k].begin(), strings[k].end()};
    return stored;
  }

 private:
  static void damage_names(FuzzBytes& bytes, std::vector<std::string>& names) {
    if (names.empty() || bytes.flag()) return names.push_back(bytes.text(4));
    if (bytes.flag()) return names.pop_back();
    names[bytes.below(names.size())] = bytes.text(4);
  }
  static void damage_classes(FuzzBytes& bytes, std::vector<std::vector<std::int32_t>>& classes) {
    if (classes.empty() || bytes.below(4) == 0)
      return classes.push_back({static_cast<std::int32_t>(bytes.below(6))});
    if (bytes.below(8) == 0) return classes.pop_back();
    bytes.damage(classes[bytes.below(classes.size())]);
  }
};

const std::array<OwnedSpec, 3>& valid_specs() {
  static const std::array<OwnedSpec, 3> all = {OwnedSpec({false, false, 1}), OwnedSpec({true, true, 1}),
                                               OwnedSpec({true, false, 2})};
  return all;
}

const ColumnText& sentences() {
  static const ColumnText text = read(
      std::string(treebank) + "1\tnew\t_\tX\tRB\t_\t0\troot\t_\t_\n2\tbark\tbark\tV\tNN\t_\t1\tx\t_\t_\n\n");
  return text;
}

struct OwnedEngines {
  std::vector<std::unique_ptr<HashEngine>> owned_engines;
  ParserEngines engines;

  explicit OwnedEngines(const ArcEagerSpec& spec) {
    fill(spec.moves(), spec.move_features(), engines.moves);
    fill(spec.arcs(), spec.arc_features(), engines.arcs);
  }
  void fill(const DecisionParts& parts, const FeatureSpace& space,
            std::vector<const engines::Engine*>& engines_of_parts) {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const std::size_t classes = parts.classes(part).size();
      if (classes < 2) {
        engines_of_parts.push_back(nullptr);
        continue;
      }
      owned_engines.push_back(std::make_unique<HashEngine>(classes == 2 ? 1 : classes,
                                                           static_cast<std::int32_t>(space.columns())));
      engines_of_parts.push_back(owned_engines.back().get());
    }
  }
};

void check_parse(const ArcEagerSpec& spec) {
  const OwnedEngines owned(spec);
  check(spec, owned.engines);
  const Parsed parsed = parse(spec, owned.engines, sentences(), {.beam = 1, .threads = 1}, Monitor());
  CHECK(parsed.heads.size() == static_cast<std::size_t>(sentences().tokens()));
  for (const std::int32_t label : parsed.labels)
    CHECK(label >= 0 && label < static_cast<std::int32_t>(spec.labels().size()));
  for (std::int64_t s = 0; s < sentences().sentences(); ++s) {
    const auto words = static_cast<std::int32_t>(sentences().first_token(s + 1) - sentences().first_token(s));
    for (std::int64_t token = sentences().first_token(s); token < sentences().first_token(s + 1); ++token) {
      const std::int32_t head = parsed.heads[static_cast<std::size_t>(token)];
      CHECK(head >= 0 && head <= words);
    }
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() { return seeds_of_damage(3, 5, 4); }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzBytes bytes(data, size);
  OwnedSpec stored = valid_specs()[bytes.below(3)];
  for (std::size_t remaining = bytes.below(4); remaining > 0; --remaining) stored.damage(bytes);
  try {
    ArcEagerSpec spec("templates", templates, stored.options);
    spec.restore(stored.view());
    check_parse(spec);
  } catch (const std::invalid_argument&) {}
  return 0;
}
