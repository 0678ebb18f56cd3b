#include "unkernel/engines/trees/one_tree.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "unkernel/data/trees/brackets.hpp"

namespace unkernel::engines {

OneTreeScorer::OneTreeScorer(std::shared_ptr<const kernels::ExampleMachine> machine, bool normalize)
    : machine_(std::move(machine)), normalize_(normalize) {
  if (machine_->kernel().combination != kernels::Combination::trees || machine_->tree_weights().size() != 1) {
    throw std::invalid_argument(
        "to score a single tree, a model must have one tree per example, and no vectors");
  }
}

std::vector<double> OneTreeScorer::score(std::string_view tree, const Monitor& monitor) {
  kernels::Forest forest;
  data::BracketReader reader(forest, data::WordStyle::apart);
  std::size_t position = data::skip_blanks(tree, 0);
  const kernels::NodeId root = reader.read(tree, position);
  position = data::skip_blanks(tree, position);
  if (position < tree.size()) throw data::BracketError(position, "unexpected text after the tree");
  const kernels::TreeKernel& kernel = machine_->kernel().tree;
  const kernels::TreeWeights& weights = machine_->tree_weights().front();
  const kernels::TreeCounts counts = kernels::TreeCounts::count(
      kernel, forest, std::array<std::int64_t, 2>{0, 1}, std::array{root}, normalize_, {1, &monitor});
  const std::vector<std::int32_t> groups =
      kernels::index_groups(weights.index(), kernels::groups_in(kernel, forest, machine_->forest()));
  if (scorer_ == nullptr) {
    scorer_ = std::make_unique<kernels::TreeScorer>(weights, forest, groups);
  } else {
    scorer_->use(forest, groups);
  }
  std::vector<double> scores(weights.scores(), 0.0);
  scorer_->add(counts.row(0), scores.data(), monitor);
  return scores;
}

}  // namespace unkernel::engines
