#include "unkernel/kernels/trees/growing_groups.hpp"

#include <algorithm>

#include "unkernel/base/at.hpp"

namespace unkernel::kernels {

GrowingGroups::GrowingGroups(const TreeKernel& kernel, const Forest& forest, const Forest& growing)
    : kernel_(kernel),
      forest_(forest),
      growing_(growing),
      labels_(forest.label_count(), -1),
      productions_(kernel.by_production() ? forest.production_count() : 0, -1),
      nodes_(kernel.kind == TreeKernelKind::subtree ? forest.size() : 0, -1) {}

void GrowingGroups::update() {
  match_labels();
  for (; matched_nodes_ < growing_.size(); ++matched_nodes_) {
    const auto node = static_cast<NodeId>(matched_nodes_);
    if (kernel_.by_production()) match_production(node);
    if (kernel_.kind == TreeKernelKind::subtree) match_subtree(node);
  }
}

void GrowingGroups::match_labels() {
  for (std::size_t i = label_in_forest_.size(); i < growing_.label_count(); ++i) {
    const auto label = static_cast<std::int32_t>(i);
    const std::int32_t match = forest_.find_label(growing_.labels().name(label));
    label_in_forest_.push_back(match);
    if (match >= 0) labels_[at(match)] = label;
  }
}

// Productions are numbered in the order of their first nodes, so each production is looked up once.
void GrowingGroups::match_production(NodeId node) {
  if (growing_.production(node) < matched_productions_) return;
  matched_productions_ = growing_.production(node) + 1;
  children_.clear();
  for (const NodeId child : growing_.children(node))
    children_.push_back(label_in_forest_[at(growing_.label(child))]);
  const std::int32_t label = label_in_forest_[at(growing_.label(node))];
  if (label < 0 || std::ranges::find(children_, -1) != children_.end()) return;
  const std::int32_t match = forest_.find_production(label, children_);
  if (match >= 0) productions_[at(match)] = growing_.production(node);
}

void GrowingGroups::match_subtree(NodeId node) {
  children_.clear();
  for (const NodeId child : growing_.children(node)) children_.push_back(node_in_forest_[at(child)]);
  const std::int32_t label = label_in_forest_[at(growing_.label(node))];
  const bool is_new = label < 0 || std::ranges::find(children_, -1) != children_.end();
  node_in_forest_.push_back(is_new ? -1 : forest_.find_node(label, children_));
  if (node_in_forest_.back() >= 0) nodes_[at(node_in_forest_.back())] = node;
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
