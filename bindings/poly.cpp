// Learners on conjunctions of features: distinct rows, training, updates and mapped rows.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "bindings.hpp"
#include "csr_rows.hpp"
#include "named_values.hpp"
#include "options.hpp"
#include "sparse_options.hpp"
#include "tables.hpp"
#include "unkernel/poly/mapped_rows.hpp"
#include "unkernel/poly/sparse_train.hpp"
#include "unkernel/poly/train.hpp"
#include "unkernel/poly/update.hpp"
#include "unkernel/poly/weight_curvatures.hpp"

namespace unkernel::bindings {
namespace {

using poly::DistinctRows;
using poly::MappedRows;
using poly::Storage;
using poly::Trained;

DistinctRows find_distinct(const CsrRows& rows, Array<std::int32_t> classes, Array<double> weights,
                           bool merge_classes, int threads) {
  return rows.visit([&](const auto& matrix) {
    if (static_cast<std::int64_t>(classes.size()) != matrix.rows() ||
        (weights.size() > 0 && weights.size() != classes.size())) {
      throw std::invalid_argument("labels, weights and rows differ in number");
    }
    const Unlocked unlocked;
    return poly::distinct_examples(matrix, view(classes), view(weights),
                                   merge_classes ? poly::Merge::rows : poly::Merge::examples, threads);
  });
}

constexpr Named<Storage> storages[] = {{"auto", Storage::automatic},
                                       {"on_the_fly", Storage::on_the_fly},
                                       {"condensed", Storage::condensed},
                                       {"split", Storage::split},
                                       {"kernel", Storage::kernel}};
constexpr Named<solve::Finish> named_finishes[] = {{"auto", solve::Finish::automatic},
                                                   {"sweeps", solve::Finish::sweeps},
                                                   {"kernel_space", solve::Finish::kernel_space},
                                                   {"second_order", solve::Finish::second_order}};
constexpr Named<solve::Loss> losses[] = {{"hinge", solve::Loss::hinge},
                                         {"squared_hinge", solve::Loss::squared_hinge}};

Storage read_storage(const Options& options) {
  return find_value(storages, options.text("storage"), "storage must be");
}

bool is_logistic(const Options& python_options) { return python_options.text("loss") == "logistic"; }
bool is_likelihood(const Options& python_options) {
  return is_logistic(python_options) || python_options.text("loss") == "poisson";
}

poly::TrainOptions read_train_options(const Options& python_options, const kernels::FeatureMap& map,
                                      std::vector<double>&& class_weights) {
  return {map,
          is_likelihood(python_options) ? solve::Loss::hinge
                                        : find_value(losses, python_options.text("loss"), "loss must be"),
          python_options.real("C"),
          std::move(class_weights),
          read_storage(python_options),
          python_options.real("memory"),
          python_options.real("tolerance"),
          find_value(named_finishes, python_options.text("finish"), "finish must be"),
          python_options.integer<std::int64_t>("max_epochs"),
          python_options.integer<std::uint64_t>("seed"),
          python_options.integer<int>("threads")};
}

Trained train(const DistinctRows& examples, const poly::TrainOptions& options, bool logistic,
              Array<std::uint64_t> start_hashes, Array<double> start_duals, const OnProgress& on_progress) {
  Trained trained;
  const poly::WarmStart start{view(start_hashes), view(start_duals)};
  run_interruptibly(
      [&](Monitor& monitor) {
        trained = logistic ? poly::train_logistic(examples, options, start, monitor)
                           : poly::train(examples, options, start, monitor);
      },
      on_progress);
  return trained;
}

void check_targets(const DistinctRows& examples, std::size_t targets) {
  const auto codes = static_cast<std::int32_t>(targets);
  if (std::ranges::any_of(examples.labels, [&](const auto& label) { return label.code >= codes; }))
    throw std::invalid_argument("there are fewer targets than codes");
}

// Trains regression with an epsilon-insensitive loss, which is squared if the loss of the options is.
Trained train_regression(const DistinctRows& examples, poly::TrainOptions&& options, double epsilon,
                         const poly::Regression& regression, Array<std::uint64_t> start_hashes,
                         Array<double> start_duals, const OnProgress& on_progress) {
  options.loss = solve::Loss::insensitive(epsilon, options.loss.squared);
  check_targets(examples, regression.targets.size());
  const poly::WarmStart start{view(start_hashes), view(start_duals)};
  return run_interruptibly(
      [&](Monitor& monitor) { return poly::train_regression(examples, options, regression, start, monitor); },
      on_progress);
}

Trained train_poisson(const DistinctRows& examples, const poly::TrainOptions& options, Array<double> targets,
                      Array<std::uint64_t> start_hashes, Array<double> start_duals,
                      const OnProgress& on_progress) {
  check_targets(examples, targets.size());
  const poly::WarmStart start{view(start_hashes), view(start_duals)};
  return run_interruptibly(
      [&](Monitor& monitor) { return poly::train_poisson(examples, options, view(targets), start, monitor); },
      on_progress);
}

// The model that an update starts from. The arrays belong to the Python object.
struct OldArrays {
  explicit OldArrays(const Options& model)
      : keys(model.array<std::uint64_t>("keys")),
        weights(model.array<double>("weights")),
        intercept(model.array<double>("intercept")),
        intercept_curvatures(model.array<double>("intercept_curvatures")),
        feature_curvatures(model.array<double>("feature_curvatures")),
        conjunction_curvatures(model.array<double>("conjunction_curvatures")),
        feature_slopes(model.array<double>("feature_slopes")),
        kept(model.real("kept")) {}

  poly::OldModel view_arrays() const {
    return {view(keys),
            view(weights),
            view(intercept),
            view(intercept_curvatures),
            view(feature_curvatures),
            view(conjunction_curvatures),
            view(feature_slopes),
            kept};
  }

  Array<std::uint64_t> keys;
  Array<double> weights, intercept, intercept_curvatures, feature_curvatures, conjunction_curvatures,
      feature_slopes;
  double kept;
};

void check_targets(const DistinctRows& examples, const poly::SparseOptions& options) {
  if (poly::is_regression(options.loss)) check_targets(examples, options.targets.size());
}

Trained train_sparse(const DistinctRows& examples, const poly::SparseOptions& options,
                     Array<std::uint64_t> start_keys, Array<double> start_weights,
                     Array<double> start_intercept, const OnProgress& on_progress) {
  check_targets(examples, options);
  const poly::SparseStart start{view(start_keys), view(start_weights), view(start_intercept)};
  if (!start.intercept.empty() && start.intercept.size() != poly::score_count(options))
    throw std::invalid_argument("the start has other classes");
  if (start.weights.size() != start.keys.size() * start.intercept.size())
    throw std::invalid_argument("the start's weights do not fit its keys");
  auto trained = run_interruptibly(
      [&](Monitor& monitor) { return poly::train_sparse(examples, options, start, monitor); }, on_progress);
  return trained;
}

// Returns the curvatures of the intercepts, the features and the conjunctions, and the slopes of the
// features, in rows of scores.
auto to_python(poly::WeightCurvatures&& curvatures) {
  const std::size_t scores = curvatures.intercept.size();
  const std::size_t features = curvatures.features.size() / scores;
  const std::size_t conjunctions = curvatures.conjunctions.size() / scores;
  return std::tuple(to_numpy(std::move(curvatures.intercept)),
                    to_numpy(std::move(curvatures.features), {features, scores}),
                    to_numpy(std::move(curvatures.conjunctions), {conjunctions, scores}),
                    to_numpy(std::move(curvatures.slopes), {features, scores}));
}

auto compute_curvatures(const DistinctRows& examples, const poly::SparseOptions& options,
                        Array<std::uint64_t> keys, Array<double> scores) {
  check_targets(examples, options);
  auto curvatures = run_interruptibly([&](Monitor& monitor) {
    return poly::weight_curvatures(examples, options, view(keys), view(scores), monitor);
  });
  return to_python(std::move(curvatures));
}

poly::Updated update_model(const DistinctRows& examples, const poly::SparseOptions& options,
                           const OldArrays& model, const OnProgress& on_progress) {
  check_targets(examples, options);
  auto updated = run_interruptibly(
      [&](Monitor& monitor) { return poly::update_model(examples, options, model.view_arrays(), monitor); },
      on_progress);
  return updated;
}

nb::list list_outcomes(const Trained& trained) {
  nb::list outcomes;
  for (const solve::Outcome& outcome : trained.outcomes) {
    outcomes.append(nb::make_tuple(outcome.objective, outcome.dual_objective, outcome.epochs,
                                   outcome.converged, history_of(outcome.history)));
  }
  return outcomes;
}

nb::list list_finishes(const Trained& trained) {
  nb::list finishes;
  for (const solve::Outcome& outcome : trained.outcomes) {
    finishes.append(find_name(named_finishes, outcome.finish));
  }
  return finishes;
}

double find_largest_matrices(const Trained& trained) {
  double bytes = 0.0;
  for (const solve::Outcome& outcome : trained.outcomes) bytes = std::max(bytes, outcome.largest_matrices);
  return bytes;
}

// The result of training. numpy owns the arrays, so that models share their memory.
struct Solution {
  nb::typed<nb::list, nb::any> outcomes, finishes;  // one per problem
  double matrix_bytes = 0.0;
  std::string storage;
  std::size_t dimension = 0;
  nb::object keys, weights, intercept;
  nb::object duals = nb::none();  // rows x problems
};

Solution make_solution(Trained&& trained, std::size_t rows) {
  // There is no intercept with Storage::split, and a single outcome with softmax, so the larger number is
  // right.
  const std::size_t problems = std::max(trained.outcomes.size(), trained.intercept.size());
  const std::size_t conjunctions = trained.keys.size();
  Solution solution;
  solution.outcomes = list_outcomes(trained);
  solution.finishes = list_finishes(trained);
  solution.matrix_bytes = find_largest_matrices(trained);
  solution.storage = find_name(storages, trained.storage);
  solution.dimension = trained.dimension;
  solution.keys = nb::cast(to_numpy(std::move(trained.keys)));
  solution.weights = nb::cast(to_numpy(std::move(trained.weights), {conjunctions, problems}));
  solution.intercept = nb::cast(to_numpy(std::move(trained.intercept)));
  if (!trained.duals.empty()) {
    solution.duals = nb::cast(to_numpy(std::move(trained.duals), {rows, problems}));
  }
  return solution;
}

void bind_solution(nb::module_& module) {
  nb::class_<Solution>(module, "PolySolution", "The weights of conjunctions and how training ended.")
      .def_ro("outcomes", &Solution::outcomes)
      .def_ro("finishes", &Solution::finishes)
      .def_ro("matrix_bytes", &Solution::matrix_bytes)
      .def_ro("storage", &Solution::storage)
      .def_ro("dimension", &Solution::dimension)
      .def_ro("keys", &Solution::keys)
      .def_ro("weights", &Solution::weights)
      .def_ro("intercept", &Solution::intercept)
      .def_ro("duals", &Solution::duals,
              "The dual variables of the rows, or None if the solver has no dual variables.");
}

Table estimate_storage(const DistinctRows& examples, int degree, int problems, double memory) {
  poly::StorageEstimate sizes = poly::estimate_storage(examples, degree, problems);
  Table result;
  result["possible_columns"] = sizes.possible_columns;
  result["expected_columns"] = sizes.expected_columns;
  result["mapped_nonzeros"] = sizes.mapped_nonzeros;
  result["on_the_fly_bytes"] = sizes.on_the_fly_bytes;
  result["condensed_bytes"] = sizes.condensed_bytes;
  if (degree >= 2) {
    poly::estimate_kernel(examples, problems, sizes);
    result["kernel_bytes"] = sizes.kernel_bytes;
    result["kernel_pays"] = sizes.is_kernel_fastest;
  }
  if (poly::can_split(examples, make_feature_map(degree, "kernel", 1.0, 1.0))) {
    const poly::SplitPlan split = poly::plan_split(examples, degree, problems, memory);
    result["split_bytes"] = split.bytes;
    result["split_head"] = split.head;
    result["split_wide"] = split.has_wide_pairs;
  }
  return result;
}

poly::MapOptions read_map_options(const Options& python_options, const kernels::FeatureMap& map) {
  return {map, read_storage(python_options), python_options.real("memory"),
          python_options.integer<int>("threads")};
}

std::unique_ptr<MappedRows> map_rows(const DistinctRows& examples, const Options& python_options,
                                     const kernels::FeatureMap& map) {
  const poly::MapOptions options = read_map_options(python_options, map);
  const int vectors_per_row = python_options.integer<int>("vectors_per_row");
  auto mapped = run_interruptibly([&](Monitor& monitor) {
    return std::make_unique<MappedRows>(examples, options, vectors_per_row, monitor);
  });
  return mapped;
}

Table sum_weights(const MappedRows& mapped, Array<double> coefficients, int threads) {
  auto weights_of_sum = run_interruptibly(
      [&](Monitor& monitor) { return mapped.weights_of(view(coefficients), {threads, &monitor}); });
  const std::size_t conjunctions = weights_of_sum.keys.size();
  Table result;
  result["keys"] = to_numpy(std::move(weights_of_sum.keys));
  result["weights"] = to_numpy(std::move(weights_of_sum.weights), {conjunctions, 1});
  result["intercept"] = to_numpy(std::move(weights_of_sum.intercept));
  return result;
}

auto score_rows(const MappedRows& mapped, Array<double> coefficients, int threads) {
  auto scores = run_interruptibly(
      [&](Monitor& monitor) { return mapped.scores(view(coefficients), {threads, &monitor}); });
  return to_numpy(std::move(scores));
}

void bind_mapped_rows(nb::module_& module) {
  nb::class_<solve::RowPasses>(module, "RowPasses", "Passes over mapped rows, for the solvers.");
  nb::class_<MappedRows>(module, "MappedRows", "Distinct rows under a feature map, in one of the storages.")
      .def_prop_ro("storage", [](const MappedRows& self) { return find_name(storages, self.storage()); })
      .def_prop_ro("dimension", [](const MappedRows& self) { return self.stored().dimension(); })
      .def_prop_ro(
          "passes", [](const MappedRows& self) -> const auto& { return self.stored().passes(); },
          nb::rv_policy::reference_internal)
      .def("scores", &score_rows, nb::arg("coefficients"), nb::arg("threads"),
           "The scores of all rows, by the sum of rows with these coefficients.")
      .def("weights_of", &sum_weights, nb::arg("coefficients"), nb::arg("threads"),
           "The weights of conjunctions in the sum of rows with these coefficients.");
}

}  // namespace

void bind_poly(nb::module_& module) {
  bind_mapped_rows(module);
  bind_solution(module);
  nb::class_<Progress>(module, "Progress")
      .def_ro("stage", &Progress::stage)
      .def_ro("problem", &Progress::problem)
      .def_ro("problems", &Progress::problems)
      .def_ro("finished", &Progress::finished)
      .def_ro("epoch", &Progress::epoch)
      .def_ro("active", &Progress::active)
      .def_ro("relative_gap", &Progress::relative_gap)
      .def_ro("objective", &Progress::objective)
      .def_ro("bound", &Progress::bound);

  nb::class_<DistinctRows>(module, "DistinctRows")
      .def_prop_ro("rows", &DistinctRows::rows)
      .def_prop_ro("binary", &DistinctRows::binary)
      .def_prop_ro(
          "columns", [](const DistinctRows& self) { return copy_to_numpy(self.columns); },
          nb::rv_policy::move)
      .def_prop_ro(
          "hashes", [](const DistinctRows& self) { return copy_to_numpy(self.hashes); }, nb::rv_policy::move)
      .def_prop_ro(
          "places", [](const DistinctRows& self) { return copy_to_numpy(self.places); }, nb::rv_policy::move)
      .def(
          "map",
          [](const DistinctRows& self, nb::object options, const kernels::FeatureMap& map) {
            return map_rows(self, Options(options), map);
          },
          nb::arg("options"), nb::kw_only(), nb::arg("feature_map"), nb::keep_alive<0, 1>())
      .def(
          "choose",
          [](const DistinctRows& self, Array<std::int64_t> rows) {
            poly::ChosenRows chosen = poly::choose_rows(self, view(rows));
            return std::tuple(to_numpy(std::move(chosen.offsets)), to_numpy(std::move(chosen.columns)),
                              to_numpy(std::move(chosen.values)));
          },
          nb::arg("rows"))
      .def(
          "renumbered",
          [](const DistinctRows& self, Array<std::int64_t> columns, bool binary) {
            const Unlocked unlocked;
            return poly::renumbered(self, view(columns), binary);
          },
          nb::arg("columns"), nb::kw_only(), nb::arg("binary"))
      .def("variance", &poly::weighted_variance, nb::arg("columns"))
      .def("estimate_storage", &estimate_storage, nb::arg("degree"), nb::arg("problems"), nb::arg("memory"))
      .def(
          "train",
          [](const DistinctRows& self, nb::object options, const kernels::FeatureMap& map,
             std::vector<double> class_weights, Array<std::uint64_t> start_hashes, Array<double> start_duals,
             const OnProgress& on_progress) {
            const Options python_options(options);
            Trained trained = train(self, read_train_options(python_options, map, std::move(class_weights)),
                                    is_logistic(python_options), start_hashes, start_duals, on_progress);
            return make_solution(std::move(trained), static_cast<std::size_t>(self.rows()));
          },
          nb::arg("options"), nb::kw_only(), nb::arg("feature_map"), nb::arg("class_weights"),
          nb::arg("start_hashes"), nb::arg("start_duals"), nb::arg("on_progress").none())
      .def(
          "train_regression",
          [](const DistinctRows& self, nb::object options, const kernels::FeatureMap& map,
             Array<double> targets, double epsilon, double below, double above,
             Array<std::uint64_t> start_hashes, Array<double> start_duals, const OnProgress& on_progress) {
            Trained trained =
                train_regression(self, read_train_options(Options(options), map, {}), epsilon,
                                 {view(targets), below, above}, start_hashes, start_duals, on_progress);
            return make_solution(std::move(trained), static_cast<std::size_t>(self.rows()));
          },
          nb::arg("options"), nb::kw_only(), nb::arg("feature_map"), nb::arg("targets"), nb::arg("epsilon"),
          nb::arg("below"), nb::arg("above"), nb::arg("start_hashes"), nb::arg("start_duals"),
          nb::arg("on_progress").none())
      .def(
          "train_poisson",
          [](const DistinctRows& self, nb::object options, const kernels::FeatureMap& map,
             Array<double> targets, Array<std::uint64_t> start_hashes, Array<double> start_duals,
             const OnProgress& on_progress) {
            Trained trained = train_poisson(self, read_train_options(Options(options), map, {}), targets,
                                            start_hashes, start_duals, on_progress);
            return make_solution(std::move(trained), static_cast<std::size_t>(self.rows()));
          },
          nb::arg("options"), nb::kw_only(), nb::arg("feature_map"), nb::arg("targets"),
          nb::arg("start_hashes"), nb::arg("start_duals"), nb::arg("on_progress").none())
      .def(
          "train_sparse",
          [](const DistinctRows& self, nb::object options, const kernels::FeatureMap& map,
             std::vector<double> class_weights, Array<std::uint64_t> start_keys, Array<double> start_weights,
             Array<double> start_intercept, const OnProgress& on_progress) {
            Trained trained =
                train_sparse(self, read_sparse_options(Options(options), map, std::move(class_weights)),
                             start_keys, start_weights, start_intercept, on_progress);
            return make_solution(std::move(trained), static_cast<std::size_t>(self.rows()));
          },
          nb::arg("options"), nb::kw_only(), nb::arg("feature_map"), nb::arg("class_weights"),
          nb::arg("start_keys"), nb::arg("start_weights"), nb::arg("start_intercept"),
          nb::arg("on_progress").none())
      .def(
          "curvatures",
          [](const DistinctRows& self, nb::object options, const kernels::FeatureMap& map,
             std::vector<double> class_weights, Array<std::uint64_t> keys, Array<double> scores) {
            return compute_curvatures(
                self, read_sparse_options(Options(options), map, std::move(class_weights)), keys, scores);
          },
          nb::arg("options"), nb::kw_only(), nb::arg("feature_map"), nb::arg("class_weights"),
          nb::arg("keys"), nb::arg("scores"),
          "The curvatures of the loss in the intercepts and in the weights of all features and of some "
          "conjunctions, and its slopes in the weights of the features.")
      .def(
          "update",
          [](const DistinctRows& self, nb::object options, const kernels::FeatureMap& map,
             std::vector<double> class_weights, nb::object model, const OnProgress& on_progress) {
            poly::Updated updated =
                update_model(self, read_sparse_options(Options(options), map, std::move(class_weights)),
                             OldArrays(Options(model)), on_progress);
            return std::tuple(
                make_solution(std::move(updated.trained), static_cast<std::size_t>(self.rows())),
                to_python(std::move(updated.curvatures)));
          },
          nb::arg("options"), nb::kw_only(), nb::arg("feature_map"), nb::arg("class_weights"),
          nb::arg("model"), nb::arg("on_progress").none(),
          "Update a model with these rows; return the solution and its curvatures.");

  module.def("distinct_examples", &find_distinct, nb::arg("rows"), nb::kw_only(), nb::arg("classes"),
             nb::arg("weights"), nb::arg("merge_classes") = true, nb::arg("threads"));
}

}  // namespace unkernel::bindings
