// Reads and writes rows in the svmlight format.
#include <string_view>
#include <utility>
#include <variant>

#include "bindings.hpp"
#include "csr_rows.hpp"
#include "unkernel/data/rows/svmlight.hpp"

namespace unkernel::bindings {
namespace {

using ArrayTuple = nb::typed<nb::tuple, nb::any, nb::ellipsis>;

ArrayTuple to_tuple(data::SvmlightArrays&& arrays) {
  return std::visit(
      [&](auto& rows) -> ArrayTuple {
        return ArrayTuple(nb::make_tuple(to_numpy(std::move(rows.offsets)), to_numpy(std::move(rows.columns)),
                                         to_numpy(std::move(arrays.values)),
                                         to_numpy(std::move(arrays.labels)),
                                         to_numpy(std::move(arrays.queries))));
      },
      arrays.rows);
}

void bind_parser(nb::module_& module) {
  using data::SvmlightParser;
  nb::class_<SvmlightParser>(module, "SvmlightParser")
      .def(
          "__init__",
          [](SvmlightParser* self, std::string file, int threads, std::size_t piece_bytes,
             std::int64_t smallest, std::int64_t largest) {
            new (self) SvmlightParser(std::move(file), {threads, piece_bytes}, {smallest, largest});
          },
          nb::arg("file"), nb::arg("threads"), nb::arg("piece_bytes"), nb::arg("smallest_index"),
          nb::arg("largest_index"))
      .def(
          "feed",
          [](SvmlightParser& self, const nb::bytes& block) {
            const std::string_view text = view(block);
            const Unlocked unlocked;
            self.feed(text);
          },
          nb::arg("block"))
      .def("finish", &SvmlightParser::finish, nb::call_guard<Unlocked>())
      .def(
          "take",
          [](SvmlightParser& self, std::int64_t first_index) {
            auto arrays = without_lock([&] { return self.take(first_index); });
            return to_tuple(std::move(arrays));
          },
          nb::arg("first_index"))
      .def("take_part",
           [](SvmlightParser& self) {
             auto arrays = without_lock([&] { return self.take_part(); });
             return to_tuple(std::move(arrays));
           })
      .def_prop_ro("lines", [](const SvmlightParser& self) { return self.counts().lines; })
      .def_prop_ro("rows", [](const SvmlightParser& self) { return self.counts().rows; })
      .def_prop_ro("comments", [](const SvmlightParser& self) { return self.counts().comments; })
      .def_prop_ro("ignored_fields", [](const SvmlightParser& self) { return self.counts().ignored_fields; })
      .def_prop_ro("has_zero_index", [](const SvmlightParser& self) { return self.counts().has_zero_index; })
      .def_prop_ro("largest_index", [](const SvmlightParser& self) { return self.counts().largest_index; })
      .def_prop_ro("largest_index_line",
                   [](const SvmlightParser& self) { return self.counts().largest_index_line; });
}

nb::bytes format_rows(const CsrRows& rows, const Array<double>& labels, const Array<std::int64_t>& queries,
                      std::int64_t first_index, std::int64_t begin, std::int64_t end) {
  data::GrowingArray<char> text;
  rows.visit_unchecked([&]<class Index>(const data::CsrView<Index, double>& matrix) {
    const Unlocked unlocked;
    const data::SvmlightRows<Index> labelled{view(labels), view(queries), matrix, first_index};
    text = data::format_svmlight(labelled, begin, end);
  });
  return to_bytes({text.data(), text.size()});
}

}  // namespace

void bind_data(nb::module_& module) {
  bind_parser(module);
  module.def("format_svmlight", &format_rows, nb::arg("rows"), nb::arg("labels"), nb::arg("queries"),
             nb::arg("first_index"), nb::arg("begin"), nb::arg("end"));
}

}  // namespace unkernel::bindings
