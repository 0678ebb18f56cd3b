// The arc-eager parser: its frame, its training, and parsing with engines.
#include <nanobind/stl/function.h>
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
#include "tables.hpp"
#include "unkernel/parsing/arc_eager/decisions.hpp"
#include "unkernel/parsing/arc_eager/online_training.hpp"

namespace unkernel::bindings {
namespace {

using parsing::ArcEagerSpec;

// A frame, and the trees that it learnt from.
struct BoundFrame {
  BoundFrame(const std::string& file, std::string_view templates, bool split_moves, bool split_labels,
             std::int64_t minimum)
      : frame(file, templates, {split_moves, split_labels, minimum}) {}
  ArcEagerSpec frame;
  std::vector<parsing::LabelledTree> trees;
};

using Classes = nb::typed<nb::list, nb::typed<nb::list, int>>;
using Arrays = nb::typed<nb::tuple, nb::any, nb::any>;
using Engines = nb::typed<nb::list, nb::any>;

Classes classes_of(const parsing::DecisionParts& parts) {
  Classes all;
  for (std::size_t part = 0; part < parts.size(); ++part) all.append(nb::cast(parts.classes(part)));
  return all;
}

// --- To and from a file --------------------------------------------------------------------------------

void store_features(const parsing::FeatureSpace& space, const std::string& name, Table& table) {
  table[(name + "_keys").c_str()] = give(std::vector(space.keys()));
  table[(name + "_begins").c_str()] = give(std::vector(space.begins()));
}

Table stored(const BoundFrame& bound) {
  const ArcEagerSpec& frame = bound.frame;
  Table table;
  nb::list strings;
  for (std::size_t k = 0; k < parsing::string_attributes; ++k)
    strings.append(names_of(frame.vocabulary().names(static_cast<parsing::Attribute>(k))));
  table["strings"] = strings;
  nb::list labels, lifted;
  for (std::int32_t label = 0; label < static_cast<std::int32_t>(frame.labels().size()); ++label) {
    const std::string_view name = frame.labels().name(label);
    if (frame.labels().head_label(label) == parsing::no_label) {
      labels.append(nb::str(name.data(), name.size()));
    } else {
      lifted.append(frame.labels().plain(label));
      lifted.append(frame.labels().head_label(label));
    }
  }
  table["labels"] = labels;
  table["lifted_labels"] = lifted;
  table["root_label"] = frame.root_label();
  table["move_parts"] = nb::cast(frame.moves().part_of_case());
  table["arc_parts"] = nb::cast(frame.arcs().part_of_case());
  table["move_classes"] = classes_of(frame.moves());
  table["arc_classes"] = classes_of(frame.arcs());
  store_features(frame.move_features(), "move", table);
  store_features(frame.arc_features(), "arc", table);
  return table;
}

template <class Value>
Value plain(const Table& table, const char* name) {
  Value value;
  if (!nb::try_cast<Value>(item(table, name), value, false))
    throw std::invalid_argument(std::string("the parser's '") + name + "' is damaged");
  return value;
}

void restore(BoundFrame& bound, const Table& table) {
  const auto strings = plain<std::vector<std::vector<std::string_view>>>(table, "strings");
  if (strings.size() != parsing::string_attributes)
    throw std::invalid_argument("the parser's strings are damaged");
  ArcEagerSpec::Stored stored{{},
                              plain<std::vector<std::string_view>>(table, "labels"),
                              plain<std::vector<std::int32_t>>(table, "lifted_labels"),
                              plain<std::int32_t>(table, "root_label"),
                              plain<std::vector<std::int32_t>>(table, "move_parts"),
                              plain<std::vector<std::int32_t>>(table, "arc_parts"),
                              plain<std::vector<std::vector<std::int32_t>>>(table, "move_classes"),
                              plain<std::vector<std::vector<std::int32_t>>>(table, "arc_classes"),
                              array<std::uint64_t>(table, "move_keys"),
                              array<std::uint64_t>(table, "arc_keys"),
                              array<std::int64_t>(table, "move_begins"),
                              array<std::int64_t>(table, "arc_begins")};
  std::copy(strings.begin(), strings.end(), stored.strings.begin());
  bound.frame.restore(stored);
}

// --- Training ------------------------------------------------------------------------------------------

using Trainer = parsing::OnlineTrainer;

Table averages(const std::vector<parsing::AveragedWeights>& parts, std::size_t part) {
  if (part >= parts.size()) throw std::out_of_range("there is no such part");
  parsing::RunAverages run;
  {
    const nb::gil_scoped_release unlocked;
    run = parts[part].averages();
  }
  return table_of(std::pair{"keys", std::move(run.keys)}, std::pair{"weights", std::move(run.weights)});
}

Table mean_weights(const nb::typed<nb::list, Table>& tables, int degree, std::size_t classes) {
  std::vector<parsing::RunAverages> runs;
  for (const nb::handle one : tables) {
    const auto table = nb::cast<Table>(one);
    const auto keys = array<std::uint64_t>(table, "keys");
    const auto weights = array<double>(table, "weights");
    const bool ascend = std::ranges::adjacent_find(keys, std::greater_equal<>()) == keys.end();
    if (!ascend || weights.size() != keys.size() * classes)
      throw std::invalid_argument("these are not the averages of a run");
    runs.push_back({{keys.begin(), keys.end()}, {weights.begin(), weights.end()}});
  }
  parsing::ConjunctionWeights mean;
  {
    const nb::gil_scoped_release unlocked;
    mean = parsing::mean_of(runs, degree, classes);
  }
  return table_of(std::pair{"columns", std::move(mean.columns)}, std::pair{"keys", std::move(mean.keys)},
                  std::pair{"weights", std::move(mean.weights)},
                  std::pair{"constants", std::move(mean.constants)});
}

Table as_table(parsing::DecisionRows&& rows) {
  return table_of(std::pair{"offsets", std::move(rows.offsets)},
                  std::pair{"columns", std::move(rows.columns)}, std::pair{"parts", std::move(rows.parts)},
                  std::pair{"classes", std::move(rows.classes)});
}

Arrays as_tuple(parsing::Parsed&& parsed) {
  return Arrays(nb::make_tuple(to_numpy(std::move(parsed.heads)), to_numpy(std::move(parsed.labels))));
}

// --- Parsing -------------------------------------------------------------------------------------------

std::vector<const engines::Engine*> engines_of(const Engines& list) {
  std::vector<const engines::Engine*> found;
  for (const nb::handle one : list)
    found.push_back(one.is_none() ? nullptr : &nb::cast<const BoundEngine&>(one).engine());
  return found;
}

Arrays parse_with(const BoundFrame& bound, const Engines& moves, const Engines& arcs,
                  const data::ColumnText& text, int threads) {
  const parsing::ParserEngines engines{engines_of(moves), engines_of(arcs)};
  parsing::Parsed parsed;
  watched(
      [&](const Monitor& monitor) { parsed = parsing::parse(bound.frame, engines, text, threads, monitor); },
      nullptr);
  return as_tuple(std::move(parsed));
}

Table decisions_with(const BoundFrame& bound, const Engines& moves, const Engines& arcs,
                     const data::ColumnText& text) {
  const parsing::ParserEngines engines{engines_of(moves), engines_of(arcs)};
  parsing::ParserDecisions made;
  watched([&](const Monitor& monitor) { made = parsing::decisions(bound.frame, engines, text, monitor); },
          nullptr);
  Table table;
  table["offsets"] = give(std::move(made.offsets));
  table["columns"] = give(std::move(made.columns));
  table["labels"] = give(std::move(made.labels));
  table["sentences"] = give(std::move(made.sentences));
  table["firsts"] = give(std::move(made.firsts));
  table["seconds"] = give(std::move(made.seconds));
  table["parts"] = give(std::move(made.parts));
  table["chosen"] = give(std::move(made.chosen));
  table["valid"] = give(std::move(made.valid));
  return table;
}

void bind_frame(nb::module_& module) {
  nb::class_<BoundFrame>(module, "ArcEagerSpec")
      .def(nb::init<const std::string&, std::string_view, bool, bool, std::int64_t>(), nb::arg("file"),
           nb::arg("templates"), nb::kw_only(), nb::arg("split_moves"), nb::arg("split_labels"),
           nb::arg("minimum"))
      .def(
          "learn",
          [](BoundFrame& self, const data::ColumnText& text) {
            watched([&](const Monitor& monitor) { self.trees = self.frame.learn(text, monitor); }, nullptr);
          },
          nb::arg("text"))
      .def("stored", &stored)
      .def("restore", &restore, nb::arg("table"))
      .def_prop_ro("labels", [](const BoundFrame& self) { return names_of(self.frame.labels()); })
      .def_prop_ro("move_classes", [](const BoundFrame& self) { return classes_of(self.frame.moves()); })
      .def_prop_ro("arc_classes", [](const BoundFrame& self) { return classes_of(self.frame.arcs()); })
      .def_prop_ro("move_columns",
                   [](const BoundFrame& self) { return self.frame.move_features().columns(); })
      .def_prop_ro("arc_columns", [](const BoundFrame& self) { return self.frame.arc_features().columns(); })
      .def_prop_ro("lifted", [](const BoundFrame& self) { return self.frame.lifted(); })
      .def(
          "rows",
          [](const BoundFrame& self, const data::ColumnText& text) {
            parsing::OracleRows rows;
            watched(
                [&](const Monitor& monitor) {
                  rows = parsing::oracle_rows(self.frame, text, self.trees, monitor);
                },
                nullptr);
            return nb::typed<nb::tuple, Table, Table>(
                nb::make_tuple(as_table(std::move(rows.moves)), as_table(std::move(rows.arcs))));
          },
          nb::arg("text"))
      .def("parse", &parse_with, nb::arg("moves"), nb::arg("arcs"), nb::arg("text"), nb::kw_only(),
           nb::arg("threads"))
      .def("decisions", &decisions_with, nb::arg("moves"), nb::arg("arcs"), nb::arg("text"));
}

void bind_trainer(nb::module_& module) {
  nb::class_<Trainer>(module, "OnlineTrainer")
      .def(
          "__init__",
          [](Trainer* self, const BoundFrame& bound, const data::ColumnText& text, int degree,
             int label_degree, std::uint32_t minimum_updates, int gold_epochs, double exploration,
             std::uint64_t seed) {
            new (self) Trainer(bound.frame, text, bound.trees,
                               {degree, label_degree, minimum_updates, gold_epochs, exploration, seed});
          },
          nb::arg("frame"), nb::arg("text"), nb::kw_only(), nb::arg("degree"), nb::arg("label_degree"),
          nb::arg("minimum_updates"), nb::arg("gold_epochs"), nb::arg("exploration"), nb::arg("seed"),
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("run_epoch",
           [](Trainer& self) {
             parsing::EpochCounts counts;
             watched([&](const Monitor& monitor) { counts = self.run_epoch(monitor); }, nullptr);
             return nb::typed<nb::tuple, int, int, int, int>(
                 nb::make_tuple(counts.moves, counts.wrong_moves, counts.arcs, counts.wrong_labels));
           })
      .def(
          "parse",
          [](Trainer& self, const data::ColumnText& text) {
            parsing::Parsed parsed;
            watched([&](const Monitor& monitor) { parsed = self.parse(text, monitor); }, nullptr);
            return as_tuple(std::move(parsed));
          },
          nb::arg("text"))
      .def(
          "move_weights", [](const Trainer& self, std::size_t part) { return averages(self.moves(), part); },
          nb::arg("part"))
      .def(
          "arc_weights", [](const Trainer& self, std::size_t part) { return averages(self.arcs(), part); },
          nb::arg("part"));
  module.def("mean_weights", &mean_weights, nb::arg("runs"), nb::kw_only(), nb::arg("degree"),
             nb::arg("classes"));
}

}  // namespace

void bind_arc_eager(nb::module_& module) {
  bind_frame(module);
  bind_trainer(module);
}

}  // namespace unkernel::bindings
