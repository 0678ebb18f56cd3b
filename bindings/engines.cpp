#include <nanobind/stl/string.h>

#include <string>

#include "bindings.hpp"
#include "unkernel/engines/conjunction_engine.hpp"

namespace unkernel::bindings {

engines::FeatureMap feature_map(int degree, const std::string& kind, double gamma, double coef0) {
  using Kind = engines::FeatureMap::Kind;
  if (kind != "kernel" && kind != "plain") throw std::invalid_argument("feature_map must be 'kernel' or 'plain'");
  return {degree, kind == "kernel" ? Kind::kernel : Kind::plain, gamma, coef0};
}

namespace {

using engines::ConjunctionEngine;

template <class Index>
nb::ndarray<nb::numpy, double> score(const ConjunctionEngine& engine, Array<Index> offsets, Array<Index> columns,
                                     Array<double> values, int threads) {
  const auto rows = csr_view(offsets, columns, values, engine.features());
  std::vector<double> out(static_cast<std::size_t>(rows.rows()) * engine.scores());
  {
    const nb::gil_scoped_release unlocked;
    engine.score(rows, out, threads);
  }
  return to_numpy(std::move(out), {static_cast<std::size_t>(rows.rows()), engine.scores()});
}

}  // namespace

void bind_engines(nb::module_& module) {
  nb::class_<ConjunctionEngine>(module, "ConjunctionEngine")
      .def("__init__",
           [](ConjunctionEngine* self, bool sets, int degree, const std::string& map, double gamma, double coef0,
              std::int64_t features, Array<std::int64_t> columns, Array<std::uint64_t> keys, Array<double> weights,
              Array<double> constants) {
             const nb::gil_scoped_release unlocked;
             new (self) ConjunctionEngine({sets ? engines::Basis::sets : engines::Basis::monomials,
                                           feature_map(degree, map, gamma, coef0), features, view(columns), view(keys),
                                           view(weights), view(constants)});
           },
           nb::kw_only(), nb::arg("sets"), nb::arg("degree"), nb::arg("map"), nb::arg("gamma"), nb::arg("coef0"),
           nb::arg("features"), nb::arg("columns"), nb::arg("keys"), nb::arg("weights"), nb::arg("constants"))
      .def_prop_ro("nbytes", &ConjunctionEngine::bytes)
      .def("score", &score<std::int32_t>, nb::arg("offsets"), nb::arg("columns"), nb::arg("values"), nb::arg("threads"))
      .def("score", &score<std::int64_t>, nb::arg("offsets"), nb::arg("columns"), nb::arg("values"), nb::arg("threads"));
}

}  // namespace unkernel::bindings
