// The arc-eager parser: its spec, its training, and parsing with engines.
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "bound_engine.hpp"
#include "lexicons.hpp"
#include "tables.hpp"
#include "unkernel/parsing/arc_eager/decisions.hpp"
#include "unkernel/parsing/arc_eager/online_training.hpp"

namespace unkernel::bindings {
namespace {

using parsing::ArcEagerSpec;

// A spec, and the trees from which it was learnt.
struct BoundSpec {
  BoundSpec(const std::string& file, std::string_view templates, const LexiconLists& clusters,
            bool split_moves, bool split_labels, std::int64_t min_count)
      : spec(file, templates, {split_moves, split_labels, min_count}, make_lexicon(clusters)) {}
  ArcEagerSpec spec;
  std::vector<parsing::LabelledTree> trees;
};

using Classes = nb::typed<nb::list, nb::typed<nb::list, int>>;
using Arrays = nb::typed<nb::tuple, nb::any, nb::any>;
using Engines = nb::typed<nb::list, nb::any>;

Classes list_classes(const parsing::DecisionParts& parts) {
  Classes list;
  for (std::size_t part = 0; part < parts.size(); ++part) list.append(nb::cast(parts.classes(part)));
  return list;
}

// --- To and from a file --------------------------------------------------------------------------------

void store_features(const parsing::FeatureSpace& space, const std::string& name, Table& table) {
  table[(name + "_keys").c_str()] = to_numpy(std::vector(space.keys()));
  table[(name + "_begins").c_str()] = to_numpy(std::vector(space.begins()));
}

Table store(const BoundSpec& bound) {
  const ArcEagerSpec& spec = bound.spec;
  Table table;
  nb::list strings;
  for (std::size_t k = 0; k < parsing::string_attributes; ++k)
    strings.append(names_of(spec.vocabulary().names(static_cast<parsing::Attribute>(k))));
  table["strings"] = strings;
  nb::list labels, lifted;  // a lifted label is listed as its plain label and the label of the true head
  for (std::int32_t label = 0; label < static_cast<std::int32_t>(spec.labels().size()); ++label) {
    const std::string_view name = spec.labels().name(label);
    if (spec.labels().head_label(label) == parsing::no_label) {
      labels.append(nb::str(name.data(), name.size()));
    } else {
      lifted.append(spec.labels().plain(label));
      lifted.append(spec.labels().head_label(label));
    }
  }
  table["labels"] = labels;
  table["lifted_labels"] = lifted;
  table["root_label"] = spec.root_label();
  table["move_parts"] = nb::cast(spec.moves().part_of_case());
  table["arc_parts"] = nb::cast(spec.arcs().part_of_case());
  table["move_classes"] = list_classes(spec.moves());
  table["arc_classes"] = list_classes(spec.arcs());
  store_features(spec.move_features(), "move", table);
  store_features(spec.arc_features(), "arc", table);
  return table;
}

template <class Value>
Value read_entry(const Table& table, const char* name) {
  Value value;
  if (!nb::try_cast<Value>(item(table, name), value, false))
    throw std::invalid_argument(std::string("the parser's '") + name + "' is damaged");
  return value;
}

void restore(BoundSpec& bound, const Table& table) {
  const auto strings = read_entry<std::vector<std::vector<std::string_view>>>(table, "strings");
  if (strings.size() != parsing::string_attributes)
    throw std::invalid_argument("the parser's strings are damaged");
  ArcEagerSpec::Stored stored{{},
                              read_entry<std::vector<std::string_view>>(table, "labels"),
                              read_entry<std::vector<std::int32_t>>(table, "lifted_labels"),
                              read_entry<std::int32_t>(table, "root_label"),
                              read_entry<std::vector<std::int32_t>>(table, "move_parts"),
                              read_entry<std::vector<std::int32_t>>(table, "arc_parts"),
                              read_entry<std::vector<std::vector<std::int32_t>>>(table, "move_classes"),
                              read_entry<std::vector<std::vector<std::int32_t>>>(table, "arc_classes"),
                              array<std::uint64_t>(table, "move_keys"),
                              array<std::uint64_t>(table, "arc_keys"),
                              array<std::int64_t>(table, "move_begins"),
                              array<std::int64_t>(table, "arc_begins")};
  std::copy(strings.begin(), strings.end(), stored.strings.begin());
  bound.spec.restore(stored);
}

// --- Training ------------------------------------------------------------------------------------------

using Trainer = parsing::OnlineTrainer;

Table average_weights(const std::vector<parsing::AveragedWeights>& parts, std::size_t part) {
  if (part >= parts.size()) throw std::out_of_range("there is no such part");
  auto run = without_lock([&] { return parts[part].averages(); });
  return table_of_run(run);
}

Table combine_runs(const nb::typed<nb::list, Table>& tables, int degree, std::size_t classes) {
  std::vector<parsing::RunAverages> runs;
  for (const nb::handle item : tables) {
    const auto table = nb::cast<Table>(item);
    const auto keys = array<std::uint64_t>(table, "keys");
    const auto weights = array<double>(table, "weights");
    const bool is_ascending = std::ranges::adjacent_find(keys, std::greater_equal<>()) == keys.end();
    if (!is_ascending || weights.size() != keys.size() * classes)
      throw std::invalid_argument("these are not the averages of a run");
    runs.push_back({{keys.begin(), keys.end()}, {weights.begin(), weights.end()}});
  }
  auto mean = without_lock([&] { return parsing::mean_of(runs, degree, classes); });
  return table_of(std::pair{"columns", std::move(mean.columns)}, std::pair{"keys", std::move(mean.keys)},
                  std::pair{"weights", std::move(mean.weights)},
                  std::pair{"intercept", std::move(mean.intercept)});
}

Table to_table(parsing::DecisionRows&& rows) {
  return table_of(std::pair{"offsets", std::move(rows.offsets)},
                  std::pair{"columns", std::move(rows.columns)}, std::pair{"parts", std::move(rows.parts)},
                  std::pair{"classes", std::move(rows.classes)});
}

Arrays to_tuple(parsing::Parsed&& parsed) {
  return Arrays(nb::make_tuple(to_numpy(std::move(parsed.heads)), to_numpy(std::move(parsed.labels))));
}

// --- Parsing -------------------------------------------------------------------------------------------

constexpr std::int64_t max_words_on_this_thread = 1000;  // parsed in some hundredths of a second

Arrays parse(const BoundSpec& bound, const Engines& moves, const Engines& arcs, const data::ColumnText& text,
             std::size_t beam, int threads) {
  const parsing::ParserEngines engines{list_engines(moves), list_engines(arcs)};
  auto parsed = run_interruptibly_if(text.tokens() > max_words_on_this_thread, [&](const Monitor& monitor) {
    return parsing::parse(bound.spec, engines, text, {beam, threads}, monitor);
  });
  return to_tuple(std::move(parsed));
}

Table list_decisions(const BoundSpec& bound, const Engines& moves, const Engines& arcs,
                     const data::ColumnText& text, std::size_t beam) {
  const parsing::ParserEngines engines{list_engines(moves), list_engines(arcs)};
  auto decisions = run_interruptibly(
      [&](const Monitor& monitor) { return parsing::decisions(bound.spec, engines, text, beam, monitor); });
  Table table;
  table["offsets"] = to_numpy(std::move(decisions.offsets));
  table["columns"] = to_numpy(std::move(decisions.columns));
  table["labels"] = to_numpy(std::move(decisions.labels));
  table["sentences"] = to_numpy(std::move(decisions.sentences));
  table["firsts"] = to_numpy(std::move(decisions.firsts));
  table["seconds"] = to_numpy(std::move(decisions.seconds));
  table["parts"] = to_numpy(std::move(decisions.parts));
  table["chosen"] = to_numpy(std::move(decisions.chosen));
  table["valid"] = to_numpy(std::move(decisions.valid));
  return table;
}

void bind_spec(nb::module_& module) {
  nb::class_<BoundSpec>(module, "ArcEagerSpec")
      .def(nb::init<const std::string&, std::string_view, const LexiconLists&, bool, bool, std::int64_t>(),
           nb::arg("file"), nb::arg("templates"), nb::arg("clusters") = LexiconLists{}, nb::kw_only(),
           nb::arg("split_moves"), nb::arg("split_labels"), nb::arg("min_count"))
      .def(
          "learn",
          [](BoundSpec& self, const data::ColumnText& text) {
            run_interruptibly([&](const Monitor& monitor) { self.trees = self.spec.learn(text, monitor); });
          },
          nb::arg("text"))
      .def("stored", &store)
      .def(
          "strings",
          [](const BoundSpec& self, std::size_t attribute) {
            if (attribute >= parsing::string_attributes)
              throw std::out_of_range("there is no such attribute");
            return names_of(self.spec.vocabulary().names(static_cast<parsing::Attribute>(attribute)));
          },
          nb::arg("attribute"))
      .def("restore", &restore, nb::arg("table"))
      .def_prop_ro("labels", [](const BoundSpec& self) { return names_of(self.spec.labels()); })
      .def_prop_ro("move_classes", [](const BoundSpec& self) { return list_classes(self.spec.moves()); })
      .def_prop_ro("arc_classes", [](const BoundSpec& self) { return list_classes(self.spec.arcs()); })
      .def_prop_ro("move_columns", [](const BoundSpec& self) { return self.spec.move_features().columns(); })
      .def_prop_ro("arc_columns", [](const BoundSpec& self) { return self.spec.arc_features().columns(); })
      .def_prop_ro("lifted", [](const BoundSpec& self) { return self.spec.lifted(); })
      .def(
          "rows",
          [](const BoundSpec& self, const data::ColumnText& text) {
            auto rows = run_interruptibly([&](const Monitor& monitor) {
              return parsing::oracle_rows(self.spec, text, self.trees, monitor);
            });
            return nb::typed<nb::tuple, Table, Table>(
                nb::make_tuple(to_table(std::move(rows.moves)), to_table(std::move(rows.arcs))));
          },
          nb::arg("text"))
      .def("parse", &parse, nb::arg("moves"), nb::arg("arcs"), nb::arg("text"), nb::kw_only(),
           nb::arg("beam"), nb::arg("threads"))
      .def("decisions", &list_decisions, nb::arg("moves"), nb::arg("arcs"), nb::arg("text"), nb::kw_only(),
           nb::arg("beam"));
}

void bind_trainer(nb::module_& module) {
  nb::class_<Trainer>(module, "OnlineTrainer")
      .def(
          "__init__",
          [](Trainer* self, const BoundSpec& bound, const data::ColumnText& text, int degree,
             int label_degree, std::uint32_t min_updates, int gold_epochs, double exploration,
             std::size_t beam, int greedy_epochs, std::uint64_t seed) {
            new (self) Trainer(
                bound.spec, text, bound.trees,
                {degree, label_degree, min_updates, gold_epochs, exploration, beam, greedy_epochs, seed});
          },
          nb::arg("spec"), nb::arg("text"), nb::kw_only(), nb::arg("degree"), nb::arg("label_degree"),
          nb::arg("min_updates"), nb::arg("gold_epochs"), nb::arg("exploration"), nb::arg("beam"),
          nb::arg("greedy_epochs"), nb::arg("seed"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("run_epoch",
           [](Trainer& self) {
             auto counts = run_interruptibly([&](const Monitor& monitor) { return self.run_epoch(monitor); });
             return nb::typed<nb::tuple, int, int, int, int, int, int>(
                 nb::make_tuple(counts.moves, counts.wrong_moves, counts.arcs, counts.wrong_labels,
                                counts.sentences, counts.wrong_sentences));
           })
      .def(
          "parse",
          [](Trainer& self, const data::ColumnText& text) {
            auto parsed =
                run_interruptibly([&](const Monitor& monitor) { return self.parse(text, monitor); });
            return to_tuple(std::move(parsed));
          },
          nb::arg("text"))
      .def(
          "move_weights",
          [](const Trainer& self, std::size_t part) { return average_weights(self.moves(), part); },
          nb::arg("part"))
      .def(
          "arc_weights",
          [](const Trainer& self, std::size_t part) { return average_weights(self.arcs(), part); },
          nb::arg("part"));
  module.def("mean_weights", &combine_runs, nb::arg("runs"), nb::kw_only(), nb::arg("degree"),
             nb::arg("classes"));
}

}  // namespace

void bind_arc_eager(nb::module_& module) {
  bind_spec(module);
  bind_trainer(module);
}

}  // namespace unkernel::bindings
