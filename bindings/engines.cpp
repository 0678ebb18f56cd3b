// Builds the tables of engines, makes engines from tables, and computes votes and probabilities from scores.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "bound_engine.hpp"
#include "named_values.hpp"
#include "options.hpp"
#include "tables.hpp"
#include "unkernel/base/probability.hpp"
#include "unkernel/engines/conjunctions/conjunction_engine.hpp"
#include "unkernel/engines/conjunctions/expansion.hpp"
#include "unkernel/engines/conjunctions/heaviest_conjunctions.hpp"
#include "unkernel/engines/conjunctions/int16_pair_engine.hpp"
#include "unkernel/engines/conjunctions/layout.hpp"
#include "unkernel/engines/conjunctions/row_contributions.hpp"
#include "unkernel/engines/vectors/bitsliced_engine.hpp"
#include "unkernel/engines/vectors/inverted_engine.hpp"
#include "unkernel/engines/vectors/pair_engine.hpp"
#include "unkernel/engines/vectors/pair_scores.hpp"

namespace unkernel::bindings {

kernels::FeatureMap make_feature_map(int degree, const std::string& kind, double gamma, double coef0) {
  using Kind = kernels::FeatureMap::Kind;
  constexpr Named<Kind> kinds[] = {{"kernel", Kind::kernel}, {"plain", Kind::plain}};
  return {degree, find_value(kinds, kind, "feature_map must be"), gamma, coef0};
}

kernels::KernelFunction make_kernel(const std::string& name, int degree, double gamma, double coef0) {
  using Type = kernels::KernelFunction::Type;
  constexpr Named<Type> types[] = {{"linear", Type::linear},
                                   {"polynomial", Type::polynomial},
                                   {"rbf", Type::rbf},
                                   {"sigmoid", Type::sigmoid}};
  return {find_value(types, name, "engines compute the kernels"), degree, gamma, coef0};
}

namespace {

using engines::ConjunctionArrays;
using engines::ConjunctionTables;

// --- Tables, to and from Python ---------------------------------------------------------------------------

// Returns an array of ranks, which have 16 or 32 bits.
engines::Keys<engines::Borrowed> find_keys(const nb::dict& table, const char* name) {
  Array<std::uint16_t> narrow;
  if (nb::try_cast<Array<std::uint16_t>>(item(table, name), narrow, false)) return view(narrow);
  return array<std::uint32_t>(table, name);
}

const char* const sum_names[] = {"state_sums", "state_pair_sums", "state_triple_sums",
                                 "state_quadruple_sums"};
const char* const level_names[] = {"pairs", "triples", "quadruples"};

nb::object move_keys(engines::Keys<engines::Owned>& keys) {
  return std::visit([](auto& values) { return nb::cast(to_numpy(std::move(values))); }, keys);
}

Table to_table(ConjunctionArrays&& arrays) {
  Table table;
  table["fused"] = arrays.fused;
  table["head"] = arrays.head;
  table["rare"] = arrays.rare;
  table["columns"] = to_numpy(std::move(arrays.columns));
  table["constants"] = to_numpy(std::move(arrays.intercept));
  table["head_low"] = to_numpy(std::move(arrays.head_low));
  table["head_top"] = to_numpy(std::move(arrays.head_top));
  table["owner_weights"] = to_numpy(std::move(arrays.owner_weights));
  table["owner_begins"] = to_numpy(std::move(arrays.owner_begins));
  table["probe_begins"] = to_numpy(std::move(arrays.probe_begins));
  table["probes"] = to_numpy(std::move(arrays.probes));
  table["posting_begins"] = to_numpy(std::move(arrays.posting_begins));
  table["item_begins"] = to_numpy(std::move(arrays.item_begins));
  table["posting_weights"] = to_numpy(std::move(arrays.posting_weights));
  table["items"] = move_keys(arrays.items);
  table["posting_records"] = to_numpy(std::move(arrays.posting_records));
  table["group_begins"] = to_numpy(std::move(arrays.group_begins));
  table["state_begins"] = to_numpy(std::move(arrays.state_begins));
  table["states"] = to_numpy(std::move(arrays.states));
  for (std::size_t k = 0; k < arrays.state_sums.size(); ++k)
    table[sum_names[k]] = to_numpy(std::move(arrays.state_sums[k]));
  for (std::size_t k = 0; k < arrays.levels.size(); ++k) {
    auto& level = arrays.levels[k];
    const std::string name = level_names[k];
    table[(name + "_keys").c_str()] = move_keys(level.keys);
    table[(name + "_weights").c_str()] = to_numpy(std::move(level.weights));
    table[(name + "_begins").c_str()] = to_numpy(std::move(level.begins));
  }
  return table;
}

kernels::Basis choose_basis(bool sets) { return sets ? kernels::Basis::sets : kernels::Basis::monomials; }

ConjunctionTables find_tables(const nb::dict& table, bool sets, const kernels::FeatureMap& map) {
  const auto number = [&](const char* name) { return nb::cast<std::uint32_t>(item(table, name)); };
  ConjunctionTables tables{choose_basis(sets),
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
                           find_keys(table, "items"),
                           array<double>(table, "posting_weights"),
                           optional_array<std::uint64_t>(table, "posting_records"),
                           optional_array<std::uint32_t>(table, "group_begins"),
                           optional_array<std::uint32_t>(table, "state_begins"),
                           optional_array<std::uint64_t>(table, "states"),
                           {}};
  for (std::size_t k = 0; k < tables.state_sums.size(); ++k)
    tables.state_sums[k] = optional_array<double>(table, sum_names[k]);
  for (std::size_t k = 0; k < tables.levels.size(); ++k) {
    const std::string name = level_names[k];
    tables.levels[k] = {find_keys(table, (name + "_keys").c_str()),
                        array<double>(table, (name + "_weights").c_str()),
                        array<std::uint32_t>(table, (name + "_begins").c_str())};
  }
  return tables;
}

engines::VectorSumTables find_vector_sum(const nb::dict& table, const kernels::KernelFunction& kernel) {
  return {kernel, array<double>(table, "coefficients"), array<double>(table, "intercepts"),
          array<double>(table, "norms"), optional_array<std::uint32_t>(table, "class_begins")};
}

// The weights of a conjunction model, read by the names of its arrays. Weights and intercept are flat.
struct ModelWeights {
  explicit ModelWeights(const Options& model)
      : features(model.integer<std::int64_t>("n_features")),
        columns(model.array<std::int64_t>("columns")),
        keys(model.array<std::uint64_t>("keys")),
        weights(model.array<double>("weights")),
        intercept(model.array<double>("intercept")) {}

  engines::ConjunctionWeights view_as(bool sets, const kernels::FeatureMap& map) const {
    return {choose_basis(sets), map, features, view(columns), view(keys), view(weights), view(intercept)};
  }

  std::int64_t features;
  Array<std::int64_t> columns;
  Array<std::uint64_t> keys;
  Array<double> weights;
  Array<double> intercept;
};

engines::HeadPlan read_head_plan(const Options& head) {
  return {head.integer<std::uint32_t>("fused"), head.integer<std::uint64_t>("ranks"),
          head.flag("by_frequency")};
}

engines::GroupPlan read_group_plan(const Options& head) {
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
                                    choose_basis(sets),
                                    read_head_plan(Options(head)),
                                    read_group_plan(Options(head)),
                                    limit.integer<std::uint32_t>("rare_below"),
                                    limit.real("threshold"),
                                    limit.real("most_bytes")};
  auto arrays =
      run_interruptibly([&](Monitor& monitor) { return engines::expand(machine, plan, threads, monitor); });
  return to_table(std::move(arrays));
}

Table arrange_weights(nb::object weights, const kernels::FeatureMap& map, bool sets, nb::object head,
                      const CsrRows& sample, int threads) {
  const ModelWeights model_weights{Options(weights)};
  const auto model = model_weights.view_as(sets, map);
  const auto rows = sample.narrow();
  const auto head_plan = read_head_plan(Options(head));
  const auto groups = read_group_plan(Options(head));
  auto arrays = without_lock([&] { return engines::arrange(model, head_plan, groups, rows, threads); });
  return to_table(std::move(arrays));
}

Table list_heaviest(const Table& table, const kernels::FeatureMap& map, bool sets, std::size_t top) {
  const ConjunctionTables tables = find_tables(table, sets, map);
  engines::check(tables);
  auto listing = without_lock([&] { return engines::list_heaviest(tables, top); });
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
        return engines::head_within(bytes, HeadIndex(degree, choose_basis(sets)), fused, scores, used);
      },
      nb::kw_only(), nb::arg("bytes"), nb::arg("degree"), nb::arg("sets"), nb::arg("fused"),
      nb::arg("scores"), nb::arg("used"));
  module.def("expand", &expand_vectors, nb::arg("vectors"), nb::kw_only(), nb::arg("coefficients"),
             nb::arg("intercept"), nb::arg("feature_map"), nb::arg("sets"), nb::arg("head"),
             nb::arg("limits"), nb::arg("threads"));
  module.def("arrange", &arrange_weights, nb::arg("weights"), nb::kw_only(), nb::arg("feature_map"),
             nb::arg("sets"), nb::arg("head"), nb::arg("sample"), nb::arg("threads"));
  module.def("list_heaviest", &list_heaviest, nb::arg("tables"), nb::kw_only(), nb::arg("feature_map"),
             nb::arg("sets"), nb::arg("top"));
}

using ScoreTable = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Returns votes [rows, classes] for scores [rows, pairs of classes].
template <class Merit, class Fill>
nb::ndarray<nb::numpy, Merit> compute_merits(const ScoreTable& scores, std::size_t classes,
                                             const Fill& fill) {
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
        return compute_merits<std::int64_t>(scores, classes, engines::count_votes);
      },
      nb::arg("scores"), nb::arg("classes"));
  module.def(
      "sum_votes",
      [](const ScoreTable& scores, std::size_t classes) {
        return compute_merits<double>(scores, classes, engines::sum_votes);
      },
      nb::arg("scores"), nb::arg("classes"));
}

// Returns probabilities [rows, classes] for scores [rows, classes]. A single score f per row stands for the
// scores 0 and f of two classes.
nb::ndarray<nb::numpy, double> compute_softmax(const ScoreTable& scores) {
  const std::size_t rows = scores.shape(0), n_scores = scores.shape(1),
                    classes = std::max<std::size_t>(n_scores, 2);
  std::vector<double> shares(rows * classes);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span softmax_row = std::span(shares).subspan(row * classes, classes);
    for (std::size_t k = 0; k < n_scores; ++k)
      softmax_row[classes - n_scores + k] = scores.data()[row * n_scores + k];
    softmax(softmax_row);
  }
  return to_numpy(std::move(shares), {rows, classes});
}

// Returns the probabilities of one row. Its scores are a float, or a list of floats.
nb::typed<nb::list, double> compute_softmax_of_one(nb::object scores) {
  nb::typed<nb::list, double> shares;
  if (nb::isinstance<nb::float_>(scores)) {
    const auto score = nb::cast<double>(scores);
    shares.append(sigmoid(score));
    shares.append(sigmoid(-score));
    return shares;
  }
  auto probabilities = nb::cast<std::vector<double>>(scores);
  softmax(probabilities);
  for (const double share : probabilities) shares.append(share);
  return shares;
}

void bind_probabilities(nb::module_& module) {
  module.def("softmax", &compute_softmax, nb::arg("scores"));
  module.def("softmax_of_one", &compute_softmax_of_one, nb::arg("scores"));
  module.def("sigmoid_of_one", [](double exponent) { return sigmoid(exponent); }, nb::arg("exponent"));
  module.def(
      "sigmoid",
      [](const Array<double>& exponents) {
        std::vector<double> probabilities(exponents.size());
        std::transform(exponents.data(), exponents.data() + exponents.size(), probabilities.begin(),
                       [](double exponent) { return sigmoid(exponent); });
        return to_numpy(std::move(probabilities));
      },
      nb::arg("exponents"));
  module.def("logarithm_of_one", &natural_logarithm, nb::arg("number"));
  module.def("exponential_of_one", &finite_exponential, nb::arg("exponent"));
  module.def(
      "finite_exponentials",
      [](const Array<double>& exponents) {
        std::vector<double> powers(exponents.size());
        std::transform(exponents.data(), exponents.data() + exponents.size(), powers.begin(),
                       finite_exponential);
        return to_numpy(std::move(powers));
      },
      nb::arg("exponents"));
}

// --- Contributions to the scores of a row ----------------------------------------------------------------

using engines::RowContributions;
using ColumnTable = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A lookup, and the arrays that it reads.
class ConjunctionLookup {
 public:
  ConjunctionLookup(nb::object weights, const kernels::FeatureMap& map, bool sets)
      : weights_(Options(std::move(weights))), lookup_(weights_.view_as(sets, map)) {}

  RowContributions find(const Array<std::int64_t>& columns, const Array<double>& values) const {
    return lookup_.find(view(columns), view(values));
  }

 private:
  ModelWeights weights_;
  engines::ConjunctionLookup lookup_;
};

RowContributions make_contributions(const ColumnTable& columns, const ScoreTable& values,
                                    const Array<double>& intercept) {
  if (columns.shape(0) != values.shape(0) || values.shape(1) != intercept.size())
    throw std::invalid_argument("columns, values and intercept of contributions differ in size");
  return {columns.shape(1),
          {columns.data(), columns.data() + columns.size()},
          {values.data(), values.data() + values.size()},
          to_vector(intercept)};
}

// Returns a number for a single score, and a list for several scores.
nb::object to_number_or_list(std::span<const double> values) {
  if (values.size() == 1) return nb::float_(values.front());
  nb::list numbers;
  for (const double value : values) numbers.append(value);
  return numbers;
}

// Returns the ascending columns of a conjunction. A squared column occurs twice.
nb::tuple list_columns(std::span<const std::int64_t> padded) {
  std::vector<std::int64_t> columns;
  std::copy_if(padded.begin(), padded.end(), std::back_inserter(columns),
               [](std::int64_t column) { return column >= 0; });
  std::sort(columns.begin(), columns.end());
  nb::list listed;
  for (const std::int64_t column : columns) listed.append(column);
  return nb::tuple(listed);
}

// Returns the largest contributions as pairs of columns and values, the sum of the others, and the number of
// all contributions other than 0.
using LargestListed = nb::typed<nb::tuple, nb::typed<nb::list, nb::any>, nb::any, std::size_t>;
LargestListed list_largest(const RowContributions& contributions, const std::vector<std::size_t>& shown,
                           std::optional<std::size_t> top) {
  const bool is_valid = !shown.empty() && shown.size() <= 2 &&
                        std::all_of(shown.begin(), shown.end(),
                                    [&](std::size_t score) { return score < contributions.scores(); });
  if (!is_valid) throw std::invalid_argument("one or two scores of the model must be shown");
  const auto largest =
      engines::find_largest(contributions, shown, top.value_or(std::numeric_limits<std::size_t>::max()));
  nb::list listed;
  for (const std::size_t i : largest.conjunctions) {
    listed.append(nb::make_tuple(list_columns(contributions.columns_of(i)),
                                 to_number_or_list(contributions.values_of(i))));
  }
  return LargestListed(nb::make_tuple(listed, to_number_or_list(largest.rest), largest.count));
}

void bind_contributions(nb::module_& module) {
  nb::class_<RowContributions>(module, "RowContributions",
                               "The contributions of all conjunctions of a row to its scores.")
      .def(
          "__init__",
          [](RowContributions* self, const ColumnTable& columns, const ScoreTable& values,
             const Array<double>& intercept) {
            new (self) RowContributions(make_contributions(columns, values, intercept));
          },
          nb::arg("columns"), nb::arg("values"), nb::arg("intercept"))
      .def_prop_ro(
          "columns",
          [](const RowContributions& self) {
            return to_numpy(std::vector(self.columns), {self.size(), self.degree});
          },
          nb::rv_policy::move)
      .def_prop_ro(
          "values",
          [](const RowContributions& self) {
            return to_numpy(std::vector(self.values), {self.size(), self.scores()});
          },
          nb::rv_policy::move)
      .def_prop_ro(
          "intercept", [](const RowContributions& self) { return copy_to_numpy(self.intercept); },
          nb::rv_policy::move)
      .def_prop_ro("total", [](const RowContributions& self) { return self.total(); })
      .def("list_largest", &list_largest, nb::arg("shown"), nb::arg("top").none());
  nb::class_<ConjunctionLookup>(module, "ConjunctionLookup",
                                "Looks up the conjunctions of rows in a model of conjunctions.")
      .def(nb::init<nb::object, const kernels::FeatureMap&, bool>(), nb::arg("weights"), nb::kw_only(),
           nb::arg("feature_map"), nb::arg("sets"))
      .def("find", &ConjunctionLookup::find, nb::arg("columns"), nb::arg("values"));
}

void bind_factories(nb::module_& module) {
  module.def(
      "conjunction_engine",
      [](const Table& tables, const kernels::FeatureMap& map, bool sets) {
        return std::make_unique<BoundEngine>(engines::make_conjunction_engine(find_tables(tables, sets, map)),
                                             tables);
      },
      nb::arg("tables"), nb::kw_only(), nb::arg("feature_map"), nb::arg("sets"));
  module.def(
      "fits_int16",
      [](Array<double> intercept, Array<double> weights) {
        const auto [intercept_view, weights_view] = std::pair(view(intercept), view(weights));
        const Unlocked unlocked;
        return engines::int16_unit(intercept_view, weights_view).has_value();
      },
      nb::arg("intercept"), nb::arg("weights"));
  module.def(
      "int16_pair_engine",
      [](nb::object weights, const kernels::FeatureMap& map, bool sets) -> std::unique_ptr<BoundEngine> {
        const ModelWeights model_weights{Options(weights)};
        const auto model = model_weights.view_as(sets, map);
        auto engine = without_lock(
            [&] { return engines::make_int16_pair_engine(model, engines::dense_pairs_for(model)); });
        return engine == nullptr ? nullptr : std::make_unique<BoundEngine>(std::move(engine), nb::none());
      },
      nb::arg("weights"), nb::kw_only(), nb::arg("feature_map"), nb::arg("sets"));
  module.def(
      "inverted_engine",
      [](const Table& tables, const std::string& kernel, int degree, double gamma, double coef0) {
        return std::make_unique<BoundEngine>(
            engines::make_inverted_engine(
                {find_vector_sum(tables, make_kernel(kernel, degree, gamma, coef0)),
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
                {find_vector_sum(tables, make_kernel(kernel, degree, gamma, coef0)),
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
            new (self) kernels::FeatureMap(make_feature_map(degree, kind, gamma, coef0));
          },
          nb::kw_only(), nb::arg("degree"), nb::arg("kind"), nb::arg("gamma"), nb::arg("coef0"));
  bind_bound_engines(module);
  bind_builders(module);
  bind_factories(module);
  bind_contributions(module);
  bind_pair_scores(module);
  bind_probabilities(module);
}

}  // namespace unkernel::bindings
