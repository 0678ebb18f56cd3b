// Texts with columns: treebanks and chunked corpora. Parsers read `data::ColumnText`.
#include "bindings.hpp"

#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "named_values.hpp"
#include "unkernel/data/text/column_text.hpp"
#include "unkernel/data/text/name_table.hpp"

namespace unkernel::bindings {
namespace {

using data::ColumnText;

constexpr Named<data::ColumnFormat> formats[] = {{"conllu", data::ColumnFormat::conllu},
                                                 {"conllx", data::ColumnFormat::conllx},
                                                 {"chunks", data::ColumnFormat::chunks}};
constexpr Named<data::TreeCheck> tree_checks[] = {
    {"none", data::TreeCheck::none}, {"forest", data::TreeCheck::forest}, {"tree", data::TreeCheck::tree}};

data::ColumnFormat parse_format(const std::string& name) {
  return find_value(formats, name, "the format must be");
}

data::TreeCheck parse_tree_check(const std::string& name) {
  return find_value(tree_checks, name, "the check of trees must be");
}

std::int64_t check_index(std::int64_t number, std::int64_t count, const char* what) {
  if (number >= 0 && number < count) return number;
  throw std::out_of_range(std::string(what) + " " + std::to_string(number) + " of " + std::to_string(count));
}

int check_column(const ColumnText& text, int column) {
  return static_cast<int>(check_index(column, text.columns(), "column"));
}

// Returns an array over the memory of the text, and keeps the text alive as long as the array.
template <class T>
nb::ndarray<nb::numpy, const T> share(std::span<const T> values, nb::handle owner) {
  return nb::ndarray<nb::numpy, const T>(values.data(), {values.size()}, owner);
}

data::ColumnOptions make_options(const std::string& format, int columns, const std::string& trees,
                                 bool skip_bad_sentences, std::int64_t first_line) {
  return {parse_format(format), columns, parse_tree_check(trees), skip_bad_sentences, first_line};
}

void create(ColumnText* self, const nb::bytes& text, std::string file, const data::ColumnOptions& options) {
  const std::string_view bytes = view(text);
  const Unlocked unlocked;
  new (self) ColumnText(std::string(bytes), std::move(file), options);
}

using State = std::tuple<nb::bytes, std::string, std::string, int, std::string, bool, std::int64_t>;

State save_state(const ColumnText& text) {
  const data::ColumnOptions& options = text.options();
  return {to_bytes(text.text()),
          text.file(),
          find_name(formats, options.format),
          options.columns,
          find_name(tree_checks, options.trees),
          options.skip_bad_sentences,
          options.first_line};
}

void restore_state(ColumnText& self, const State& state) {
  const auto& [text, file, format, columns, trees, skip_bad_sentences, first_line] = state;
  create(&self, text, file, make_options(format, columns, trees, skip_bad_sentences, first_line));
}

// Returns the fields of a column for the tokens from `begin` to `end`.
nb::typed<nb::list, nb::str> list_fields(const ColumnText& text, int column, std::int64_t begin,
                                         std::int64_t end) {
  check_column(text, column);
  check_index(end, text.tokens() + 1, "the end at token");
  check_index(begin, end + 1, "the begin at token");
  nb::typed<nb::list, nb::str> list;
  for (std::int64_t token = begin; token < end; ++token) {
    const std::string_view field = text.field(token, column);
    list.append(nb::str(field.data(), field.size()));
  }
  return list;
}

// Returns the number of each token's string, and the distinct strings of the column in order of appearance.
auto number_strings(const ColumnText& text, int column) {
  check_column(text, column);
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(text.tokens()));
  data::NameTable names;
  {
    const Unlocked unlocked;
    for (std::size_t token = 0; token < numbers.size(); ++token) {
      numbers[token] = names.add(text.field(static_cast<std::int64_t>(token), column));
    }
  }
  return nb::typed<nb::tuple, nb::any, Names>(nb::make_tuple(to_numpy(std::move(numbers)), names_of(names)));
}

// Returns an exception for each bad sentence.
nb::typed<nb::list, nb::any> list_errors(const ColumnText& text) {
  const nb::object type = nb::module_::import_("unkernel.errors").attr("FormatError");
  nb::typed<nb::list, nb::any> list;
  for (std::size_t i = 0; i < text.skipped().size(); ++i) {
    const FormatError error = text.why_skipped(i);
    list.append(type(error.file, error.line, error.column, error.reason));
  }
  return list;
}

ColumnText replace_trees(const ColumnText& text, const Array<std::int32_t>& heads,
                         const Array<std::int32_t>& relations, const std::vector<std::string>& names) {
  return without_lock([&] { return data::replace_trees(text, view(heads), {view(relations), names}); });
}

ColumnText replace_column(const ColumnText& text, int column, const Array<std::int32_t>& values,
                          const std::vector<std::string>& names) {
  return without_lock([&] { return data::replace_column(text, column, {view(values), names}); });
}

// The number of a column, the values of its words, and the names of the values.
using NamedValues = std::tuple<int, Array<std::int32_t>, std::vector<std::string>>;

ColumnText replace_columns(const ColumnText& text, const std::vector<NamedValues>& columns) {
  std::vector<data::ColumnValues> column_values;
  for (const auto& [column, values, names] : columns)
    column_values.push_back({column, {view(values), names}});
  return without_lock([&] { return data::replace_columns(text, column_values); });
}

void bind_positions(nb::class_<ColumnText>& type) {
  type.def(
          "first_token",
          [](const ColumnText& text, std::int64_t s) {
            return text.first_token(check_index(s, text.sentences() + 1, "sentence"));
          },
          nb::arg("sentence"))
      .def(
          "line",
          [](const ColumnText& text, std::int64_t token) {
            return text.line(check_index(token, text.tokens(), "token"));
          },
          nb::arg("token"))
      .def(
          "sentence_line",
          [](const ColumnText& text, std::int64_t s) {
            return text.sentence_line(check_index(s, text.sentences(), "sentence"));
          },
          nb::arg("sentence"))
      .def(
          "sentence_text",
          [](const ColumnText& text, std::int64_t s) {
            return to_bytes(text.sentence_text(check_index(s, text.sentences(), "sentence")));
          },
          nb::arg("sentence"))
      .def(
          "fault",
          [](const ColumnText& text, std::int64_t token, int column, const std::string& reason) {
            throw text.fault(check_index(token, text.tokens(), "token"), check_column(text, column), reason);
          },
          nb::arg("token"), nb::arg("column"), nb::arg("reason"));
}

}  // namespace

void bind_columns(nb::module_& module) {
  nb::class_<ColumnText> type(module, "ColumnText");
  type.def(
          "__init__",
          [](ColumnText* self, const nb::bytes& text, std::string file, const std::string& format,
             int columns, const std::string& trees, bool skip_bad_sentences, std::int64_t first_line) {
            create(self, text, std::move(file),
                   make_options(format, columns, trees, skip_bad_sentences, first_line));
          },
          nb::arg("text"), nb::arg("file"), nb::arg("format"), nb::arg("columns"), nb::arg("trees"),
          nb::arg("skip_bad_sentences"), nb::arg("first_line"))
      .def("__getstate__", &save_state)
      .def("__setstate__", &restore_state)
      .def_prop_ro("text", [](const ColumnText& text) { return to_bytes(text.text()); })
      .def_prop_ro("file", &ColumnText::file)
      .def_prop_ro("format", [](const ColumnText& text) { return find_name(formats, text.format()); })
      .def_prop_ro("columns", &ColumnText::columns)
      .def_prop_ro("trees",
                   [](const ColumnText& text) { return find_name(tree_checks, text.options().trees); })
      .def_prop_ro("skip_bad_sentences",
                   [](const ColumnText& text) { return text.options().skip_bad_sentences; })
      .def_prop_ro("first_line", &ColumnText::first_line)
      .def_prop_ro("sentences", &ColumnText::sentences)
      .def_prop_ro("tokens", &ColumnText::tokens)
      .def_prop_ro("first_tokens",
                   [](nb::handle_t<ColumnText> self) {
                     return share(nb::cast<const ColumnText&>(self).first_tokens(), self);
                   })
      .def_prop_ro("heads",
                   [](nb::handle_t<ColumnText> self) {
                     return share(nb::cast<const ColumnText&>(self).heads(), self);
                   })
      .def("fields", &list_fields, nb::arg("column"), nb::arg("begin"), nb::arg("end"))
      .def("symbols", &number_strings, nb::arg("column"))
      .def("skipped", &list_errors)
      .def(
          "check_trees",
          [](const ColumnText& text, const std::string& check) { text.check_trees(parse_tree_check(check)); },
          nb::arg("check"), nb::call_guard<Unlocked>())
      .def("replace_trees", &replace_trees, nb::arg("heads"), nb::arg("relations"), nb::arg("names"))
      .def("replace_column", &replace_column, nb::arg("column"), nb::arg("values"), nb::arg("names"))
      .def("replace_columns", &replace_columns, nb::arg("columns"));
  bind_positions(type);
  module.def(
      "whole_sentences",
      [](const nb::bytes& text, const std::string& format) {
        return data::size_of_whole_sentences(view(text), parse_format(format));
      },
      nb::arg("text"), nb::arg("format"));
}

}  // namespace unkernel::bindings
