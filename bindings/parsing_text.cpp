// The tokenizer, and online training on rows.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "bound_engine.hpp"
#include "tables.hpp"
#include "unkernel/parsing/online/row_training.hpp"
#include "unkernel/parsing/text/tokenizer.hpp"

namespace unkernel::bindings {
namespace {

using parsing::Multiwords;
using parsing::RowTrainer;
using parsing::TokenizerSpec;
using RowEnds = Array<std::int64_t>;
using RowNumbers = Array<std::int32_t>;
using Bytes = Array<std::uint8_t>;

constexpr std::size_t long_text = 1 << 16;  // bytes; some hundredths of a second

std::string_view view_of(const nb::bytes& text) { return {text.c_str(), text.size()}; }

template <class T>
std::vector<T> copied(std::span<const T> values) {
  return {values.begin(), values.end()};
}

// --- What was learnt -----------------------------------------------------------------------------------

void create_spec(TokenizerSpec* self, const Table& table) {
  new (self) TokenizerSpec({{array<std::uint16_t>(table, "pages"), array<std::uint8_t>(table, "kinds"),
                             array<std::uint8_t>(table, "shapes"), array<std::uint32_t>(table, "cases")},
                            newer<std::uint8_t>(table, "pairs"),
                            newer<std::uint64_t>(table, "words"),
                            newer<std::uint8_t>(table, "uses"),
                            newer<std::uint64_t>(table, "features")});
}

Table learnt(const TokenizerSpec& spec) {
  return table_of(std::pair{"pairs", copied(spec.pairs())}, std::pair{"words", copied(spec.words())},
                  std::pair{"uses", copied(spec.word_uses())},
                  std::pair{"features", copied(spec.feature_hashes())});
}

parsing::SplitText split_text(const nb::bytes& text, const RowEnds& ends, const Bytes& boundaries) {
  if (ends.size() != boundaries.size())
    throw std::invalid_argument("there must be one boundary per end of a token");
  return {view_of(text), view(ends), view(boundaries)};
}

void learn_text(TokenizerSpec& spec, const nb::bytes& text, const RowEnds& ends, const Bytes& boundaries,
                std::int64_t min_count) {
  const parsing::SplitText given = split_text(text, ends, boundaries);
  watched([&](const Monitor& monitor) { spec.learn(given, min_count, monitor); });
}

Table boundary_rows(const TokenizerSpec& spec, const nb::bytes& text, const RowEnds& ends,
                    const Bytes& boundaries) {
  const parsing::SplitText given = split_text(text, ends, boundaries);
  parsing::BoundaryRows made;
  watched([&](const Monitor& monitor) { made = spec.rows(given, monitor); });
  return table_of(std::pair{"offsets", std::move(made.rows.offsets)},
                  std::pair{"columns", std::move(made.rows.columns)},
                  std::pair{"answers", std::move(made.answers)});
}

nb::object token_keys(const TokenizerSpec& spec, const std::vector<std::string>& tokens) {
  std::vector<std::uint64_t> keys;
  for (const std::string& token : tokens) keys.push_back(parsing::token_key(spec.characters(), token));
  return give(std::move(keys));
}

nb::object ending_keys(const TokenizerSpec& spec, const std::vector<std::string>& endings) {
  std::vector<std::uint64_t> keys;
  for (const std::string& ending : endings)
    keys.push_back(parsing::ending_key(spec.characters(), ending, Multiwords::longest_token));
  return give(std::move(keys));
}

// A rule is a list of words: begin, end, rest, rest in capitals.
using Word = nb::typed<nb::tuple, int, int, std::string, std::string>;
using Rules = nb::typed<nb::list, nb::typed<nb::list, Word>>;

std::vector<parsing::SplitRule> rules_of(const Rules& rules) {
  std::vector<parsing::SplitRule> made;
  for (const nb::handle rule : rules) {
    made.emplace_back();
    for (const nb::handle word : nb::cast<nb::list>(rule)) {
      const auto parts = nb::cast<nb::sequence>(word);
      if (nb::len(parts) != 4) throw std::invalid_argument("a word of a multiword token is damaged");
      made.back().push_back({nb::cast<std::int32_t>(parts[0]), nb::cast<std::int32_t>(parts[1]),
                             nb::cast<std::string>(parts[2]), nb::cast<std::string>(parts[3])});
    }
  }
  return made;
}

void create_multiwords(Multiwords* self, const Rules& rules, const Table& table,
                       std::int32_t longest_ending) {
  new (self) Multiwords({rules_of(rules), array<std::uint64_t>(table, "tokens"),
                         array<std::int32_t>(table, "token_rules"), array<std::uint64_t>(table, "endings"),
                         array<std::int32_t>(table, "ending_rules"), longest_ending,
                         array<std::uint64_t>(table, "split_features")});
}

Table split_rows(const TokenizerSpec& spec, const Multiwords& multiwords, const nb::bytes& text,
                 const RowEnds& ends, const Bytes& boundaries) {
  const parsing::SplitText given = split_text(text, ends, boundaries);
  parsing::SplitRows made;
  watched([&](const Monitor& monitor) { made = parsing::split_rows(spec, multiwords, given, monitor); });
  return table_of(std::pair{"features", std::move(made.features)},
                  std::pair{"tokens", std::move(made.tokens)});
}

// --- Answers -------------------------------------------------------------------------------------------

nb::bytes tokenize(const TokenizerSpec& spec, const Multiwords& multiwords, const BoundEngine& boundaries,
                   const BoundEngine* splits, const nb::bytes& text, bool begins_paragraph, int threads) {
  const parsing::TokenizerParts parts{spec, boundaries.engine(), multiwords,
                                      splits == nullptr ? nullptr : &splits->engine()};
  std::string found;
  watched_if(text.size() > long_text, [&](const Monitor& monitor) {
    found = parsing::tokenize(parts, view_of(text), begins_paragraph, threads, monitor);
  });
  return nb::bytes(found.data(), found.size());
}

// How many bytes can be split before more have come, and whether a paragraph ends with them.
nb::typed<nb::tuple, int, bool> whole_text(const TokenizerSpec& spec, const nb::bytes& text) {
  const parsing::Stretch whole = [&] {
    const Unlocked unlocked;
    return parsing::whole_stretches(spec.characters(), view_of(text));
  }();
  return nb::typed<nb::tuple, int, bool>(nb::make_tuple(whole.end, whole.ends_paragraph));
}

// --- Training ------------------------------------------------------------------------------------------

std::int64_t with_rows(RowTrainer& trainer, const RowEnds& offsets, const RowNumbers& columns,
                       const RowNumbers& answers,
                       std::int64_t (RowTrainer::*run)(const parsing::AnsweredRows&, const Monitor&)) {
  std::int64_t wrong = 0;
  watched([&](const Monitor& monitor) {
    wrong = (trainer.*run)({view(offsets), view(columns), view(answers)}, monitor);
  });
  return wrong;
}

void bind_row_trainer(nb::module_& module) {
  nb::class_<RowTrainer>(module, "RowTrainer")
      .def(
          "__init__",
          [](RowTrainer* self, int degree, std::size_t classes, std::uint32_t min_updates,
             std::uint64_t seed) { new (self) RowTrainer({degree, classes, min_updates, seed}); },
          nb::kw_only(), nb::arg("degree"), nb::arg("classes"), nb::arg("min_updates"), nb::arg("seed"))
      .def(
          "run_epoch",
          [](RowTrainer& self, const RowEnds& offsets, const RowNumbers& columns, const RowNumbers& answers) {
            return with_rows(self, offsets, columns, answers, &RowTrainer::run_epoch);
          },
          nb::arg("offsets"), nb::arg("columns"), nb::arg("answers"))
      .def(
          "count_wrong",
          [](RowTrainer& self, const RowEnds& offsets, const RowNumbers& columns, const RowNumbers& answers) {
            return with_rows(self, offsets, columns, answers, &RowTrainer::count_wrong);
          },
          nb::arg("offsets"), nb::arg("columns"), nb::arg("answers"))
      .def("weights", [](const RowTrainer& self) {
        parsing::RunAverages run;
        {
          const Unlocked unlocked;
          run = self.weights().averages();
        }
        return table_of(std::pair{"keys", std::move(run.keys)}, std::pair{"weights", std::move(run.weights)});
      });
}

}  // namespace

void bind_tokenizer(nb::module_& module) {
  nb::class_<TokenizerSpec>(module, "TokenizerSpec")
      .def("__init__", &create_spec, nb::arg("table"))
      .def("learn", &learn_text, nb::arg("text"), nb::arg("ends"), nb::arg("boundaries"), nb::kw_only(),
           nb::arg("min_count"))
      .def("learnt", &learnt)
      .def("rows", &boundary_rows, nb::arg("text"), nb::arg("ends"), nb::arg("boundaries"))
      .def_prop_ro("columns", &TokenizerSpec::columns)
      .def("token_keys", &token_keys, nb::arg("tokens"))
      .def("ending_keys", &ending_keys, nb::arg("endings"));
  nb::class_<Multiwords>(module, "Multiwords")
      .def("__init__", &create_multiwords, nb::arg("rules"), nb::arg("table"), nb::kw_only(),
           nb::arg("longest_ending"))
      .def_prop_ro("columns", &Multiwords::columns);
  module.def("split_rows", &split_rows, nb::arg("spec"), nb::arg("multiwords"), nb::arg("text"),
             nb::arg("ends"), nb::arg("boundaries"));
  module.def("tokenize", &tokenize, nb::arg("spec"), nb::arg("multiwords"), nb::arg("boundaries"),
             nb::arg("splits").none(), nb::arg("text"), nb::kw_only(), nb::arg("begins_paragraph"),
             nb::arg("threads"));
  module.def("whole_text", &whole_text, nb::arg("spec"), nb::arg("text"));
  bind_row_trainer(module);
}

}  // namespace unkernel::bindings
