#include "unkernel/kernels/trees/growing_groups.hpp"

#include <algorithm>

#include "unkernel/base/at.hpp"

namespace unkernel::kernels {

GrowingGroups::GrowingGroups(const TreeKernel& kernel, const Forest& forest, const Forest& known)
    : kernel_(kernel),
      forest_(forest),
      known_(known),
      labels_(forest.label_count(), -1),
      productions_(kernel.by_production() ? forest.production_count() : 0, -1),
      nodes_(kernel.kind == TreeKernelKind::subtree ? forest.size() : 0, -1) {}

void GrowingGroups::update() {
  look_up_labels();
  for (; seen_ < known_.size(); ++seen_) {
    const auto node = static_cast<NodeId>(seen_);
    if (kernel_.by_production()) look_up_production(node);
    if (kernel_.kind == TreeKernelKind::subtree) look_up_subtree(node);
  }
}

void GrowingGroups::look_up_labels() {
  for (std::size_t i = labels_here_.size(); i < known_.label_count(); ++i) {
    const auto label = static_cast<std::int32_t>(i);
    const std::int32_t here = forest_.find_label(known_.labels().name(label));
    labels_here_.push_back(here);
    if (here >= 0) labels_[at(here)] = label;
  }
}

// Productions have ascending numbers, in the order of the first nodes that have them.
void GrowingGroups::look_up_production(NodeId node) {
  if (known_.production(node) < productions_seen_) return;
  productions_seen_ = known_.production(node) + 1;
  looked_for_.clear();
  for (const NodeId child : known_.children(node))
    looked_for_.push_back(labels_here_[at(known_.label(child))]);
  const std::int32_t label = labels_here_[at(known_.label(node))];
  if (label < 0 || std::ranges::find(looked_for_, -1) != looked_for_.end()) return;
  const std::int32_t here = forest_.find_production(label, looked_for_);
  if (here >= 0) productions_[at(here)] = known_.production(node);
}

void GrowingGroups::look_up_subtree(NodeId node) {
  looked_for_.clear();
  for (const NodeId child : known_.children(node)) looked_for_.push_back(nodes_here_[at(child)]);
  const std::int32_t label = labels_here_[at(known_.label(node))];
  const bool is_new = label < 0 || std::ranges::find(looked_for_, -1) != looked_for_.end();
  nodes_here_.push_back(is_new ? -1 : forest_.find_node(label, looked_for_));
  if (nodes_here_.back() >= 0) nodes_[at(nodes_here_.back())] = node;
}

std::int32_t GrowingGroups::group(NodeId node) const {
  const std::int32_t production = forest_.production(node);
  switch (kernel_.kind) {
    case TreeKernelKind::subtree: return production < 0 ? -1 : nodes_[at(node)];
    case TreeKernelKind::subset_tree: return production < 0 ? -1 : productions_[at(production)];
    case TreeKernelKind::subset_tree_words:
      return production < 0 ? word_group(labels_[at(forest_.label(node))])
                            : production_group(productions_[at(production)]);
    case TreeKernelKind::partial_tree: return labels_[at(forest_.label(node))];
  }
  return -1;
}

}  // namespace unkernel::kernels
