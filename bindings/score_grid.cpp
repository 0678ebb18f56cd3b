// Counts rows by rank on a grid of their scores, for rankings on a cluster.
#include "unkernel/cutplane/score_grid.hpp"

#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "options.hpp"

namespace unkernel::bindings {
namespace {

using cutplane::RowsOnGrid;

cutplane::ScoreGrid read_grid(const Options& options) {
  return {options.real("centre"), options.real("width"), options.integer<std::int64_t>("cells"),
          options.integer<std::int64_t>("levels")};
}

}  // namespace

void bind_score_grid(nb::module_& module) {
  nb::class_<RowsOnGrid>(module, "RowsOnGrid", "Counts rows by rank on a grid of their scores.")
      .def(
          "__init__",
          [](RowsOnGrid* self, Array<std::int32_t> ranks, std::int32_t rank_count, Array<double> weights) {
            new (self) RowsOnGrid(to_vector(ranks), rank_count, to_vector(weights));
          },
          nb::arg("ranks"), nb::kw_only(), nb::arg("rank_count"), nb::arg("weights"))
      .def(
          "count",
          [](const RowsOnGrid& self, Array<double> current, Array<double> proposed, double step,
             nb::object grid, int threads) {
            const cutplane::ScoreGrid edges = read_grid(Options(grid));
            auto result = without_lock(
                [&] { return self.count({view(current), view(proposed), step}, edges, threads); });
            return nb::typed<nb::tuple, std::int64_t, nb::any, nb::any>(nb::make_tuple(
                result.outside, to_numpy(std::move(result.weights)), to_numpy(std::move(result.changes))));
          },
          nb::arg("here"), nb::arg("there"), nb::arg("step"), nb::arg("grid"), nb::arg("threads"),
          "The number of rows outside of the grid; the weights of rows, and their changes, by rank and edge.")
      .def(
          "interpolate",
          [](const RowsOnGrid& self, Array<double> current, Array<double> proposed, double step,
             nb::object grid, Array<double> table, int threads) {
            const cutplane::ScoreGrid edges = read_grid(Options(grid));
            auto result = without_lock([&] {
              return self.interpolate({view(current), view(proposed), step}, edges, view(table), threads);
            });
            return to_numpy(std::move(result));
          },
          nb::arg("here"), nb::arg("there"), nb::arg("step"), nb::arg("grid"), nb::arg("table"),
          nb::arg("threads"), "A table at the score of each row, times the row's weight.");
}

}  // namespace unkernel::bindings
