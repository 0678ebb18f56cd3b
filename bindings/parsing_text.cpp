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

constexpr std::size_t max_bytes_on_this_thread = 1 << 16;  // tokenized in some hundredths of a second

// --- Learning -------------------------------------------------------------------------------------------

void create_spec(TokenizerSpec* self, const Table& table) {
  new (self) TokenizerSpec({{array<std::uint16_t>(table, "pages"), array<std::uint8_t>(table, "kinds"),
                             array<std::uint8_t>(table, "shapes"), array<std::uint32_t>(table, "cases")},
                            optional_array<std::uint8_t>(table, "pairs"),
                            optional_array<std::uint64_t>(table, "words"),
                            optional_array<std::uint8_t>(table, "uses"),
                            optional_array<std::uint64_t>(table, "features")});
}

Table list_learnt(const TokenizerSpec& spec) {
  Table table;
  table["pairs"] = copy_to_numpy(spec.pairs());
  table["words"] = copy_to_numpy(spec.words());
  table["uses"] = copy_to_numpy(spec.word_uses());
  table["features"] = copy_to_numpy(spec.feature_hashes());
  return table;
}

parsing::SplitText make_split_text(const nb::bytes& text, const RowEnds& ends, const Bytes& boundaries) {
  if (ends.size() != boundaries.size())
    throw std::invalid_argument("there must be one boundary per end of a token");
  return {view(text), view(ends), view(boundaries)};
}

void learn_text(TokenizerSpec& spec, const nb::bytes& text, const RowEnds& ends, const Bytes& boundaries,
                std::int64_t min_count) {
  const parsing::SplitText split_text = make_split_text(text, ends, boundaries);
  run_interruptibly([&](const Monitor& monitor) { spec.learn(split_text, min_count, monitor); });
}

Table list_boundaries(const TokenizerSpec& spec, const nb::bytes& text, const RowEnds& ends,
                      const Bytes& boundaries) {
  const parsing::SplitText split_text = make_split_text(text, ends, boundaries);
  auto result = run_interruptibly([&](const Monitor& monitor) { return spec.rows(split_text, monitor); });
  return table_of(std::pair{"offsets", std::move(result.rows.offsets)},
                  std::pair{"columns", std::move(result.rows.columns)},
                  std::pair{"answers", std::move(result.answers)});
}

nb::object compute_token_keys(const TokenizerSpec& spec, const std::vector<std::string>& tokens) {
  std::vector<std::uint64_t> keys;
  for (const std::string& token : tokens) keys.push_back(parsing::token_key(spec.characters(), token));
  return nb::cast(to_numpy(std::move(keys)));
}

nb::object compute_ending_keys(const TokenizerSpec& spec, const std::vector<std::string>& endings) {
  std::vector<std::uint64_t> keys;
  for (const std::string& ending : endings)
    keys.push_back(parsing::ending_key(spec.characters(), ending, Multiwords::longest_token));
  return nb::cast(to_numpy(std::move(keys)));
}

// A rule is a list of words. A word is a begin, an end, the remaining letters, and these letters in capitals.
using Word = nb::typed<nb::tuple, int, int, std::string, std::string>;
using Rules = nb::typed<nb::list, nb::typed<nb::list, Word>>;

std::vector<parsing::SplitRule> read_rules(const Rules& rules) {
  std::vector<parsing::SplitRule> result;
  for (const nb::handle rule : rules) {
    result.emplace_back();
    for (const nb::handle word : nb::cast<nb::list>(rule)) {
      const auto parts = nb::cast<nb::sequence>(word);
      if (nb::len(parts) != 4) throw std::invalid_argument("a word of a multiword token is damaged");
      result.back().push_back({nb::cast<std::int32_t>(parts[0]), nb::cast<std::int32_t>(parts[1]),
                               nb::cast<std::string>(parts[2]), nb::cast<std::string>(parts[3])});
    }
  }
  return result;
}

void create_multiwords(Multiwords* self, const Rules& rules, const Table& table,
                       std::int32_t longest_ending) {
  new (self) Multiwords({read_rules(rules), array<std::uint64_t>(table, "tokens"),
                         array<std::int32_t>(table, "token_rules"), array<std::uint64_t>(table, "endings"),
                         array<std::int32_t>(table, "ending_rules"), longest_ending,
                         array<std::uint64_t>(table, "split_features")});
}

Table list_splits(const TokenizerSpec& spec, const Multiwords& multiwords, const nb::bytes& text,
                  const RowEnds& ends, const Bytes& boundaries) {
  const parsing::SplitText split_text = make_split_text(text, ends, boundaries);
  auto result = run_interruptibly(
      [&](const Monitor& monitor) { return parsing::split_rows(spec, multiwords, split_text, monitor); });
  return table_of(std::pair{"features", std::move(result.features)},
                  std::pair{"tokens", std::move(result.tokens)});
}

// --- Tokenizing ----------------------------------------------------------------------------------------

nb::bytes tokenize(const TokenizerSpec& spec, const Multiwords& multiwords, const BoundEngine& boundaries,
                   const BoundEngine* splits, const nb::bytes& text, bool begins_paragraph, int threads) {
  const parsing::TokenizerParts parts{spec, boundaries.engine(), multiwords,
                                      splits == nullptr ? nullptr : &splits->engine()};
  auto tokenized = run_interruptibly_if(text.size() > max_bytes_on_this_thread, [&](const Monitor& monitor) {
    return parsing::tokenize(parts, view(text), begins_paragraph, threads, monitor);
  });
  return to_bytes(tokenized);
}

// Returns the number of bytes that can be split before more text arrives, and whether a paragraph ends there.
nb::typed<nb::tuple, int, bool> find_whole_text(const TokenizerSpec& spec, const nb::bytes& text) {
  const parsing::Stretch stretches =
      without_lock([&] { return parsing::whole_stretches(spec.characters(), view(text)); });
  return nb::typed<nb::tuple, int, bool>(nb::make_tuple(stretches.end, stretches.ends_paragraph));
}

// --- Training ------------------------------------------------------------------------------------------

std::int64_t run_on_rows(RowTrainer& trainer, const RowEnds& offsets, const RowNumbers& columns,
                         const RowNumbers& answers,
                         std::int64_t (RowTrainer::*run)(const parsing::LabelledRows&, const Monitor&)) {
  return run_interruptibly([&](const Monitor& monitor) {
    return (trainer.*run)({view(offsets), view(columns), view(answers)}, monitor);
  });
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
            return run_on_rows(self, offsets, columns, answers, &RowTrainer::run_epoch);
          },
          nb::arg("offsets"), nb::arg("columns"), nb::arg("answers"))
      .def(
          "count_wrong",
          [](RowTrainer& self, const RowEnds& offsets, const RowNumbers& columns, const RowNumbers& answers) {
            return run_on_rows(self, offsets, columns, answers, &RowTrainer::count_wrong);
          },
          nb::arg("offsets"), nb::arg("columns"), nb::arg("answers"))
      .def("weights", [](const RowTrainer& self) {
        auto run = without_lock([&] { return self.weights().averages(); });
        return table_of_run(run);
      });
}

}  // namespace

void bind_tokenizer(nb::module_& module) {
  nb::class_<TokenizerSpec>(module, "TokenizerSpec")
      .def("__init__", &create_spec, nb::arg("table"))
      .def("learn", &learn_text, nb::arg("text"), nb::arg("ends"), nb::arg("boundaries"), nb::kw_only(),
           nb::arg("min_count"))
      .def("learnt", &list_learnt)
      .def("rows", &list_boundaries, nb::arg("text"), nb::arg("ends"), nb::arg("boundaries"))
      .def_prop_ro("columns", &TokenizerSpec::columns)
      .def("token_keys", &compute_token_keys, nb::arg("tokens"))
      .def("ending_keys", &compute_ending_keys, nb::arg("endings"));
  nb::class_<Multiwords>(module, "Multiwords")
      .def("__init__", &create_multiwords, nb::arg("rules"), nb::arg("table"), nb::kw_only(),
           nb::arg("longest_ending"))
      .def_prop_ro("columns", &Multiwords::columns);
  module.def("split_rows", &list_splits, nb::arg("spec"), nb::arg("multiwords"), nb::arg("text"),
             nb::arg("ends"), nb::arg("boundaries"));
  module.def("tokenize", &tokenize, nb::arg("spec"), nb::arg("multiwords"), nb::arg("boundaries"),
             nb::arg("splits").none(), nb::arg("text"), nb::kw_only(), nb::arg("begins_paragraph"),
             nb::arg("threads"));
  module.def("whole_text", &find_whole_text, nb::arg("spec"), nb::arg("text"));
  bind_row_trainer(module);
}

}  // namespace unkernel::bindings
