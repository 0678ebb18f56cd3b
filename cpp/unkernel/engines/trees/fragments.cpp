#include "unkernel/engines/trees/fragments.hpp"

#include <stdexcept>

#include "unkernel/data/trees/brackets.hpp"
#include "unkernel/engines/trees/partial_fragments.hpp"
#include "unkernel/engines/trees/subset_fragments.hpp"

namespace unkernel::engines {

namespace {

using namespace fragment_search;

// Finds fragments of the subtree kernel. These are complete subtrees, each given by one node, so no search is
// needed.
class Subtrees {
 public:
  struct State {};

  Subtrees(const TreeKernel& kernel, const Sides& sides, std::size_t)
      : sides_(sides), sizes_(kernels::subtree_constants(kernel, sides.model.forest)) {}

  void begin(Agenda<State>& agenda) {
    std::vector<double> occurrences(sizes_.size(), sides_.tree == nullptr ? 1.0 : 0.0);
    if (sides_.tree != nullptr) {
      for (const WeightedNode& root : sides_.tree->roots) {
        const NodeId node = sides_.tree->groups[at(root.node)];
        if (node >= 0) occurrences[at(node)] += root.weight;
      }
    }
    for (const WeightedNode& root : sides_.model.roots) {
      const FoundFragment fragment{sizes_[at(root.node)] * root.weight, occurrences[at(root.node)], root.node,
                                   root.node};
      if (fragment.size() > agenda.best.threshold()) agenda.best.add(fragment);
    }
  }
  void grow(const State&, Agenda<State>&) {}

  // Returns the number of inner nodes of the subtree. A node with several parents counts once per parent.
  int productions(std::int32_t node) const {
    const Forest& forest = sides_.model.forest;
    std::vector<double> counts(at(node) + 1, 0.0);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto children = forest.children(static_cast<NodeId>(i));
      if (!children.empty()) counts[i] = 1.0;
      for (const NodeId child : children) counts[i] += counts[at(child)];
    }
    return static_cast<int>(std::min(counts.back(), static_cast<double>(std::numeric_limits<int>::max())));
  }

  std::string text(const FoundFragment& fragment) const {
    return data::to_brackets(sides_.model.forest, fragment.root, false);
  }

 private:
  Sides sides_;
  std::vector<double> sizes_;
};

template <class Growth>
FragmentList search(const TreeKernel& kernel, const Sides& sides, const FragmentOptions& options) {
  Growth growth(kernel, sides, kernels::group_count(kernel, sides.model.forest));
  Agenda<typename Growth::State> agenda(options);
  growth.begin(agenda);
  while (const auto state = agenda.next()) growth.grow(*state, agenda);
  FragmentList list{{}, agenda.complete, 0.0};
  const double occurrence_factor = sides.tree == nullptr ? 0.0 : 1.0;
  for (const FoundFragment& fragment : agenda.best.list_sorted()) {
    list.fragments.push_back(
        {growth.text(fragment), fragment.weight, occurrence_factor * fragment.occurrences,
         occurrence_factor * fragment.occurrences * fragment.weight, growth.productions(fragment.step)});
  }
  return list;
}

FragmentList search(const TreeKernel& kernel, const Sides& sides, const FragmentOptions& options) {
  switch (kernel.kind) {
    case TreeKernelKind::subtree: return search<Subtrees>(kernel, sides, options);
    case TreeKernelKind::subset_tree:
    case TreeKernelKind::subset_tree_words: return search<SubsetTrees>(kernel, sides, options);
    case TreeKernelKind::partial_tree: return search<PartialTrees>(kernel, sides, options);
  }
  throw std::invalid_argument("unknown tree kernel");
}

void require_valid(const TreeKernel& kernel, const kernels::TreeWeights& weights,
                   const FragmentOptions& options) {
  if (!(kernel.decay > 0.0)) throw std::invalid_argument("fragments: the decay must be above 0");
  if (kernel.kind == TreeKernelKind::partial_tree && !(kernel.width_decay > 0.0)) {
    throw std::invalid_argument("fragments: the width decay must be above 0");
  }
  if (options.score >= weights.scores())
    throw std::out_of_range("fragments: the model has no score with this index");
}

Side model_side(const Forest& forest, std::span<const std::int32_t> groups,
                const kernels::TreeWeights& weights, std::size_t score) {
  Side side{forest, groups, {}};
  for (std::size_t i = 0; i < weights.index().size(); ++i) {
    const double weight = weights.node_weights(i)[score];
    if (weight != 0.0) side.roots.push_back({weights.index().node(i), weight});
  }
  return side;
}

Side tree_side(const Forest& forest, std::span<const std::int32_t> groups, const kernels::TreeRow& tree) {
  Side side{forest, groups, {}};
  side.roots.reserve(tree.nodes.size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    side.roots.push_back({tree.nodes[i], tree.weights[i]});
  }
  return side;
}

double score_of(const kernels::TreeWeights& weights, const Side& side, const kernels::TreeRow& tree,
                std::size_t score) {
  const std::vector<std::int32_t> groups = kernels::index_groups(weights.index(), side.groups);
  std::vector<double> scores(weights.scores(), 0.0);
  kernels::TreeScorer(weights, side.forest, groups).add(tree, scores.data(), Monitor());
  return scores[score];
}

}  // namespace

FragmentList heaviest_fragments(const TreeKernel& kernel, const Forest& model_forest,
                                const kernels::TreeWeights& weights, const FragmentOptions& options) {
  require_valid(kernel, weights, options);
  const std::vector<std::int32_t> groups = kernels::groups_in(kernel, model_forest, model_forest);
  const Side model = model_side(model_forest, groups, weights, options.score);
  return search(kernel, {model, nullptr}, options);
}

FragmentList decisive_fragments(const TreeKernel& kernel, const Forest& model_forest,
                                const kernels::TreeWeights& weights, const Forest& tree_forest,
                                const kernels::TreeRow& tree, const FragmentOptions& options) {
  require_valid(kernel, weights, options);
  const std::vector<std::int32_t> model_groups = kernels::groups_in(kernel, model_forest, model_forest);
  const std::vector<std::int32_t> tree_groups = kernels::groups_in(kernel, tree_forest, model_forest);
  const Side model = model_side(model_forest, model_groups, weights, options.score);
  const Side explained = tree_side(tree_forest, tree_groups, tree);
  FragmentList list = search(kernel, {model, &explained}, options);
  list.score = score_of(weights, explained, tree, options.score);
  return list;
}

}  // namespace unkernel::engines
