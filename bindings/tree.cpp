// Forests, kernels of examples made of trees and vectors, and their learners.
#include <nanobind/stl/function.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <tuple>

#include "bindings.hpp"
#include "unkernel/base/error.hpp"
#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/data/trees/forest.hpp"
#include "unkernel/data/trees/forest_copy.hpp"
#include "unkernel/data/trees/tree_lines.hpp"
#include "unkernel/engines/trees/fragments.hpp"
#include "unkernel/engines/trees/one_tree.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"
#include "unkernel/tree/exact.hpp"
#include "unkernel/tree/sampled.hpp"

namespace unkernel::bindings {
namespace {

using data::Forest;
using data::NodeId;
using kernels::ExampleKernel;
using kernels::ExampleMachine;
using kernels::ExampleSet;
using Table = nb::typed<nb::dict, nb::str, nb::any>;

// --- Forests ---------------------------------------------------------------------------------------------

// While a forest is read without Python's lock, nobody adds to it, and the other way round.
class Adding {
 public:
  explicit Adding(const Forest& forest) : lock_(forest.gate(), std::defer_lock) {
    const nb::gil_scoped_release unlocked;  // who reads may need Python's lock to end
    lock_.lock();
  }

 private:
  std::unique_lock<std::shared_mutex> lock_;
};
using Reading = std::shared_lock<std::shared_mutex>;

std::string_view text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// The line and column, both from 1, of a byte in a text.
[[noreturn]] void refuse(const std::string& name, std::string_view text, const data::BracketError& error) {
  const std::string_view before = text.substr(0, error.offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? error.offset + 1 : error.offset - newline;
  throw FormatError(name, line, static_cast<std::int64_t>(column), error.what());
}

NodeId read_one(data::BracketReader& reader, const std::string& name, std::string_view text) {
  try {
    std::size_t at = data::skip_blanks(text, 0);
    const NodeId root = reader.read(text, at);
    at = data::skip_blanks(text, at);
    if (at < text.size()) throw data::BracketError(at, "there is something behind the tree");
    return root;
  } catch (const data::BracketError& error) { refuse(name, text, error); }
}

// A Python string as UTF-8; bytes that were none, and came in as surrogates, as they were.
class Utf8 {
 public:
  explicit Utf8(nb::handle text) {
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
      view_ = {bytes, static_cast<std::size_t>(size)};
      return;
    }
    PyErr_Clear();
    encoded_ = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
    if (!encoded_.is_valid()) throw nb::python_error();
    view_ = {PyBytes_AsString(encoded_.ptr()), static_cast<std::size_t>(PyBytes_Size(encoded_.ptr()))};
  }
  std::string_view view() const { return view_; }

 private:
  nb::object encoded_;
  std::string_view view_;
};

nb::ndarray<nb::numpy, NodeId> add_brackets(Forest& forest, const nb::typed<nb::list, nb::str>& trees,
                                            std::size_t first) {
  const Adding adding(forest);
  data::BracketReader reader(forest, data::WordStyle::apart);
  std::vector<NodeId> roots;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const Utf8 text(trees[i]);
    roots.push_back(read_one(reader, "trees[" + std::to_string(first + i) + "]", text.view()));
  }
  return to_numpy(std::move(roots));
}

// A file of trees, one after another.
nb::ndarray<nb::numpy, NodeId> read_brackets(Forest& forest, const std::string& name,
                                             const nb::bytes& bytes) {
  const std::string_view text = text_of(bytes);
  const Adding adding(forest);
  std::vector<NodeId> roots;
  {
    const nb::gil_scoped_release unlocked;
    data::BracketReader reader(forest, data::WordStyle::apart);
    try {
      for (std::size_t at = data::skip_blanks(text, 0); at < text.size(); at = data::skip_blanks(text, at)) {
        roots.push_back(reader.read(text, at));
      }
    } catch (const data::BracketError& error) { refuse(name, text, error); }
  }
  return to_numpy(std::move(roots));
}

NodeId add_preorder(Forest& forest, const nb::typed<nb::list, nb::str>& labels,
                    const std::vector<std::int64_t>& arities) {
  const Adding adding(forest);
  std::vector<Utf8> texts;
  std::vector<std::string_view> views;
  for (const nb::handle label : labels) texts.emplace_back(label);
  for (const Utf8& text : texts) views.push_back(text.view());
  return data::add_preorder(forest, views, arities);
}

void check_roots(const Forest& forest, std::span<const NodeId> roots) {
  for (const NodeId root : roots) {
    if (root < -1 || root >= static_cast<NodeId>(forest.size()))
      throw std::out_of_range("a root is no node of the forest");
  }
}

// Adds the trees with these roots of another forest; gives their roots here.
nb::ndarray<nb::numpy, NodeId> absorb(Forest& forest, const Forest& other, const Array<NodeId>& roots) {
  const Adding adding(forest);
  check_roots(other, view(roots));
  return to_numpy(data::absorb(forest, other, view(roots)));
}

template <class T>
nb::object copied(std::span<const T> values) {
  return nb::cast(to_numpy(std::vector<T>(values.begin(), values.end())));
}

Table forest_arrays(const Forest& forest) {
  Table table;
  const std::string& bytes = forest.labels().bytes();
  table["label_bytes"] = to_numpy(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  table["label_ends"] = copied<std::int64_t>(forest.labels().ends());
  std::vector<std::int32_t> node_labels;
  std::vector<std::int64_t> child_begins{0};
  for (std::size_t i = 0; i < forest.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    node_labels.push_back(forest.label(node));
    child_begins.push_back(child_begins.back() + static_cast<std::int64_t>(forest.children(node).size()));
  }
  table["node_labels"] = to_numpy(std::move(node_labels));
  table["child_begins"] = to_numpy(std::move(child_begins));
  table["children"] = copied<NodeId>(forest.all_children());
  return table;
}

std::shared_ptr<Forest> forest_from_arrays(const Array<std::uint8_t>& label_bytes,
                                           const Array<std::int64_t>& label_ends,
                                           const Array<std::int32_t>& node_labels,
                                           const Array<std::int64_t>& child_begins,
                                           const Array<NodeId>& children) {
  const std::string_view bytes(reinterpret_cast<const char*>(label_bytes.data()), label_bytes.size());
  return std::make_shared<Forest>(
      data::restore_forest({bytes, view(label_ends), view(node_labels), view(child_begins), view(children)}));
}

void bind_forest(nb::module_& module) {
  nb::class_<Forest>(module, "Forest")
      .def(nb::init<>())
      .def("add_brackets", &add_brackets, nb::arg("trees"), nb::arg("first"))
      .def("read_brackets", &read_brackets, nb::arg("name"), nb::arg("text"))
      .def("add_preorder", &add_preorder, nb::arg("labels"), nb::arg("arities"))
      .def("absorb", &absorb, nb::arg("other"), nb::arg("roots"))
      .def(
          "brackets",
          [](const Forest& forest, NodeId root, bool bracket_leaves) {
            check_roots(forest, std::span(&root, 1));
            const std::string text =
                root < 0 ? std::string() : data::to_brackets(forest, root, bracket_leaves);
            return nb::steal(
                PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
          },
          nb::arg("root"), nb::arg("bracket_leaves"),
          nb::sig("def brackets(self, root: int, bracket_leaves: bool) -> str"))
      .def("arrays", &forest_arrays)
      .def_static("from_arrays", &forest_from_arrays, nb::arg("label_bytes"), nb::arg("label_ends"),
                  nb::arg("node_labels"), nb::arg("child_begins"), nb::arg("children"))
      .def_prop_ro("nodes", [](const Forest& forest) { return forest.size(); })
      .def_prop_ro("labels", [](const Forest& forest) { return forest.label_count(); })
      .def_prop_ro("productions", [](const Forest& forest) { return forest.production_count(); })
      .def_prop_ro("nbytes", [](const Forest& forest) { return forest.memory(); });
}

nb::list names_of(const data::NameTable& names) {
  nb::list list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names.name(static_cast<std::int32_t>(i));
    list.append(nb::steal(
        PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "surrogateescape")));
  }
  return list;
}

Table take_examples(data::TreeLines& lines) {
  data::TreeExamples& examples = lines.examples();
  Table table;
  table["label_names"] = names_of(examples.label_names);
  table["labels"] = to_numpy(std::move(examples.labels));
  table["queries"] = to_numpy(std::move(examples.queries));
  table["tree_channels"] = names_of(examples.tree_channels);
  table["tree_ends"] = to_numpy(std::move(examples.tree_ends));
  table["tree_channel"] = to_numpy(std::move(examples.tree_channel));
  table["roots"] = to_numpy(std::move(examples.roots));
  table["vector_channels"] = names_of(examples.vector_channels);
  table["vector_ends"] = to_numpy(std::move(examples.vector_ends));
  table["vector_channel"] = to_numpy(std::move(examples.vector_channel));
  table["entry_ends"] = to_numpy(std::move(examples.entry_ends));
  table["indices"] = to_numpy(std::move(examples.indices));
  table["values"] = to_numpy(std::move(examples.values));
  table["features"] = names_of(examples.features);
  return table;
}

void bind_lines(nb::module_& module) {
  using data::TreeLines;
  nb::class_<TreeLines>(module, "TreeLines")
      .def(nb::init<std::string, std::shared_ptr<Forest>>(), nb::arg("file"), nb::arg("forest"))
      .def(
          "feed",
          [](TreeLines& self, const nb::bytes& block) {
            const std::string_view text = text_of(block);
            const Adding adding(self.forest());
            const nb::gil_scoped_release unlocked;
            self.feed(text);
          },
          nb::arg("block"))
      .def("finish",
           [](TreeLines& self) {
             const Adding adding(self.forest());
             const nb::gil_scoped_release unlocked;
             self.finish();
           })
      .def("take", &take_examples);
}

// --- Kernels ---------------------------------------------------------------------------------------------

kernels::TreeKernelKind kernel_kind(const std::string& name) {
  using Kind = kernels::TreeKernelKind;
  if (name == "st") return Kind::subtree;
  if (name == "sst") return Kind::subset_tree;
  if (name == "sst_bow") return Kind::subset_tree_words;
  if (name == "ptk") return Kind::partial_tree;
  throw std::invalid_argument("the tree kernel must be 'st', 'sst', 'sst_bow' or 'ptk', got '" + name + "'");
}

kernels::Combination combination(const std::string& name) {
  using kernels::Combination;
  if (name == "trees") return Combination::trees;
  if (name == "vectors") return Combination::vectors;
  if (name == "sum") return Combination::sum;
  if (name == "product") return Combination::product;
  throw std::invalid_argument("the combination must be 'trees', 'vectors', 'sum' or 'product', got '" + name +
                              "'");
}

// Offsets of lists that lie one after another: from 0, never falling, up to `size`.
void check_offsets(std::span<const std::int64_t> offsets, std::size_t lists, std::size_t size) {
  bool sound =
      offsets.size() == lists + 1 && offsets.front() == 0 && static_cast<std::size_t>(offsets.back()) == size;
  for (std::size_t i = 0; sound && i + 1 < offsets.size(); ++i) sound = offsets[i] <= offsets[i + 1];
  if (!sound) throw std::invalid_argument("the offsets of examples do not fit what they have");
}

// One side of a kernel: trees are (offsets, roots) a channel, vectors (offsets, entry offsets, columns,
// values).
using TreeChannel = std::tuple<Array<std::int64_t>, Array<NodeId>>;
using VectorChannel =
    std::tuple<Array<std::int64_t>, Array<std::int64_t>, Array<std::int32_t>, Array<double>>;

kernels::VectorRows vector_rows(const ExampleKernel& kernel, bool normalize, std::size_t size,
                                const VectorChannel& channel) {
  const auto& [offsets, entry_offsets, columns, values] = channel;
  if (entry_offsets.size() == 0) throw std::invalid_argument("the vectors have no offsets of entries");
  check_offsets(view(offsets), size, entry_offsets.size() - 1);
  check_offsets(view(entry_offsets), entry_offsets.size() - 1, columns.size());
  if (columns.size() != values.size())
    throw std::invalid_argument("the vectors have not as many values as columns");
  for (const std::int32_t column : view(columns)) {
    if (column < 0 || column == std::numeric_limits<std::int32_t>::max())
      throw std::out_of_range("a column of a vector is out of range");
  }
  return {kernel.vector, normalize, view(offsets), view(entry_offsets), view(columns), view(values)};
}

std::shared_ptr<ExampleSet> example_set(const ExampleKernel& kernel, std::shared_ptr<Forest> forest,
                                        std::size_t size, const std::vector<TreeChannel>& trees,
                                        const std::vector<VectorChannel>& vectors, bool normalize_trees,
                                        bool normalize_vectors, bool indexed, int threads) {
  auto set = std::make_shared<ExampleSet>();
  set->forest = forest;
  set->size = size;
  for (const auto& [offsets, roots] : trees) {
    check_offsets(view(offsets), size, roots.size());
    check_roots(*forest, view(roots));
  }
  for (const VectorChannel& channel : vectors)
    set->vectors.push_back(vector_rows(kernel, normalize_vectors, size, channel));
  const nb::gil_scoped_release unlocked;
  const Reading reading(forest->gate());
  for (const auto& [offsets, roots] : trees) {
    set->trees.push_back(kernels::TreeCounts::count(kernel.tree, *forest, view(offsets), view(roots),
                                                    normalize_trees, threads));
  }
  if (indexed) set->order = kernels::nodes_in_order(kernel.tree, *forest);
  return set;
}

class MatrixSink final : public kernels::GramSink {
 public:
  MatrixSink(std::vector<double>& values, std::size_t columns) : values_(values), columns_(columns) {}
  void take(std::size_t i, std::size_t first, std::span<const double> kernels) override {
    double* row = values_.data() + i * columns_ + first;
    for (std::size_t j = 0; j < kernels.size(); ++j) row[j] += kernels[j];
  }

 private:
  std::vector<double>& values_;
  std::size_t columns_;
};

nb::ndarray<nb::numpy, double> kernel_matrix(const ExampleKernel& kernel, const ExampleSet& left,
                                             const ExampleSet& right, bool symmetric, int threads,
                                             const OnProgress& on_progress) {
  const std::size_t rows = left.size;
  const std::size_t columns = right.size;
  std::vector<double> values(rows * columns, 0.0);
  watched(
      [&](Monitor& monitor) {
        const Reading reading_left(left.forest->gate());
        const Reading reading_right = left.forest == right.forest ? Reading() : Reading(right.forest->gate());
        MatrixSink sink(values, columns);
        const auto left_all = kernels::all_of(left);
        const auto right_all = kernels::all_of(right);
        kernels::compute_kernels(kernel, {left, left_all, right, right_all, symmetric}, threads, monitor,
                                 sink);
        for (std::size_t i = 0; symmetric && i < rows; ++i) {
          for (std::size_t j = i + 1; j < columns; ++j) values[i * columns + j] = values[j * columns + i];
        }
      },
      on_progress);
  return to_numpy(std::move(values), {rows, columns});
}

void bind_kernels(nb::module_& module) {
  nb::class_<ExampleKernel>(module, "ExampleKernel")
      .def(
          "__init__",
          [](ExampleKernel* self, const std::string& tree, double decay, double width_decay,
             const std::string& vector, int degree, double gamma, double coef0, const std::string& combined,
             double tree_weight) {
            new (self) ExampleKernel{{kernel_kind(tree), decay, width_decay},
                                     kernel_function(vector, degree, gamma, coef0),
                                     combination(combined),
                                     tree_weight};
          },
          nb::arg("tree"), nb::arg("decay"), nb::arg("width_decay"), nb::arg("vector"), nb::arg("degree"),
          nb::arg("gamma"), nb::arg("coef0"), nb::arg("combination"), nb::arg("tree_weight"));
  nb::class_<ExampleSet>(module, "ExampleSet").def_prop_ro("size", [](const ExampleSet& set) {
    return set.size;
  });
  module.def("example_set", &example_set, nb::arg("kernel"), nb::arg("forest"), nb::arg("size"),
             nb::arg("trees"), nb::arg("vectors"), nb::arg("normalize_trees"), nb::arg("normalize_vectors"),
             nb::arg("indexed"), nb::arg("threads"));
  module.def("kernel_matrix", &kernel_matrix, nb::arg("kernel"), nb::arg("left"), nb::arg("right"),
             nb::arg("symmetric"), nb::arg("threads"), nb::arg("on_progress").none());
  module.def(
      "self_kernels",
      [](const ExampleKernel& kernel, const ExampleSet& set, int threads) {
        std::vector<double> values;
        {
          const nb::gil_scoped_release unlocked;
          const Reading reading(set.forest->gate());
          values = kernels::self_kernels(kernel, set, threads);
        }
        return to_numpy(std::move(values));
      },
      nb::arg("kernel"), nb::arg("set"), nb::arg("threads"));
}

// --- Machines --------------------------------------------------------------------------------------------

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::shared_ptr<ExampleMachine> machine(const ExampleKernel& kernel, std::shared_ptr<ExampleSet> set,
                                        const Array<std::int32_t>& chosen, const Matrix& coefficients) {
  if (coefficients.shape(0) != chosen.size())
    throw std::invalid_argument("there are not as many coefficients as examples");
  for (const std::int32_t example : view(chosen)) {
    if (example < 0 || static_cast<std::size_t>(example) >= set->size)
      throw std::out_of_range("no such example");
  }
  const nb::gil_scoped_release unlocked;
  const Reading reading(set->forest->gate());
  return std::make_shared<ExampleMachine>(
      kernel, set, std::vector<std::int32_t>(chosen.data(), chosen.data() + chosen.size()),
      std::vector<double>(coefficients.data(), coefficients.data() + coefficients.size()),
      coefficients.shape(1));
}

void bind_machines(nb::module_& module) {
  nb::class_<ExampleMachine>(module, "ExampleMachine")
      .def(
          "score",
          [](const ExampleMachine& self, const ExampleSet& examples, int threads,
             const OnProgress& on_progress) {
            std::vector<double> scores(examples.size * self.scores(), 0.0);
            watched(
                [&](Monitor& monitor) {
                  const Reading reading(examples.forest->gate());
                  self.add_scores(examples, {}, threads, monitor, scores);
                },
                on_progress);
            return to_numpy(std::move(scores), {examples.size, self.scores()});
          },
          nb::arg("examples"), nb::arg("threads"), nb::arg("on_progress").none())
      .def_prop_ro("scores", &ExampleMachine::scores)
      .def_prop_ro("nbytes", &ExampleMachine::memory);
  module.def("example_machine", &machine, nb::arg("kernel"), nb::arg("set"), nb::arg("chosen"),
             nb::arg("coefficients"));
  nb::class_<engines::OneTreeScorer>(module, "OneTreeScorer")
      .def(nb::init<std::shared_ptr<const ExampleMachine>, bool>(), nb::arg("machine"), nb::arg("normalize"))
      .def(
          "score",
          [](engines::OneTreeScorer& self, nb::str tree) {
            const Utf8 text(tree);
            try {
              return self.score(text.view());
            } catch (const data::BracketError& error) { refuse("tree", text.view(), error); }
          },
          nb::arg("tree"));
}

// --- Fragments -------------------------------------------------------------------------------------------

using FragmentTuple = nb::typed<nb::tuple, nb::str, double, double, double, int>;

// ([(text, weight, occurrences, contribution, productions)], complete)
nb::typed<nb::tuple, nb::typed<nb::list, FragmentTuple>, bool> fragment_table(
    const engines::FragmentList& list) {
  nb::typed<nb::list, FragmentTuple> fragments;
  for (const engines::Fragment& one : list.fragments) {
    const nb::object text = nb::steal(
        PyUnicode_DecodeUTF8(one.text.data(), static_cast<Py_ssize_t>(one.text.size()), "surrogateescape"));
    fragments.append(nb::make_tuple(text, one.weight, one.occurrences, one.contribution, one.productions));
  }
  return nb::typed<nb::tuple, nb::typed<nb::list, FragmentTuple>, bool>(
      nb::make_tuple(fragments, list.complete));
}

const kernels::TreeWeights& weights_of(const ExampleMachine& machine, std::size_t channel) {
  if (channel >= machine.tree_weights().size())
    throw std::out_of_range("the model has no such channel of trees");
  return machine.tree_weights()[channel];
}

void bind_fragments(nb::module_& module) {
  module.def(
      "heaviest_fragments",
      [](const ExampleMachine& machine, std::size_t channel, std::size_t top, std::size_t most_looked_at,
         std::size_t score) {
        const kernels::TreeWeights& weights = weights_of(machine, channel);
        engines::FragmentList list;
        {
          const nb::gil_scoped_release unlocked;
          const Reading reading(machine.forest().gate());
          list = engines::heaviest_fragments(machine.kernel().tree, machine.forest(), weights,
                                             {top, most_looked_at, score});
        }
        return fragment_table(list);
      },
      nb::arg("machine"), nb::arg("channel"), nb::arg("top"), nb::arg("most_looked_at"), nb::arg("score"));
  module.def(
      "decisive_fragments",
      [](const ExampleMachine& machine, const ExampleSet& examples, std::size_t example, std::size_t channel,
         std::size_t top, std::size_t most_looked_at, std::size_t score) {
        const kernels::TreeWeights& weights = weights_of(machine, channel);
        if (channel >= examples.trees.size() || example >= examples.size)
          throw std::out_of_range("there is no such tree");
        engines::FragmentList list;
        {
          const nb::gil_scoped_release unlocked;
          const Reading reading(examples.forest->gate());
          list =
              engines::decisive_fragments(machine.kernel().tree, machine.forest(), weights, *examples.forest,
                                          examples.trees[channel].row(example), {top, most_looked_at, score});
        }
        return fragment_table(list);
      },
      nb::arg("machine"), nb::arg("examples"), nb::arg("example"), nb::arg("channel"), nb::arg("top"),
      nb::arg("most_looked_at"), nb::arg("score"));
}

// --- Learners --------------------------------------------------------------------------------------------

// Examples of class `positive` against all others.
tree::Labelling labelling(std::span<const std::int32_t> codes, std::span<const double> costs,
                          std::int32_t positive, double imbalance) {
  tree::Labelling result;
  result.labels.reserve(codes.size());
  result.costs.reserve(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const bool is_positive = codes[i] == positive;
    result.labels.push_back(is_positive ? 1 : -1);
    result.costs.push_back(costs[i] * (is_positive ? imbalance : 1.0));
  }
  return result;
}

void check_targets(const ExampleSet& set, const Array<std::int32_t>& codes, const Array<double>& costs) {
  if (codes.size() != set.size || costs.size() != set.size)
    throw std::invalid_argument("there are not as many labels and costs as examples");
  double total = 0.0;
  for (const double cost : view(costs)) {
    if (!(cost >= 0.0) || !std::isfinite(cost))
      throw std::invalid_argument(
          "the weights of classes and examples, times C, must be finite and not negative");
    total += cost;
  }
  if (!(total > 0.0) || !std::isfinite(total))
    throw std::invalid_argument("the weights of all examples together must be above 0, and finite");
}

Table trained_table(tree::Trained&& trained) {
  Table table;
  table["coefficients"] = to_numpy(std::move(trained.coefficients));
  table["bias"] = trained.bias;
  table["objective"] = trained.objective;
  table["dual_objective"] = trained.dual_objective;
  table["rounds"] = trained.rounds;
  table["converged"] = trained.converged;
  return table;
}

nb::typed<nb::list, Table> train_exact(const ExampleKernel& kernel, std::shared_ptr<ExampleSet> set,
                                       const Array<std::int32_t>& codes, const Array<double>& costs,
                                       const std::vector<std::int32_t>& positives, double imbalance,
                                       double tolerance, std::int64_t max_rounds, bool bias,
                                       std::size_t memory, int threads, const OnProgress& on_progress) {
  check_targets(*set, codes, costs);
  std::vector<tree::Labelling> labellings;
  for (const std::int32_t positive : positives)
    labellings.push_back(labelling(view(codes), view(costs), positive, imbalance));
  std::vector<tree::Trained> trained;
  watched(
      [&](Monitor& monitor) {
        const Reading reading(set->forest->gate());
        trained = tree::train_exact(kernel, set, labellings, {tolerance, max_rounds, bias, memory, threads},
                                    monitor);
      },
      on_progress);
  nb::typed<nb::list, Table> tables;
  for (tree::Trained& one : trained) tables.append(trained_table(std::move(one)));
  return tables;
}

tree::CutMethod cut_method(const std::string& name) {
  using tree::CutMethod;
  if (name == "forest") return CutMethod::forest;
  if (name == "usvm") return CutMethod::pairs;
  if (name == "sdag") return CutMethod::dag_each;
  if (name == "sdag+") return CutMethod::dag_together;
  if (name == "kernels") return CutMethod::kernels;
  throw std::invalid_argument(
      "cuts are computed by 'forest', 'usvm', 'sdag', 'sdag+' or 'kernels', not by '" + name + "'");
}

Table train_sampled(const ExampleKernel& kernel, std::shared_ptr<ExampleSet> set,
                    const Array<std::int32_t>& codes, const Array<double>& costs, std::int32_t positive,
                    std::int64_t problem, std::int64_t problems, double imbalance, double C, double epsilon,
                    std::int64_t max_rounds, std::int64_t sample_size, bool bias, std::uint64_t seed,
                    const std::string& method, int threads, const OnProgress& on_progress) {
  check_targets(*set, codes, costs);
  const tree::Labelling examples = labelling(view(codes), view(costs), positive, imbalance);
  const tree::SampledOptions options{C,    epsilon, max_rounds,         sample_size,
                                     bias, seed,    cut_method(method), threads};
  Progress progress;
  progress.problem = problem;
  progress.problems = problems;
  tree::Trained trained;
  watched(
      [&](Monitor& monitor) {
        const Reading reading(set->forest->gate());
        trained = tree::train_sampled(kernel, set, examples, options, progress, monitor);
      },
      on_progress);
  return trained_table(std::move(trained));
}

void bind_learners(nb::module_& module) {
  module.def("train_exact_trees", &train_exact, nb::arg("kernel"), nb::arg("set"), nb::arg("codes"),
             nb::arg("costs"), nb::arg("positives"), nb::arg("imbalance"), nb::arg("tolerance"),
             nb::arg("max_rounds"), nb::arg("bias"), nb::arg("memory"), nb::arg("threads"),
             nb::arg("on_progress").none());
  module.def("train_sampled_trees", &train_sampled, nb::arg("kernel"), nb::arg("set"), nb::arg("codes"),
             nb::arg("costs"), nb::arg("positive"), nb::arg("problem"), nb::arg("problems"),
             nb::arg("imbalance"), nb::arg("C"), nb::arg("epsilon"), nb::arg("max_rounds"),
             nb::arg("sample_size"), nb::arg("bias"), nb::arg("seed"), nb::arg("method"), nb::arg("threads"),
             nb::arg("on_progress").none());
}

}  // namespace

void bind_tree(nb::module_& module) {
  bind_forest(module);
  bind_lines(module);
  bind_kernels(module);
  bind_machines(module);
  bind_fragments(module);
  bind_learners(module);
}

}  // namespace unkernel::bindings
