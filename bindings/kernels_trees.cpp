// Kernels of examples that consist of trees and vectors, and the machines that score such examples.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>
#include <tuple>

#include "named_values.hpp"
#include "trees.hpp"
#include "unkernel/engines/trees/one_tree.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"

namespace unkernel::bindings {
namespace {

using data::Forest;
using data::NodeId;
using kernels::ExampleKernel;
using kernels::ExampleMachine;
using kernels::ExampleSet;

constexpr Named<kernels::TreeKernelKind> kernel_kinds[] = {
    {"st", kernels::TreeKernelKind::subtree},
    {"sst", kernels::TreeKernelKind::subset_tree},
    {"sst_bow", kernels::TreeKernelKind::subset_tree_words},
    {"ptk", kernels::TreeKernelKind::partial_tree}};
constexpr Named<kernels::Combination> combinations[] = {{"trees", kernels::Combination::trees},
                                                        {"vectors", kernels::Combination::vectors},
                                                        {"sum", kernels::Combination::sum},
                                                        {"product", kernels::Combination::product}};

// Throws unless the offsets of consecutive lists start at 0, never descend and end at `size`.
void check_offsets(std::span<const std::int64_t> offsets, std::size_t lists, std::size_t size) {
  bool is_valid =
      offsets.size() == lists + 1 && offsets.front() == 0 && static_cast<std::size_t>(offsets.back()) == size;
  for (std::size_t i = 0; is_valid && i + 1 < offsets.size(); ++i) is_valid = offsets[i] <= offsets[i + 1];
  if (!is_valid) throw std::invalid_argument("the offsets of examples do not fit what they have");
}

// The trees of a channel are (offsets, roots); the vectors are (offsets, entry offsets, columns, values).
using TreeChannel = std::tuple<Array<std::int64_t>, Array<NodeId>>;
using VectorChannel =
    std::tuple<Array<std::int64_t>, Array<std::int64_t>, Array<std::int32_t>, Array<double>>;

kernels::VectorRows make_vector_rows(const ExampleKernel& kernel, bool normalize, std::size_t size,
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

constexpr std::size_t max_nodes_on_this_thread = 1 << 12;

std::size_t count_nodes(const Forest& forest) {
  const Unlocked unlocked;
  const ReadingLock reading(forest.gate());
  return forest.size();
}

std::shared_ptr<ExampleSet> make_example_set(const ExampleKernel& kernel, std::shared_ptr<Forest> forest,
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
    set->vectors.push_back(make_vector_rows(kernel, normalize_vectors, size, channel));
  run_interruptibly_if(
      normalize_trees && count_nodes(*forest) > max_nodes_on_this_thread, [&](const Monitor& monitor) {
        const ReadingLock reading(forest->gate());
        for (const auto& [offsets, roots] : trees) {
          set->trees.push_back(kernels::TreeCounts::count(kernel.tree, *forest, view(offsets), view(roots),
                                                          normalize_trees, {threads, &monitor}));
        }
        if (indexed) set->order = kernels::nodes_in_order(kernel.tree, *forest);
      });
  return set;
}

// Adds kernel values to a matrix with `columns` columns.
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

nb::ndarray<nb::numpy, double> compute_kernel_matrix(const ExampleKernel& kernel, const ExampleSet& left,
                                                     const ExampleSet& right, bool symmetric, int threads,
                                                     const OnProgress& on_progress) {
  const std::size_t rows = left.size;
  const std::size_t columns = right.size;
  std::vector<double> values(rows * columns, 0.0);
  run_interruptibly(
      [&](Monitor& monitor) {
        const ReadingLock reading_left(left.forest->gate());
        const ReadingLock reading_right =
            left.forest == right.forest ? ReadingLock() : ReadingLock(right.forest->gate());
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

void bind_example_kernels(nb::module_& module) {
  nb::class_<ExampleKernel>(module, "ExampleKernel")
      .def(
          "__init__",
          [](ExampleKernel* self, const std::string& tree, double decay, double width_decay,
             const std::string& vector, int degree, double gamma, double coef0, const std::string& combined,
             double tree_weight) {
            new (self)
                ExampleKernel{{find_value(kernel_kinds, tree, "the tree kernel must be"), decay, width_decay},
                              make_kernel(vector, degree, gamma, coef0),
                              find_value(combinations, combined, "the combination must be"),
                              tree_weight};
          },
          nb::arg("tree"), nb::arg("decay"), nb::arg("width_decay"), nb::arg("vector"), nb::arg("degree"),
          nb::arg("gamma"), nb::arg("coef0"), nb::arg("combination"), nb::arg("tree_weight"));
  nb::class_<ExampleSet>(module, "ExampleSet").def_prop_ro("size", [](const ExampleSet& set) {
    return set.size;
  });
  module.def("example_set", &make_example_set, nb::arg("kernel"), nb::arg("forest"), nb::arg("size"),
             nb::arg("trees"), nb::arg("vectors"), nb::arg("normalize_trees"), nb::arg("normalize_vectors"),
             nb::arg("indexed"), nb::arg("threads"));
  module.def("kernel_matrix", &compute_kernel_matrix, nb::arg("kernel"), nb::arg("left"), nb::arg("right"),
             nb::arg("symmetric"), nb::arg("threads"), nb::arg("on_progress").none());
  module.def(
      "self_kernels",
      [](const ExampleKernel& kernel, const ExampleSet& set, int threads) {
        std::vector<double> values;
        run_interruptibly([&](const Monitor& monitor) {
          const ReadingLock reading(set.forest->gate());
          values = kernels::self_kernels(kernel, set, {threads, &monitor});
        });
        return to_numpy(std::move(values));
      },
      nb::arg("kernel"), nb::arg("set"), nb::arg("threads"));
}

constexpr std::size_t max_tree_bytes_under_lock = 1 << 11;  // scored in some hundredths of a millisecond
constexpr std::size_t max_tree_bytes_on_this_thread = 1 << 14;

// --- Machines --------------------------------------------------------------------------------------------

using Matrix = Aligned<nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;

void check_indices(const ExampleSet& set, const Array<std::int32_t>& indices) {
  for (const std::int32_t example : view(indices)) {
    if (example < 0 || static_cast<std::size_t>(example) >= set.size)
      throw std::out_of_range("no such example");
  }
}

std::shared_ptr<ExampleMachine> make_machine(const ExampleKernel& kernel, std::shared_ptr<ExampleSet> set,
                                             const Array<std::int32_t>& chosen, const Matrix& coefficients) {
  if (coefficients.shape(0) != chosen.size())
    throw std::invalid_argument("there are not as many coefficients as examples");
  check_indices(*set, chosen);
  const Unlocked unlocked;
  const ReadingLock reading(set->forest->gate());
  auto machine = std::make_shared<ExampleMachine>(
      kernel, set, to_vector(chosen),
      std::vector<double>(coefficients.data(), coefficients.data() + coefficients.size()),
      coefficients.shape(1));
  machine->prepare_for_many();
  return machine;
}

nb::ndarray<nb::numpy, double> score_chosen(const ExampleMachine& self, const ExampleSet& examples,
                                            const Array<std::int32_t>& chosen, int threads) {
  check_indices(examples, chosen);
  std::vector<double> scores(chosen.size() * self.scores(), 0.0);
  if (chosen.size() > 0) {  // add_scores would score all examples for an empty list
    run_interruptibly([&](const Monitor& monitor) {
      const ReadingLock reading(examples.forest->gate());
      self.add_scores(examples, view(chosen), threads, monitor, scores);
    });
  }
  return to_numpy(std::move(scores), {chosen.size(), self.scores()});
}

// If the kernel uses vectors, all examples are scored in one call, because every call indexes the model's
// vectors again.
nb::ndarray<nb::numpy, double> score_all(const ExampleMachine& self, const ExampleSet& examples,
                                         int threads) {
  std::vector<double> scores(examples.size * self.scores(), 0.0);
  if (self.kernel().uses_vectors()) {
    run_interruptibly([&](const Monitor& monitor) {
      const ReadingLock reading(examples.forest->gate());
      self.add_scores(examples, {}, threads, monitor, scores);
    });
    return to_numpy(std::move(scores), {examples.size, self.scores()});
  }
  const std::vector<std::int32_t> all = kernels::all_of(examples);
  ExampleMachine::Groups groups;
  run_pieces_interruptibly(static_cast<std::int64_t>(examples.size), [&](std::int64_t begin, std::int64_t end,
                                                                         const Monitor& monitor) {
    const ReadingLock reading(examples.forest->gate());
    if (begin == 0) groups = self.find_groups(examples);
    const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
    self.add_scores(examples, groups, std::span(all).subspan(first, count), threads, monitor,
                    std::span(scores).subspan(first * self.scores(), count * self.scores()));
  });
  return to_numpy(std::move(scores), {examples.size, self.scores()});
}

void bind_machines(nb::module_& module) {
  nb::class_<ExampleMachine>(module, "ExampleMachine")
      .def("score", &score_all, nb::arg("examples"), nb::arg("threads"))
      .def("score_chosen", &score_chosen, nb::arg("examples"), nb::arg("chosen"), nb::arg("threads"))
      .def_prop_ro("scores", &ExampleMachine::scores)
      .def_prop_ro("nbytes", &ExampleMachine::memory);
  module.def("example_machine", &make_machine, nb::arg("kernel"), nb::arg("set"), nb::arg("chosen"),
             nb::arg("coefficients"));
  nb::class_<engines::OneTreeScorer>(module, "OneTreeScorer")
      .def(nb::init<std::shared_ptr<const ExampleMachine>, bool>(), nb::arg("machine"), nb::arg("normalize"))
      .def(
          "score",
          [](engines::OneTreeScorer& self, nb::str tree) {
            const Utf8 text(tree);
            try {
              if (text.view().size() <= max_tree_bytes_under_lock) return self.score(text.view(), Monitor());
              std::vector<double> scores;
              run_interruptibly_if(text.view().size() > max_tree_bytes_on_this_thread,
                                   [&](const Monitor& monitor) {
                                     // Uses another scorer, because other threads may use this scorer.
                                     scores = self.another().score(text.view(), monitor);
                                   });
              return scores;
            } catch (const data::BracketError& error) { throw_format_error("tree", text.view(), error); }
          },
          nb::arg("tree"));
}

}  // namespace

void bind_tree_kernels(nb::module_& module) {
  bind_example_kernels(module);
  bind_machines(module);
}

}  // namespace unkernel::bindings
