// Cuts of trees on a machine that has some of the examples.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <utility>

#include "trees.hpp"
#include "unkernel/tree/cut_scorer.hpp"

namespace unkernel::bindings {
namespace {

using data::Forest;
using kernels::ExampleKernel;
using kernels::ExampleSet;
using tree::CutScorer;
using tree::WeightedTrees;

// The weights of subtrees in each channel of trees, by the nodes of the forest.
using ChannelWeights = Aligned<nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;
using Piece = std::pair<std::shared_ptr<Forest>, ChannelWeights>;

void check_examples(const CutScorer& self, const Array<std::int32_t>& examples) {
  for (const std::int32_t example : view(examples)) {
    if (example < 0 || static_cast<std::size_t>(example) >= self.set().size)
      throw std::out_of_range("no such example");
  }
}

void check_coefficients(const CutScorer& self, const Array<std::int32_t>& examples,
                        const Array<double>& coefficients) {
  check_examples(self, examples);
  if (examples.size() != coefficients.size())
    throw std::invalid_argument("there are not as many coefficients as examples");
}

WeightedTrees to_weighted_trees(const CutScorer& self, const Piece& piece) {
  const auto& [forest, weights] = piece;
  if (weights.shape(0) != self.cuts().channels() || weights.shape(1) != forest->size())
    throw std::invalid_argument("the weights of a cut do not fit its trees");
  WeightedTrees trees{forest, {}};
  for (std::size_t channel = 0; channel < weights.shape(0); ++channel) {
    const double* begin = weights.data() + channel * weights.shape(1);
    trees.weights.emplace_back(begin, begin + weights.shape(1));
  }
  return trees;
}

nb::typed<nb::tuple, Forest, nb::ndarray<nb::numpy, double>> weigh_trees(CutScorer& self,
                                                                         const Array<std::int32_t>& examples,
                                                                         const Array<double>& coefficients) {
  check_coefficients(self, examples, coefficients);
  WeightedTrees trees;
  {
    const Unlocked unlocked;
    const ReadingLock reading(self.set().forest->gate());
    trees = self.weighted_trees(view(examples), view(coefficients));
  }
  std::vector<double> weights;
  for (const std::vector<double>& channel : trees.weights)
    weights.insert(weights.end(), channel.begin(), channel.end());
  const std::size_t nodes = trees.forest->size();
  return nb::make_tuple(std::const_pointer_cast<Forest>(trees.forest),
                        to_numpy(std::move(weights), {trees.weights.size(), nodes}));
}

void add_cut(CutScorer& self, const std::vector<Piece>& pieces) {
  std::vector<WeightedTrees> trees;
  for (const Piece& piece : pieces) trees.push_back(to_weighted_trees(self, piece));
  const Unlocked unlocked;
  self.add(trees);
}

nb::ndarray<nb::numpy, double> score_examples(CutScorer& self, const Array<double>& alphas,
                                              const Array<std::int32_t>& examples, int threads) {
  check_examples(self, examples);
  if (alphas.size() != self.cuts().size())
    throw std::invalid_argument("there are not as many alphas as cuts");
  std::vector<double> scores(examples.size());
  run_interruptibly([&](const Monitor& monitor) {
    const ReadingLock reading(self.set().forest->gate());
    self.score(view(alphas), view(examples), threads, monitor, scores);
  });
  return to_numpy(std::move(scores));
}

nb::ndarray<nb::numpy, double> multiply_examples(CutScorer& self, const Array<std::int32_t>& examples,
                                                 const Array<double>& coefficients, int threads) {
  check_coefficients(self, examples, coefficients);
  std::vector<double> products;
  run_interruptibly([&](const Monitor& monitor) {
    const ReadingLock reading(self.set().forest->gate());
    products = self.products(view(examples), view(coefficients), threads, monitor);
  });
  return to_numpy(std::move(products));
}

}  // namespace

void bind_tree_cuts(nb::module_& module) {
  nb::class_<CutScorer>(module, "TreeCuts")
      .def(
          "__init__",
          [](CutScorer* self, const ExampleKernel& kernel, std::shared_ptr<ExampleSet> set) {
            if (kernel.combination != kernels::Combination::trees)
              throw std::invalid_argument(
                  "cuts are kept apart from their examples for kernels of trees alone");
            new (self) CutScorer(kernel, std::move(set));
          },
          nb::arg("kernel"), nb::arg("set"))
      .def("weighted_trees", &weigh_trees, nb::arg("examples"), nb::arg("coefficients"))
      .def("add", &add_cut, nb::arg("pieces"))
      .def("score", &score_examples, nb::arg("alphas"), nb::arg("examples"), nb::arg("threads"))
      .def("products", &multiply_examples, nb::arg("examples"), nb::arg("coefficients"), nb::arg("threads"))
      .def("__len__", [](const CutScorer& self) { return self.cuts().size(); });
}

}  // namespace unkernel::bindings
