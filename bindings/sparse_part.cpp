// One part of the rows of a sparse model, for training on a cluster.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <memory>
#include <tuple>

#include "bindings.hpp"
#include "named_values.hpp"
#include "sparse_options.hpp"
#include "unkernel/poly/sparse_part.hpp"

namespace unkernel::bindings {
namespace {

using poly::SparsePart;
using Flags = Array<std::uint8_t>;

constexpr Named<poly::SparseLoss> sparse_losses[] = {{"squared_hinge", poly::SparseLoss::squared_hinge},
                                                     {"logistic", poly::SparseLoss::logistic},
                                                     {"squared_error", poly::SparseLoss::squared_error},
                                                     {"poisson", poly::SparseLoss::poisson}};

std::unique_ptr<SparsePart> make_sparse_part(const poly::DistinctRows& rows, nb::object python_options,
                                             const kernels::FeatureMap& map,
                                             std::vector<double> class_weights, std::int64_t problem) {
  const poly::SparseOptions options =
      read_sparse_options(Options(python_options), map, std::move(class_weights));
  auto part =
      run_interruptibly([&](Monitor&) { return std::make_unique<SparsePart>(rows, options, problem); });
  return part;
}

auto propose(SparsePart& part, Array<double> gradients, Array<double> curvatures, double damping,
             std::int64_t steps) {
  auto weights = run_interruptibly([&](Monitor& monitor) {
    return part.propose({view(gradients), view(curvatures), damping}, steps, monitor);
  });
  return to_numpy(std::move(weights));
}

auto compute_feature_bounds(const SparsePart& part, std::size_t output) {
  auto result = run_interruptibly([&](Monitor& monitor) { return part.feature_bounds(output, monitor); });
  return std::tuple(to_numpy(std::move(result.sums)), to_numpy(std::move(result.bounds)));
}

auto compute_bucket_bounds(const SparsePart& part, std::size_t output, Flags features, Flags pair_buckets,
                           std::size_t buckets) {
  auto result = run_interruptibly([&](Monitor& monitor) {
    return part.bucket_bounds(output, {view(features), view(pair_buckets)}, buckets, monitor);
  });
  return std::tuple(to_numpy(std::move(result.largest)), to_numpy(std::move(result.smallest)),
                    to_numpy(std::move(result.below)));
}

auto sum_in_buckets(const SparsePart& part, std::size_t output, Flags features, Flags pair_buckets,
                    Flags wanted) {
  auto result = run_interruptibly([&](Monitor& monitor) {
    return part.sums_in_buckets(output, {view(features), view(pair_buckets)}, view(wanted), monitor);
  });
  return std::tuple(to_numpy(std::move(result.keys)), to_numpy(std::move(result.sums)));
}

auto list_occurring(const SparsePart& part) {
  auto result = run_interruptibly([&](Monitor& monitor) { return part.occurring(monitor); });
  return to_numpy(std::move(result));
}

}  // namespace

poly::SparseOptions read_sparse_options(const Options& python_options, const kernels::FeatureMap& map,
                                        std::vector<double>&& class_weights) {
  return {map,
          find_value(sparse_losses, python_options.text("loss"), "loss must be"),
          {python_options.real("l1"), python_options.real("l2")},
          python_options.real("C"),
          std::move(class_weights),
          to_vector(python_options.array<double>("targets")),
          python_options.real("epsilon"),
          python_options.real("memory"),
          python_options.real("tolerance"),
          python_options.integer<std::int64_t>("max_steps"),
          python_options.integer<std::uint64_t>("seed"),
          python_options.integer<int>("threads")};
}

void bind_sparse_part(nb::module_& module) {
  nb::class_<SparsePart>(module, "SparsePart", "One part of the rows of a sparse model.")
      .def(nb::new_(&make_sparse_part), nb::arg("rows"), nb::arg("options"), nb::kw_only(),
           nb::arg("feature_map"), nb::arg("class_weights"), nb::arg("problem"), nb::keep_alive<0, 1>())
      .def_prop_ro("outputs", &SparsePart::outputs)
      .def_prop_ro("columns", &SparsePart::columns)
      .def(
          "use",
          [](SparsePart& self, Array<std::uint64_t> keys) {
            run_interruptibly([&](Monitor&) { self.use(view(keys)); });
          },
          nb::arg("keys"))
      .def(
          "move_to",
          [](SparsePart& self, Array<double> weights) {
            run_interruptibly([&](Monitor&) { self.move_to(view(weights)); });
          },
          nb::arg("weights"))
      .def("loss", &SparsePart::loss)
      .def("gradients", [](const SparsePart& self) { return to_numpy(self.gradients()); })
      .def("curvatures", [](const SparsePart& self) { return to_numpy(self.curvatures()); })
      .def(
          "duals",
          [](const SparsePart& self, Array<double> scales) { return to_numpy(self.duals(view(scales))); },
          nb::arg("scales"))
      .def(
          "losses_along",
          [](const SparsePart& self, Array<double> direction, Array<double> steps) {
            return to_numpy(self.losses_along(view(direction), view(steps)));
          },
          nb::arg("direction"), nb::arg("steps"))
      .def(
          "hessian_product",
          [](const SparsePart& self, Array<double> direction) {
            return to_numpy(self.hessian_product(view(direction)));
          },
          nb::arg("direction"))
      .def("propose", &propose, nb::arg("gradients"), nb::arg("curvatures"), nb::arg("damping"),
           nb::arg("steps"))
      .def("feature_bounds", &compute_feature_bounds, nb::arg("output"))
      .def("bucket_bounds", &compute_bucket_bounds, nb::arg("output"), nb::arg("features"),
           nb::arg("pair_buckets"), nb::arg("buckets"))
      .def("sums_in_buckets", &sum_in_buckets, nb::arg("output"), nb::arg("features"),
           nb::arg("pair_buckets"), nb::arg("wanted"))
      .def("occurring", &list_occurring);

  module.def(
      "conjunction_constants",
      [](const kernels::FeatureMap& map, bool binary, bool l1, Array<std::uint64_t> keys) {
        const auto equal = l1 ? poly::EqualColumns::largest_counts : poly::EqualColumns::all_count;
        return to_numpy(poly::conjunction_constants(map, binary, equal, view(keys)));
      },
      nb::arg("feature_map"), nb::kw_only(), nb::arg("binary"), nb::arg("l1"), nb::arg("keys"));
}

}  // namespace unkernel::bindings
