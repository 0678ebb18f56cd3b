// Words in sequences: features, online training, and tagging.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "bound_engine.hpp"
#include "lexicons.hpp"
#include "tables.hpp"
#include "unkernel/parsing/sequences/features.hpp"
#include "unkernel/parsing/sequences/online_training.hpp"
#include "unkernel/parsing/sequences/templates.hpp"
#include "unkernel/parsing/tagging/tagger.hpp"

namespace unkernel::bindings {
namespace {

using data::ColumnText;
using parsing::SequenceFeatures;
using parsing::SequenceTrainer;

// The slowest models tag so many words in a fraction of a second.
constexpr std::int64_t max_words_on_this_thread_to_tag = 2000;

// --- Features ---------------------------------------------------------------------------------------------

using NamedColumns = std::vector<std::pair<std::string, int>>;
using NamedLexicons = std::vector<std::pair<std::string, LexiconLists>>;

struct Sources {
  parsing::SequenceNames names;
  parsing::SequenceSources sources;
};

Sources make_sources(int word_column, const NamedColumns& columns, const NamedLexicons& lexicons) {
  constexpr int most_columns = 1000;  // more than any format has
  Sources result{{}, {.word_column = word_column, .columns = {}, .lexicons = {}}};
  for (const auto& [name, column] : columns) {
    if (column < 0 || column > most_columns) throw std::invalid_argument("a column is out of range");
    result.names.columns.push_back(name);
    result.sources.columns.push_back(column);
  }
  for (const auto& [name, lists] : lexicons) {
    result.names.lexicons.push_back(name);
    result.sources.lexicons.push_back(make_lexicon(lists));
  }
  return result;
}

void check_columns(const SequenceFeatures& features, const ColumnText& text) {
  const int column = features.sources().word_column;
  if (text.tokens() > 0 && (column < 0 || column >= text.columns()))
    throw std::invalid_argument("the text has no column " + std::to_string(column));
}

auto to_tuple(parsing::FeatureRows&& rows) {
  return nb::typed<nb::tuple, nb::any, nb::any>(
      nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.columns))));
}

auto list_rows(const SequenceFeatures& features, const ColumnText& text, const Array<std::int32_t>& answers,
               bool backward) {
  check_columns(features, text);
  constexpr std::int32_t largest_answer = 1
                                          << 30;  // codes of answers, a little larger, must fit into 32 bits
  if (answers.size() != static_cast<std::size_t>(text.tokens()) ||
      std::ranges::any_of(view(answers), [](auto k) { return k > largest_answer; })) {
    throw std::invalid_argument("the answers do not fit the text");
  }
  auto rows = run_interruptibly([&](const Monitor& monitor) {
    return features.rows({.text = text, .backward = backward}, view(answers), monitor);
  });
  return to_tuple(std::move(rows));
}

// Returns the values of a column in the training text, or None if the templates do not use the column.
std::optional<Names> list_known(const SequenceFeatures& features, std::size_t column) {
  const data::NameTable* names = features.find_values(column);
  return names == nullptr ? std::nullopt : std::optional<Names>(names_of(*names));
}

auto learn_features(SequenceFeatures& features, const ColumnText& text, const Array<std::int32_t>& answers,
                    bool backward, std::int64_t min_count) {
  check_columns(features, text);
  if (features.features() > 0) throw std::invalid_argument("these features have been learned already");
  if (answers.size() != static_cast<std::size_t>(text.tokens()) ||
      std::ranges::any_of(view(answers),
                          [](auto k) { return k < 0 || k >= parsing::most_sequence_classes; })) {
    throw std::invalid_argument("the answers do not fit the text");
  }
  auto rows = run_interruptibly([&](const Monitor& monitor) {
    return features.learn({.text = text, .backward = backward}, view(answers), min_count, monitor);
  });
  return to_tuple(std::move(rows));
}

// --- Features in files ------------------------------------------------------------------------------------

std::string append_number(const char* name, std::size_t number) { return name + std::to_string(number); }

Table list_feature_arrays(const SequenceFeatures& features) {
  Table table;
  for (std::size_t a = 0; a < features.values().size(); ++a) {
    const data::NameTable& names = features.values()[a];
    table[append_number("value_bytes.", a).c_str()] =
        to_numpy(std::vector<std::uint8_t>(names.bytes().begin(), names.bytes().end()));
    table[append_number("value_ends.", a).c_str()] = to_numpy(std::vector(names.ends()));
  }
  auto tables = features.tables();
  for (std::size_t t = 0; t < tables.size(); ++t) {
    table[append_number("ids.", t).c_str()] = to_numpy(std::move(tables[t].ids));
    for (std::size_t k = 0; k < tables[t].joins.size(); ++k) {
      table[append_number((append_number("joins.", t) + ".").c_str(), k).c_str()] =
          to_numpy(std::move(tables[t].joins[k]));
    }
  }
  return table;
}

data::NameTable read_names(const nb::dict& table, std::size_t attribute) {
  const auto bytes = array<std::uint8_t>(table, append_number("value_bytes.", attribute).c_str());
  return data::NameTable::of(std::string(bytes.begin(), bytes.end()),
                             array<std::int64_t>(table, append_number("value_ends.", attribute).c_str()));
}

parsing::SequenceTableArrays read_table(const nb::dict& table, std::size_t number, std::size_t values) {
  const auto copy = [](const auto& span) { return std::vector(span.begin(), span.end()); };
  parsing::SequenceTableArrays arrays{
      {}, copy(array<std::int32_t>(table, append_number("ids.", number).c_str()))};
  for (std::size_t k = 0; k + 1 < values; ++k) {
    arrays.joins.push_back(copy(array<std::uint64_t>(
        table, append_number((append_number("joins.", number) + ".").c_str(), k).c_str())));
  }
  return arrays;
}

void create_features(SequenceFeatures* self, std::string_view templates, const std::string& file,
                     int word_column, const NamedColumns& columns, const NamedLexicons& lexicons) {
  Sources inputs = make_sources(word_column, columns, lexicons);
  new (self) SequenceFeatures(parsing::read_sequence_templates(templates, file, inputs.names),
                              std::move(inputs.sources));
}

SequenceFeatures restore_features(std::string_view text, const std::string& file, const Table& table,
                                  std::int32_t features, int word_column, const NamedColumns& columns,
                                  const NamedLexicons& lexicons) {
  Sources inputs = make_sources(word_column, columns, lexicons);
  parsing::SequenceTemplates templates = parsing::read_sequence_templates(text, file, inputs.names);
  std::vector<data::NameTable> values;
  for (std::size_t a = 0; a < templates.attributes.size(); ++a) values.push_back(read_names(table, a));
  std::vector<parsing::SequenceTableArrays> tables;
  for (const parsing::SequenceTemplate& sequence_template : templates.all)
    tables.push_back(read_table(table, tables.size(), sequence_template.size()));
  return SequenceFeatures(std::move(templates), std::move(inputs.sources), std::move(values), tables,
                          features);
}

void bind_sequence_features(nb::module_& module) {
  nb::class_<SequenceFeatures>(module, "SequenceFeatures")
      .def("__init__", &create_features, nb::arg("templates"), nb::arg("file"), nb::kw_only(),
           nb::arg("word_column"), nb::arg("columns"), nb::arg("lexicons") = NamedLexicons{})
      .def_prop_ro("features", &SequenceFeatures::features)
      .def("known", &list_known, nb::arg("column"))
      .def("arrays", &list_feature_arrays)
      .def("rows", &list_rows, nb::arg("text"), nb::arg("answers"), nb::kw_only(), nb::arg("backward"))
      .def("learn", &learn_features, nb::arg("text"), nb::arg("answers"), nb::kw_only(), nb::arg("backward"),
           nb::arg("min_count"));
  module.def("restored_sequence_features", &restore_features, nb::arg("templates"), nb::arg("file"),
             nb::arg("arrays"), nb::arg("features"), nb::kw_only(), nb::arg("word_column"),
             nb::arg("columns"), nb::arg("lexicons") = NamedLexicons{});
}

// --- Training ---------------------------------------------------------------------------------------------

void bind_sequence_trainer(nb::module_& module) {
  nb::class_<SequenceTrainer>(module, "SequenceTrainer")
      .def(
          "__init__",
          [](SequenceTrainer* self, const SequenceFeatures& features, const ColumnText& text,
             const Array<std::int32_t>& answers, const Array<std::int32_t>& parts,
             const std::vector<std::vector<std::int32_t>>& classes, int degree, std::uint32_t min_updates,
             int gold_epochs, std::uint64_t seed) {
            check_columns(features, text);
            new (self) SequenceTrainer(features, text, {to_vector(answers), to_vector(parts)}, classes,
                                       {degree, min_updates, gold_epochs, seed});
          },
          nb::arg("features"), nb::arg("text"), nb::arg("answers"), nb::arg("parts"), nb::arg("classes"),
          nb::kw_only(), nb::arg("degree"), nb::arg("min_updates"), nb::arg("gold_epochs"), nb::arg("seed"),
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("run_epoch",
           [](SequenceTrainer& self) {
             auto counts = run_interruptibly([&](const Monitor& monitor) { return self.run_epoch(monitor); });
             return nb::typed<nb::tuple, int, int>(nb::make_tuple(counts.words, counts.wrong));
           })
      .def(
          "answers",
          [](SequenceTrainer& self, const ColumnText& text, const Array<std::int32_t>& classes,
             const Array<std::int32_t>& parts) {
            const parsing::SequenceAnswers given{to_vector(classes), to_vector(parts)};
            auto tags =
                run_interruptibly([&](const Monitor& monitor) { return self.answers(text, given, monitor); });
            return to_numpy(std::move(tags));
          },
          nb::arg("text"), nb::arg("classes"), nb::arg("parts"))
      .def(
          "weights",
          [](const SequenceTrainer& self, std::size_t part) {
            if (part >= self.parts().size()) throw std::out_of_range("there is no such part");
            auto run = without_lock([&] { return self.parts()[part].averages(); });
            return table_of_run(run);
          },
          nb::arg("part"));
}

// --- Tagging ----------------------------------------------------------------------------------------------

// Three lists: the words, their parts and their classes.
using CertainLists =
    std::tuple<std::vector<std::string>, std::vector<std::int32_t>, std::vector<std::int32_t>>;

parsing::CertainClasses make_certain_classes(const CertainLists& lists) {
  const auto& [words, parts, classes] = lists;
  if (words.size() != parts.size() || words.size() != classes.size())
    throw std::invalid_argument("the words of certain classes do not fit their classes");
  parsing::CertainClasses certain;
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (parts[k] < 0 || classes[k] < 0 || classes[k] >= parsing::most_sequence_classes)
      throw std::invalid_argument("a certain class is out of range");
    const std::uint64_t key =
        parsing::word_in_part(certain.words.add(words[k]), static_cast<std::size_t>(parts[k]));
    if (std::exchange(certain.classes[key], classes[k] + 1) != 0)
      throw std::invalid_argument("a word has two certain classes");
  }
  return certain;
}

using Cases = std::vector<std::pair<std::vector<std::int32_t>, std::int32_t>>;  // classes and part

FlatMap<std::uint64_t, std::int32_t> map_cases(const Cases& cases, std::size_t split) {
  FlatMap<std::uint64_t, std::int32_t> parts;
  for (const auto& [classes, part] : cases) {
    if (classes.size() != split)
      throw std::invalid_argument("a case must have one class per column that splits decisions");
    parts[parsing::case_of(classes)] = part + 1;
  }
  return parts;
}

using EngineList = nb::typed<nb::list, nb::any>;

EngineList tag_text(const ColumnText& text, const std::vector<const parsing::TagColumn*>& bound,
                    const std::vector<EngineList>& engines, int threads) {
  if (engines.size() != bound.size()) throw std::invalid_argument("there must be engines for every column");
  std::vector<parsing::ScoredColumn> columns;
  for (std::size_t k = 0; k < bound.size(); ++k) {
    check_columns(bound[k]->features, text);
    columns.push_back({*bound[k], list_engines(engines[k])});
  }
  auto tags = run_interruptibly_if(
      text.tokens() > max_words_on_this_thread_to_tag,
      [&](const Monitor& monitor) { return parsing::tag_text(text, columns, {threads, &monitor}); });
  EngineList result;
  for (auto& column_tags : tags) result.append(to_numpy(std::move(column_tags)));
  return result;
}

void bind_sequence_tagger(nb::module_& module) {
  using parsing::TagColumn;
  nb::class_<TagColumn>(module, "TagColumn")
      .def(
          "__init__",
          [](TagColumn* self, const SequenceFeatures& features, int text_column,
             const std::vector<std::string>& names, const std::vector<std::vector<std::int32_t>>& classes,
             std::size_t split, const Cases& cases, const CertainLists& certain) {
            TagColumn column{features,
                             text_column,
                             make_name_table(names, "a class is given twice"),
                             classes,
                             split,
                             map_cases(cases, split),
                             make_certain_classes(certain)};
            parsing::check(column);
            new (self) TagColumn(std::move(column));
          },
          nb::arg("features"), nb::kw_only(), nb::arg("text_column"), nb::arg("names"), nb::arg("classes"),
          nb::arg("split"), nb::arg("cases"), nb::arg("certain"), nb::keep_alive<1, 2>());
  module.def("tag_text", &tag_text, nb::arg("text"), nb::arg("columns"), nb::arg("engines"), nb::kw_only(),
             nb::arg("threads"));
}

}  // namespace

void bind_sequences(nb::module_& module) {
  bind_sequence_features(module);
  bind_sequence_trainer(module);
  bind_sequence_tagger(module);
}

}  // namespace unkernel::bindings
