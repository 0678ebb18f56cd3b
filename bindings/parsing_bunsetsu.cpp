// Japanese dependency parsing: texts of bunsetsu, their features, training examples and parsing.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bindings.hpp"
#include "bound_engine.hpp"
#include "tables.hpp"
#include "unkernel/data/text/bunsetsu_text.hpp"
#include "unkernel/parsing/bunsetsu/features.hpp"
#include "unkernel/parsing/bunsetsu/parser.hpp"
#include "unkernel/parsing/bunsetsu/templates.hpp"

namespace unkernel::bindings {
namespace {

using data::BunsetsuText;
using parsing::BunsetsuFeatures;

// The slowest models parse so many bunsetsu in a fraction of a second.
constexpr std::size_t max_bunsetsu_on_this_thread = 2000;

using List = nb::typed<nb::list, nb::any>;
using Tuple = nb::typed<nb::tuple, nb::any, nb::ellipsis>;

// --- Texts --------------------------------------------------------------------------------------------

std::size_t check_sentence(const BunsetsuText& text, std::size_t sentence) {
  if (sentence >= text.sentences()) throw std::out_of_range("there is no such sentence");
  return sentence;
}

// Returns a list of morphemes for each bunsetsu, each morpheme a tuple of fields.
List list_morphemes(const BunsetsuText& text, std::size_t sentence) {
  List result;
  for (std::size_t b = text.first_bunsetsu(check_sentence(text, sentence));
       b < text.first_bunsetsu(sentence + 1); ++b) {
    nb::list morphemes;
    for (std::size_t m = text.first_morpheme(b); m < text.first_morpheme(b + 1); ++m) {
      nb::list fields;
      for (std::size_t f = 0; f < data::morpheme_fields; ++f)
        fields.append(decode_text(text.field(m, static_cast<data::MorphemeField>(f))));
      morphemes.append(nb::tuple(fields));
    }
    result.append(morphemes);
  }
  return result;
}

List list_skipped(const BunsetsuText& text) {
  List result;
  for (const auto& bad : text.skipped()) result.append(nb::make_tuple(bad.line, bad.column, bad.reason));
  return result;
}

void bind_text(nb::module_& module) {
  nb::class_<BunsetsuText>(module, "BunsetsuText")
      .def(
          "__init__",
          [](BunsetsuText* self, const nb::bytes& block, std::string file, std::int64_t first_line,
             bool skip) {
            std::string text(view(block));
            const Unlocked unlocked;
            new (self) BunsetsuText(std::move(text), std::move(file), first_line,
                                    skip ? data::BadSentence::skip : data::BadSentence::fail);
          },
          nb::arg("text"), nb::arg("file"), nb::arg("first_line"), nb::arg("skip"))
      .def_prop_ro("sentences", &BunsetsuText::sentences)
      .def_prop_ro("bunsetsu", &BunsetsuText::bunsetsu)
      .def_prop_ro("morphemes", &BunsetsuText::morphemes)
      .def_prop_ro("lines", &BunsetsuText::lines)
      .def_prop_ro("skipped", &list_skipped)
      .def_prop_ro("text", [](const BunsetsuText& self) { return to_bytes(self.text()); })
      .def_prop_ro("first_bunsetsu",
                   [](const BunsetsuText& self) {
                     std::vector<std::int64_t> first;
                     for (std::size_t s = 0; s <= self.sentences(); ++s)
                       first.push_back(static_cast<std::int64_t>(self.first_bunsetsu(s)));
                     return nb::cast(to_numpy(std::move(first)));
                   })
      .def_prop_ro("heads", [](const BunsetsuText& self) { return nb::cast(copy_to_numpy(self.heads())); })
      .def_prop_ro("types", [](const BunsetsuText& self) { return to_bytes(self.types()); })
      .def(
          "sentence_line",
          [](const BunsetsuText& self, std::size_t sentence) {
            return self.sentence_line(check_sentence(self, sentence));
          },
          nb::arg("sentence"))
      .def("morphemes_of", &list_morphemes, nb::arg("sentence"))
      .def(
          "check_heads",
          [](const BunsetsuText& self, const Array<std::int32_t>& heads, const nb::bytes& types) {
            self.check_heads(view(heads), view(types));
          },
          nb::arg("heads"), nb::arg("types"))
      .def(
          "with_heads",
          [](const BunsetsuText& self, const Array<std::int32_t>& heads, const nb::bytes& types) {
            return to_bytes(self.with_heads(view(heads), view(types)));
          },
          nb::arg("heads"), nb::arg("types"))
      .def(
          "sentence_with_heads",
          [](const BunsetsuText& self, std::size_t sentence, const Array<std::int32_t>& heads,
             const nb::bytes& types) {
            return to_bytes(
                self.sentence_with_heads(check_sentence(self, sentence), view(heads), view(types)));
          },
          nb::arg("sentence"), nb::arg("heads"), nb::arg("types"));
  module.def(
      "whole_bunsetsu_sentences",
      [](const nb::bytes& text, std::size_t from) { return data::size_of_whole_sentences(view(text), from); },
      nb::arg("text"), nb::arg("first"));
}

// --- Features and parsing -----------------------------------------------------------------------------

BunsetsuFeatures* restore_features(const std::vector<std::string>& templates, const nb::bytes& names,
                                   const Array<std::int64_t>& ends, const Array<std::int32_t>& begins,
                                   const Array<std::int32_t>& values) {
  return new BunsetsuFeatures(parsing::stored_bunsetsu_templates(templates),
                              data::NameTable::of(view(names), view(ends)), to_vector(begins),
                              to_vector(values));
}

List list_templates(const BunsetsuFeatures& features) {
  List names;
  for (const auto& feature_template : features.templates()) names.append(feature_template.name);
  return names;
}

Tuple to_tuple(parsing::BunsetsuDecisions&& decisions) {
  return Tuple(nb::make_tuple(to_numpy(std::move(decisions.rows.offsets)),
                              to_numpy(std::move(decisions.rows.columns)),
                              to_numpy(std::move(decisions.labels))));
}

void bind_features(nb::module_& module) {
  nb::class_<BunsetsuFeatures>(module, "BunsetsuFeatures")
      .def(nb::new_(&restore_features), nb::arg("templates"), nb::arg("names"), nb::arg("name_ends"),
           nb::arg("begins"), nb::arg("values"))
      .def_prop_ro("templates", &list_templates)
      .def_prop_ro("columns", &BunsetsuFeatures::columns)
      .def_prop_ro("names", [](const BunsetsuFeatures& self) { return to_bytes(self.symbols().bytes()); })
      .def_prop_ro(
          "name_ends",
          [](const BunsetsuFeatures& self) { return nb::cast(copy_to_numpy(self.symbols().ends())); })
      .def_prop_ro("begins",
                   [](const BunsetsuFeatures& self) { return nb::cast(copy_to_numpy(self.begins())); })
      .def_prop_ro("values",
                   [](const BunsetsuFeatures& self) { return nb::cast(copy_to_numpy(self.values())); })
      .def(
          "column_name",
          [](const BunsetsuFeatures& self, std::size_t column) {
            if (column >= self.columns()) throw std::out_of_range("there is no such column");
            return decode_text(self.name(column));
          },
          nb::arg("column"))
      .def(
          "unknown_pos",
          [](const BunsetsuFeatures& self, const BunsetsuText& text, std::size_t most_examples) {
            const parsing::BunsetsuSymbols symbols(text, self);
            const parsing::UnknownPos result = parsing::unknown_pos(symbols, most_examples);
            List examples;
            for (const std::string& name : result.examples) examples.append(decode_text(name));
            return Tuple(nb::make_tuple(result.bunsetsu, result.decided, examples));
          },
          nb::arg("text"), nb::arg("most_examples"))
      .def(
          "decisions",
          [](const BunsetsuFeatures& self, const BunsetsuText& text, const Array<std::int32_t>& heads) {
            auto decisions = run_interruptibly([&](const Monitor& monitor) {
              return parsing::bunsetsu_decisions(text, view(heads), self, monitor);
            });
            return to_tuple(std::move(decisions));
          },
          nb::arg("text"), nb::arg("heads"))
      .def(
          "parse",
          [](const BunsetsuFeatures& self, const BunsetsuText& text, const BoundEngine& engine, int threads) {
            auto heads = run_interruptibly_if(
                text.bunsetsu() > max_bunsetsu_on_this_thread, [&](const Monitor& monitor) {
                  return parsing::parse_bunsetsu(text, self, engine.engine(), {threads, &monitor});
                });
            return to_numpy(std::move(heads));
          },
          nb::arg("text"), nb::arg("engine"), nb::arg("threads"));
  module.def("bunsetsu_template_names", &parsing::bunsetsu_template_names, nb::arg("file"), nb::arg("text"));
  module.def(
      "bunsetsu_training",
      [](const BunsetsuText& text, const Array<std::int32_t>& heads,
         const std::vector<std::string>& templates, std::int64_t min_count) {
        std::optional<parsing::BunsetsuTraining> training;
        run_interruptibly([&](const Monitor& monitor) {
          training.emplace(parsing::bunsetsu_training(
              text, view(heads), parsing::read_bunsetsu_templates(templates), min_count, monitor));
        });
        return Tuple(nb::make_tuple(std::move(training->features), to_tuple(std::move(training->decisions))));
      },
      nb::arg("text"), nb::arg("heads"), nb::arg("templates"), nb::arg("min_count"));
}

}  // namespace

void bind_bunsetsu(nb::module_& module) {
  bind_text(module);
  bind_features(module);
}

}  // namespace unkernel::bindings
