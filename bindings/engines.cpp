#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "bound_engine.hpp"
#include "options.hpp"
#include "tables.hpp"
#include "unkernel/base/probability.hpp"
#include "unkernel/engines/conjunctions/expansion.hpp"
#include "unkernel/engines/conjunctions/heaviest_conjunctions.hpp"
#include "unkernel/engines/conjunctions/int16_pair_engine.hpp"
#include "unkernel/engines/conjunctions/layout.hpp"
#include "unkernel/engines/vectors/bitsliced_engine.hpp"
#include "unkernel/engines/vectors/inverted_engine.hpp"
#include "unkernel/engines/vectors/pair_engine.hpp"
#include "unkernel/engines/vectors/pair_scores.hpp"

namespace unkernel::bindings {

kernels::FeatureMap feature_map(int degree, const std::string& kind, double gamma, double coef0) {
  using Kind = kernels::FeatureMap::Kind;
  if (kind != "kernel" && kind != "plain")
    throw std::invalid_argument("feature_map must be 'kernel' or 'plain'");
  return {degree, kind == "kernel" ? Kind::kernel : Kind::plain, gamma, coef0};
}

kernels::KernelFunction kernel_function(const std::string& name, int degree, double gamma, double coef0) {
  using Type = kernels::KernelFunction::Type;
  if (name == "linear") return {Type::linear, degree, gamma, coef0};
  if (name == "polynomial") return {Type::polynomial, degree, gamma, coef0};
  if (name == "rbf") return {Type::rbf, degree, gamma, coef0};
  if (name == "sigmoid") return {Type::sigmoid, degree, gamma, coef0};
  throw std::invalid_argument("there is no kernel '" + name + "' that engines can compute");
}

namespace {

using engines::ConjunctionArrays;
using engines::ConjunctionTables;

// --- Tables, to and from Python ---------------------------------------------------------------------------

// Ranks are of 16 or 32 bits.
engines::Keys<engines::Borrowed> keys(const nb::dict& table, const char* name) {
  Array<std::uint16_t> narrow;
  if (nb::try_cast<Array<std::uint16_t>>(item(table, name), narrow, false)) return view(narrow);
  return array<std::uint32_t>(table, name);
}

const char* const sum_names[] = {"state_sums", "state_pair_sums", "state_triple_sums",
                                 "state_quadruple_sums"};
const char* const level_names[] = {"pairs", "triples", "quadruples"};

Table as_table(ConjunctionArrays&& arrays) {
  Table table;
  table["fused"] = arrays.fused;
  table["head"] = arrays.head;
  table["rare"] = arrays.rare;
  table["columns"] = give(std::move(arrays.columns));
  table["constants"] = give(std::move(arrays.intercept));
  table["head_low"] = give(std::move(arrays.head_low));
  table["head_top"] = give(std::move(arrays.head_top));
  table["owner_weights"] = give(std::move(arrays.owner_weights));
  table["owner_begins"] = give(std::move(arrays.owner_begins));
  table["probe_begins"] = give(std::move(arrays.probe_begins));
  table["probes"] = give(std::move(arrays.probes));
  table["posting_begins"] = give(std::move(arrays.posting_begins));
  table["item_begins"] = give(std::move(arrays.item_begins));
  table["posting_weights"] = give(std::move(arrays.posting_weights));
  table["items"] = std::visit([](auto& items) { return give(std::move(items)); }, arrays.items);
  table["posting_records"] = give(std::move(arrays.posting_records));
  table["group_begins"] = give(std::move(arrays.group_begins));
  table["state_begins"] = give(std::move(arrays.state_begins));
  table["states"] = give(std::move(arrays.states));
  for (std::size_t k = 0; k < arrays.state_sums.size(); ++k)
    table[sum_names[k]] = give(std::move(arrays.state_sums[k]));
  for (std::size_t k = 0; k < arrays.levels.size(); ++k) {
    auto& level = arrays.levels[k];
    const std::string name = level_names[k];
    table[(name + "_keys").c_str()] =
        std::visit([](auto& values) { return give(std::move(values)); }, level.keys);
    table[(name + "_weights").c_str()] = give(std::move(level.weights));
    table[(name + "_begins").c_str()] = give(std::move(level.begins));
  }
  return table;
}

kernels::Basis basis_of(bool sets) { return sets ? kernels::Basis::sets : kernels::Basis::monomials; }

ConjunctionTables conjunction_tables(const nb::dict& table, bool sets, const kernels::FeatureMap& map) {
  const auto number = [&](const char* name) { return nb::cast<std::uint32_t>(item(table, name)); };
  ConjunctionTables tables{basis_of(sets),
                           map,
                           number("fused"),
                           number("head"),
                           number("rare"),
                           array<std::int64_t>(table, "columns"),
                           array<double>(table, "constants"),
                           array<double>(table, "head_low"),
                           array<double>(table, "head_top"),
                           array<double>(table, "owner_weights"),
                           array<std::uint32_t>(table, "owner_begins"),
                           array<std::uint32_t>(table, "probe_begins"),
                           array<std::uint32_t>(table, "probes"),
                           {},
                           array<std::uint32_t>(table, "posting_begins"),
                           array<std::uint32_t>(table, "item_begins"),
                           keys(table, "items"),
                           array<double>(table, "posting_weights"),
                           newer<std::uint64_t>(table, "posting_records"),
                           newer<std::uint32_t>(table, "group_begins"),
                           newer<std::uint32_t>(table, "state_begins"),
                           newer<std::uint64_t>(table, "states"),
                           {}};
  for (std::size_t k = 0; k < tables.state_sums.size(); ++k)
    tables.state_sums[k] = newer<double>(table, sum_names[k]);
  for (std::size_t k = 0; k < tables.levels.size(); ++k) {
    const std::string name = level_names[k];
    tables.levels[k] = {keys(table, (name + "_keys").c_str()),
                        array<double>(table, (name + "_weights").c_str()),
                        array<std::uint32_t>(table, (name + "_begins").c_str())};
  }
  return tables;
}

engines::VectorSumTables vector_sum(const nb::dict& table, const kernels::KernelFunction& kernel) {
  return {kernel, array<double>(table, "coefficients"), array<double>(table, "intercepts"),
          array<double>(table, "norms"), newer<std::uint32_t>(table, "class_begins")};
}

// Weights of conjunctions, with the names that they have in models; weights and intercept are flat.
struct GivenWeights {
  explicit GivenWeights(const Options& model)
      : features(model.integer<std::int64_t>("n_features")),
        columns(model.array<std::int64_t>("columns")),
        keys(model.array<std::uint64_t>("keys")),
        weights(model.array<double>("weights")),
        intercept(model.array<double>("intercept")) {}

  engines::ConjunctionWeights with(bool sets, const kernels::FeatureMap& map) const {
    return {basis_of(sets), map, features, view(columns), view(keys), view(weights), view(intercept)};
  }

  std::int64_t features;
  Array<std::int64_t> columns;
  Array<std::uint64_t> keys;
  Array<double> weights;
  Array<double> intercept;
};

engines::HeadPlan head_plan(const Options& head) {
  return {head.integer<std::uint32_t>("fused"), head.integer<std::uint64_t>("ranks"),
          head.flag("by_frequency")};
}

engines::GroupPlan group_plan(const Options& head) {
  return {head.integer<std::uint32_t>("grouped"), head.real("most_sums")};
}

Table expand_vectors(const CsrRows& vectors, const Array<double>& coefficients,
                     const Array<double>& intercept, const kernels::FeatureMap& map, bool sets,
                     nb::object head, nb::object limits, int threads) {
  const engines::SupportVectors machine{vectors.narrow(), view(coefficients), view(intercept)};
  for (const std::int32_t column : machine.rows.columns) {
    if (column < 0 || column >= machine.rows.features)
      throw std::invalid_argument("a column index is outside the matrix");
  }
  if (intercept.size() == 0 ||
      coefficients.size() != static_cast<std::size_t>(machine.rows.rows()) * intercept.size()) {
    throw std::invalid_argument("coefficients, intercept and support vectors differ in number");
  }
  const Options limit(limits);
  const engines::ExpansionPlan plan{map,
                                    basis_of(sets),
                                    head_plan(Options(head)),
                                    group_plan(Options(head)),
                                    limit.integer<std::uint32_t>("rare_below"),
                                    limit.real("threshold"),
                                    limit.real("most_bytes")};
  ConjunctionArrays arrays;
  watched([&](Monitor& monitor) { arrays = engines::expand(machine, plan, threads, monitor); });
  return as_table(std::move(arrays));
}

Table arrange_weights(nb::object weights, const kernels::FeatureMap& map, bool sets, nb::object head,
                      const CsrRows& sample, int threads) {
  const GivenWeights given{Options(weights)};
  const auto model = given.with(sets, map);
  const auto rows = sample.narrow();
  const auto zones = head_plan(Options(head));
  const auto groups = group_plan(Options(head));
  ConjunctionArrays arrays;
  {
    const Unlocked unlocked;
    arrays = engines::arrange(model, zones, groups, rows, threads);
  }
  return as_table(std::move(arrays));
}

Table heaviest_of(const Table& table, const kernels::FeatureMap& map, bool sets, std::size_t top) {
  const ConjunctionTables tables = conjunction_tables(table, sets, map);
  engines::check(tables);
  engines::HeaviestConjunctions listing;
  {
    const Unlocked unlocked;
    listing = engines::list_heaviest(tables, top);
  }
  const std::size_t listed = listing.columns.size() / engines::most_degree;
  nb::list counts;
  for (const std::uint64_t count : listing.counts) counts.append(count);
  Table result;
  result["counts"] = counts;
  result["columns"] = to_numpy(std::move(listing.columns), {listed, engines::most_degree});
  result["weights"] = to_numpy(std::move(listing.weights), {listed, tables.scores()});
  return result;
}

void bind_builders(nb::module_& module) {
  using engines::HeadIndex;
  module.def(
      "head_within",
      [](double bytes, int degree, bool sets, std::uint32_t fused, std::size_t scores, std::uint64_t used) {
        return engines::head_within(bytes, HeadIndex(degree, basis_of(sets)), fused, scores, used);
      },
      nb::kw_only(), nb::arg("bytes"), nb::arg("degree"), nb::arg("sets"), nb::arg("fused"),
      nb::arg("scores"), nb::arg("used"));
  module.def("expand", &expand_vectors, nb::arg("vectors"), nb::kw_only(), nb::arg("coefficients"),
             nb::arg("intercept"), nb::arg("feature_map"), nb::arg("sets"), nb::arg("head"),
             nb::arg("limits"), nb::arg("threads"));
  module.def("arrange", &arrange_weights, nb::arg("weights"), nb::kw_only(), nb::arg("feature_map"),
             nb::arg("sets"), nb::arg("head"), nb::arg("sample"), nb::arg("threads"));
  module.def("list_heaviest", &heaviest_of, nb::arg("tables"), nb::kw_only(), nb::arg("feature_map"),
             nb::arg("sets"), nb::arg("top"));
}

using ScoreTable = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Rows x classes, given rows x pairs of classes.
template <class Merit, class Fill>
nb::ndarray<nb::numpy, Merit> merits_of(const ScoreTable& scores, std::size_t classes, const Fill& fill) {
  const std::size_t rows = scores.shape(0), pairs = scores.shape(1);
  if (classes > std::size_t{1} << 31 || pairs != classes * (classes - 1) / 2)
    throw std::invalid_argument("the number of scores does not fit the number of classes");
  std::vector<Merit> merits(rows * classes);
  for (std::size_t row = 0; row < rows; ++row)
    fill(std::span(scores.data() + row * pairs, pairs), std::span(merits).subspan(row * classes, classes));
  return to_numpy(std::move(merits), {rows, classes});
}

void bind_pair_scores(nb::module_& module) {
  module.def(
      "count_votes",
      [](const ScoreTable& scores, std::size_t classes) {
        return merits_of<std::int64_t>(scores, classes, engines::count_votes);
      },
      nb::arg("scores"), nb::arg("classes"));
  module.def(
      "sum_votes",
      [](const ScoreTable& scores, std::size_t classes) {
        return merits_of<double>(scores, classes, engines::sum_votes);
      },
      nb::arg("scores"), nb::arg("classes"));
}

// Rows x classes, given rows x scores; one score f stands for 0 and f.
nb::ndarray<nb::numpy, double> softmax_of(const ScoreTable& scores) {
  const std::size_t rows = scores.shape(0), given = scores.shape(1),
                    classes = std::max<std::size_t>(given, 2);
  std::vector<double> shares(rows * classes);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span own = std::span(shares).subspan(row * classes, classes);
    for (std::size_t k = 0; k < given; ++k) own[classes - given + k] = scores.data()[row * given + k];
    softmax(own);
  }
  return to_numpy(std::move(shares), {rows, classes});
}

void bind_probabilities(nb::module_& module) {
  module.def("softmax", &softmax_of, nb::arg("scores"));
  module.def(
      "sigmoid",
      [](const Array<double>& exponents) {
        std::vector<double> found(exponents.size());
        std::transform(exponents.data(), exponents.data() + exponents.size(), found.begin(),
                       [](double exponent) { return sigmoid(exponent); });
        return to_numpy(std::move(found));
      },
      nb::arg("exponents"));
}

void bind_makers(nb::module_& module) {
  module.def(
      "conjunction_engine",
      [](const Table& tables, const kernels::FeatureMap& map, bool sets) {
        return std::make_unique<BoundEngine>(
            engines::make_conjunction_engine(conjunction_tables(tables, sets, map)), tables);
      },
      nb::arg("tables"), nb::kw_only(), nb::arg("feature_map"), nb::arg("sets"));
  module.def(
      "fits_int16",
      [](Array<double> intercept, Array<double> weights) {
        const auto [own, others] = std::pair(view(intercept), view(weights));
        const Unlocked unlocked;
        return engines::int16_unit(own, others).has_value();
      },
      nb::arg("intercept"), nb::arg("weights"));
  module.def(
      "int16_pair_engine",
      [](nb::object weights, const kernels::FeatureMap& map, bool sets) -> std::unique_ptr<BoundEngine> {
        const GivenWeights given{Options(weights)};
        const auto model = given.with(sets, map);
        std::unique_ptr<engines::Engine> engine;
        {
          const Unlocked unlocked;
          engine = engines::make_int16_pair_engine(model, engines::dense_pairs_for(model));
        }
        return engine == nullptr ? nullptr : std::make_unique<BoundEngine>(std::move(engine), nb::none());
      },
      nb::arg("weights"), nb::kw_only(), nb::arg("feature_map"), nb::arg("sets"));
  module.def(
      "inverted_engine",
      [](const Table& tables, const std::string& kernel, int degree, double gamma, double coef0) {
        return std::make_unique<BoundEngine>(
            engines::make_inverted_engine(
                {vector_sum(tables, kernel_function(kernel, degree, gamma, coef0)),
                 array<std::int64_t>(tables, "columns"), array<double>(tables, "whole"),
                 array<std::uint32_t>(tables, "list_begins"), array<std::uint32_t>(tables, "lists"),
                 array<double>(tables, "list_values")}),
            tables);
      },
      nb::arg("tables"), nb::kw_only(), nb::arg("kernel"), nb::arg("degree"), nb::arg("gamma"),
      nb::arg("coef0"));
  module.def(
      "pair_engine",
      [](const Table& tables) {
        return std::make_unique<BoundEngine>(
            engines::make_pair_engine(
                {array<std::int64_t>(tables, "columns"), array<double>(tables, "intercepts"),
                 array<double>(tables, "whole"), array<std::uint32_t>(tables, "block_begins"),
                 array<std::uint32_t>(tables, "block_classes"), array<double>(tables, "blocks"),
                 nb::cast<std::size_t>(item(tables, "classes"))}),
            tables);
      },
      nb::arg("tables"));
  module.def(
      "bitsliced_engine",
      [](const Table& tables, const std::string& kernel, int degree, double gamma, double coef0) {
        return std::make_unique<BoundEngine>(
            engines::make_bitsliced_engine(
                {vector_sum(tables, kernel_function(kernel, degree, gamma, coef0)),
                 array<std::int64_t>(tables, "columns"), nb::cast<std::uint32_t>(item(tables, "frequent")),
                 array<std::uint64_t>(tables, "bits"), array<std::uint32_t>(tables, "list_begins"),
                 array<std::uint32_t>(tables, "lists")}),
            tables);
      },
      nb::arg("tables"), nb::kw_only(), nb::arg("kernel"), nb::arg("degree"), nb::arg("gamma"),
      nb::arg("coef0"));
}

}  // namespace

void bind_engines(nb::module_& module) {
  nb::class_<kernels::FeatureMap>(module, "FeatureMap", "A polynomial feature map.")
      .def(
          "__init__",
          [](kernels::FeatureMap* self, int degree, const std::string& kind, double gamma, double coef0) {
            new (self) kernels::FeatureMap(feature_map(degree, kind, gamma, coef0));
          },
          nb::kw_only(), nb::arg("degree"), nb::arg("kind"), nb::arg("gamma"), nb::arg("coef0"));
  nb::class_<RowScorer>(module, "Worker")
      .def("score_one", &RowScorer::score, nb::arg("ids"), nb::arg("values").none() = nb::none())
      .def("sum_votes_of_one", &RowScorer::sum_votes, nb::arg("ids"), nb::arg("values").none(),
           nb::arg("classes"))
      .def("choose_one", &RowScorer::choose, nb::arg("ids"), nb::arg("values").none(),
           nb::arg("zero_is_positive"))
      .def("choose_one_by_pairs", &RowScorer::choose_by_pairs, nb::arg("ids"), nb::arg("values").none(),
           nb::arg("classes"), nb::arg("by_sums"));
  nb::class_<BoundEngine>(module, "Engine")
      .def_prop_ro("nbytes", [](const BoundEngine& self) { return self.engine().bytes(); })
      .def_prop_ro("scores", [](const BoundEngine& self) { return self.engine().scores(); })
      .def("score", &BoundEngine::score, nb::arg("rows"), nb::arg("threads"))
      .def("score_until_decided", &BoundEngine::score_until_decided, nb::arg("rows"), nb::arg("threads"))
      // Under the interpreter's lock there is one caller at a time, so one worker will do for all.
      .def_prop_ro("one_row", &BoundEngine::one_row, nb::rv_policy::reference_internal)
      .def("cached", &BoundEngine::cached, nb::arg("rows"))
      .def("cache_counts", &BoundEngine::cache_counts)
      .def("clear_cache", &BoundEngine::clear_cache)
      .def_prop_ro("trie_nodes", &BoundEngine::trie_nodes)
      .def("trie", &BoundEngine::trie)
      .def("set_trie", &BoundEngine::set_trie, nb::arg("trie"))
      .def("drop_trie", &BoundEngine::drop_trie)
      .def("release_after_fork", &BoundEngine::release_after_fork)
      .def("grow_trie", &BoundEngine::grow_trie, nb::arg("rows"), nb::kw_only(), nb::arg("most_nodes"),
           nb::arg("saving"), nb::arg("threads"))
      .def("prune_trie", &BoundEngine::prune_trie, nb::kw_only(), nb::arg("most_nodes"), nb::arg("saving"))
      .def(
          "worker", [](const BoundEngine& self) { return std::make_unique<RowScorer>(self.engine()); },
          nb::keep_alive<0, 1>());
  bind_builders(module);
  bind_makers(module);
  bind_pair_scores(module);
  bind_probabilities(module);
}

}  // namespace unkernel::bindings
