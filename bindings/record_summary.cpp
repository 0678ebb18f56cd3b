#include "record_summary.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "arrow_stream.hpp"
#include "bindings.hpp"

namespace unkernel::bindings {
namespace {

PyObject* find_python_type(records::ArrowType type) {
  switch (type) {
    case records::ArrowType::truth: return reinterpret_cast<PyObject*>(&PyBool_Type);
    case records::ArrowType::integer: return reinterpret_cast<PyObject*>(&PyLong_Type);
    case records::ArrowType::real: return reinterpret_cast<PyObject*>(&PyFloat_Type);
    case records::ArrowType::list: return reinterpret_cast<PyObject*>(&PyList_Type);
    case records::ArrowType::moment: return nb::module_::import_("datetime").attr("date").ptr();
    default: return reinterpret_cast<PyObject*>(&PyUnicode_Type);
  }
}

// Summarizes a column: an array of float64, a stream of Arrow arrays, or a list of Python objects.
std::unique_ptr<Summary> summarize(nb::handle column, const std::string& name, bool as_numbers) {
  auto summary = std::make_unique<Summary>(name);
  Array<double> numbers;
  if (nb::hasattr(column, "__arrow_c_stream__")) {
    ArrowStream stream(nb::cast<nb::capsule>(column.attr("__arrow_c_stream__")()));
    PyObject* type = find_python_type(records::arrow_type(stream.schema()));
    while (const ArrowBatch batch = stream.next())
      summary->add_cells(records::arrow_column(stream.schema(), batch->value),
                         static_cast<std::size_t>(batch->value.length), type);
  } else if (nb::try_cast<Array<double>>(column, numbers, false)) {
    summary->add_numbers(view(numbers));
  } else {
    summary->add_objects(nb::cast<nb::list>(column), as_numbers);
  }
  return summary;
}

// Summarizes the columns of a table that is a stream of Arrow batches. A column whose name is None is
// skipped.
nb::list summarize_stream(const nb::capsule& capsule, const nb::list& names) {
  ArrowStream stream(capsule);
  const records::ArrowSchema& schema = stream.schema();
  if (static_cast<std::size_t>(schema.n_children) != names.size())
    throw std::invalid_argument("the table has another number of columns than names");
  std::vector<std::unique_ptr<Summary>> all;
  for (const nb::handle name : names)
    all.push_back(name.is_none() ? nullptr : std::make_unique<Summary>(nb::cast<std::string>(name)));
  while (const ArrowBatch batch = stream.next()) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k] == nullptr) continue;
      const std::string name = nb::cast<std::string>(names[k]);
      const records::ArrowSchema& child_schema = *schema.children[k];
      const std::vector<records::Column> column =
          records::arrow_columns(schema, batch->value, std::array{&name});
      all[k]->add_cells(column[0], static_cast<std::size_t>(batch->value.length),
                        find_python_type(records::arrow_type(child_schema)));
    }
  }
  nb::list list;
  for (std::unique_ptr<Summary>& summary : all)
    list.append(summary == nullptr ? nb::object(nb::none()) : nb::cast(std::move(summary)));
  return list;
}

}  // namespace

void bind_record_summaries(nb::module_& module) {
  nb::class_<Summary>(module, "ColumnSummary")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def_prop_ro("types", &Summary::types)
      .def_prop_ro("not_numbers", &Summary::not_numbers)
      .def_prop_ro("not_a_date", &Summary::not_a_date)
      .def("date_part_differs", &Summary::date_part_differs, nb::arg("part"))
      .def("date_edges", &Summary::date_edges, nb::arg("part"), nb::arg("n_bins"))
      .def("state", &Summary::state, nb::arg("most"),
           nb::sig("def state(self, most: int) -> dict[str, object]"))
      .def("join", &Summary::join, nb::arg("state"), nb::arg("most"),
           nb::sig("def join(self, state: dict[str, object], most: int) -> None"))
      .def_prop_ro("item_problem", &Summary::item_problem)
      .def_prop_ro("text_counts", &Summary::text_counts)
      .def(
          "holds_texts",
          [](const Summary& self, std::size_t rows) { return self.text_column(rows).has_value(); },
          nb::arg("rows"))
      .def_prop_ro("has_infinity", &Summary::has_infinity)
      .def_prop_ro("is_whole", &Summary::is_whole)
      .def("counted_numbers", &Summary::counted_numbers,
           nb::sig("def counted_numbers(self) -> tuple[numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.int64], int]"))
      .def("frequent_texts", &Summary::frequent_texts, nb::arg("min_count"))
      .def("frequent_items", &Summary::frequent_items, nb::arg("min_count"))
      .def("frequent_words", &Summary::frequent_words, nb::arg("table"), nb::arg("analyzer"),
           nb::arg("min_count"),
           nb::sig("def frequent_words(self, table: dict[str, object], analyzer: "
                   "collections.abc.Callable[[str], list[str]], min_count: int) -> list[str]"))
      .def("frequent_numbers", &Summary::frequent_numbers, nb::arg("min_count"))
      .def("edges", &Summary::edges, nb::arg("n_bins"));
  module.def("summarize", &summarize, nb::arg("column"), nb::arg("name"), nb::arg("as_numbers"));
  module.def(
      "summarize_stream", &summarize_stream, nb::arg("stream"), nb::arg("names"),
      nb::sig("def summarize_stream(stream: object, names: list[str | None]) -> list[ColumnSummary | None]"));
}

}  // namespace unkernel::bindings
