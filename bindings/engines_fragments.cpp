// The fragments of trees that weigh most in a model or a score.
#include <nanobind/stl/tuple.h>

#include "trees.hpp"
#include "unkernel/engines/trees/fragments.hpp"
#include "unkernel/kernels/trees/tree_examples.hpp"

namespace unkernel::bindings {
namespace {

using kernels::ExampleMachine;
using kernels::ExampleSet;

using FragmentTuple = nb::typed<nb::tuple, nb::str, double, double, double, int>;

// Returns ([(text, weight, occurrences, contribution, productions)], complete).
nb::typed<nb::tuple, nb::typed<nb::list, FragmentTuple>, bool> to_tuple(const engines::FragmentList& list) {
  nb::typed<nb::list, FragmentTuple> fragments;
  for (const engines::Fragment& fragment : list.fragments) {
    fragments.append(nb::make_tuple(decode_text(fragment.text), fragment.weight, fragment.occurrences,
                                    fragment.contribution, fragment.productions));
  }
  return nb::typed<nb::tuple, nb::typed<nb::list, FragmentTuple>, bool>(
      nb::make_tuple(fragments, list.complete));
}

const kernels::TreeWeights& find_weights(const ExampleMachine& machine, std::size_t channel) {
  if (channel >= machine.tree_weights().size())
    throw std::out_of_range("the model has no such channel of trees");
  return machine.tree_weights()[channel];
}

}  // namespace

void bind_tree_fragments(nb::module_& module) {
  module.def(
      "heaviest_fragments",
      [](const ExampleMachine& machine, std::size_t channel, std::size_t top, std::size_t most_looked_at,
         std::size_t score) {
        const kernels::TreeWeights& weights = find_weights(machine, channel);
        return to_tuple(without_lock([&] {
          const ReadingLock reading(machine.forest().gate());
          return engines::heaviest_fragments(machine.kernel().tree, machine.forest(), weights,
                                             {top, most_looked_at, score});
        }));
      },
      nb::arg("machine"), nb::arg("channel"), nb::arg("top"), nb::arg("most_looked_at"), nb::arg("score"));
  module.def(
      "decisive_fragments",
      [](const ExampleMachine& machine, const ExampleSet& examples, std::size_t example, std::size_t channel,
         std::size_t top, std::size_t most_looked_at, std::size_t score) {
        const kernels::TreeWeights& weights = find_weights(machine, channel);
        if (channel >= examples.trees.size() || example >= examples.size)
          throw std::out_of_range("there is no such tree");
        return to_tuple(without_lock([&] {
          const ReadingLock reading(examples.forest->gate());
          return engines::decisive_fragments(machine.kernel().tree, machine.forest(), weights,
                                             *examples.forest, examples.trees[channel].row(example),
                                             {top, most_looked_at, score});
        }));
      },
      nb::arg("machine"), nb::arg("examples"), nb::arg("example"), nb::arg("channel"), nb::arg("top"),
      nb::arg("most_looked_at"), nb::arg("score"));
}

}  // namespace unkernel::bindings
