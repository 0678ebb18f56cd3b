#include "unkernel/kernels/trees/production_scores.hpp"

#include <algorithm>
#include <array>

#include "unkernel/base/at.hpp"

namespace unkernel::kernels {
namespace {

// Calls step(lane, k) for k below `count`, with lanes 0 .. 3 in turn, so that the sums of the lanes do not
// wait for each other.
template <class Step>
inline void run_in_lanes(std::size_t count, const Step& step) {
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    step(std::size_t{0}, k);
    step(std::size_t{1}, k + 1);
    step(std::size_t{2}, k + 2);
    step(std::size_t{3}, k + 3);
  }
  for (; k < count; ++k) step(std::size_t{0}, k);
}

using Lanes = std::array<double, 4>;
double sum_of(const Lanes& lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }

// Adds values[k] times the weights of the node at position_of(k) to `sums`, for `width` of the scores.
template <std::size_t width, class PositionOf>
void add_columns(std::span<const double> values, const PositionOf& position_of, const double* block_weights,
                 std::size_t scores, double* sums) {
  std::array<double, width> even{}, odd{};
  const auto step = [&](std::array<double, width>& sum, std::size_t k) {
    const double* weights = block_weights + position_of(k) * scores;
    for (std::size_t s = 0; s < width; ++s) sum[s] += values[k] * weights[s];
  };
  std::size_t k = 0;
  for (; k + 2 <= values.size(); k += 2) {
    step(even, k);
    step(odd, k + 1);
  }
  if (k < values.size()) step(even, k);
  for (std::size_t s = 0; s < width; ++s) sums[s] += even[s] + odd[s];
}

template <class PositionOf>
void add_all_columns(std::span<const double> values, const PositionOf& position_of,
                     const double* block_weights, std::size_t scores, double* sums) {
  std::size_t s = 0;
  for (; s + 4 <= scores; s += 4) add_columns<4>(values, position_of, block_weights + s, scores, sums + s);
  switch (scores - s) {
    case 3: add_columns<3>(values, position_of, block_weights + s, scores, sums + s); break;
    case 2: add_columns<2>(values, position_of, block_weights + s, scores, sums + s); break;
    case 1: add_columns<1>(values, position_of, block_weights + s, scores, sums + s); break;
    default: break;
  }
}

}  // namespace

void ProductionScorer::add(const TreeRow& tree, double* sums) {
  plan_.make(tree.nodes, nodes_);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    Node& node = nodes_[i];
    if (node.group < 0 || sum_up_with_parent(node, tree, i, sums)) continue;
    sum_up(node);
    const double weight = tree.weights[i] * node.scale;
    for (std::size_t s = 0; s < node_sums_.size(); ++s) sums[s] += weight * node_sums_[s];
    release_children(node);
    if (node.uses == 0) release(node);
  }
}

void ProductionScorer::release_children(const Node& node) {
  for (const ChildMatch& match : plan_.matches(node)) {
    Node& below = nodes_[at(match.child)];
    if (--below.uses == 0) release(below);
  }
}

// If the node is the only child of its parent, and the parent has no parent, adds the scores of both nodes in
// one pass. Returns whether it did.
bool ProductionScorer::sum_up_with_parent(Node& node, const TreeRow& tree, std::size_t place, double* sums) {
  if (node.uses != 1 || !weights_.has_parents()) return false;
  Node& parent = nodes_[at(node.user)];
  if (parent.uses > 0 || index_.arity(parent.group) != 1) return false;
  const TreeIndex::List& range = plan_.match(parent.first_match).list;
  const TreeWeights::ParentWeights parent_weights = weights_.parent_weights(node.group, range);
  if (parent_weights.by_child == nullptr) return false;
  std::copy_n(weights_.group_weights(node.group), node_sums_.size(), node_sums_.begin());
  std::ranges::fill(parent_sums_, 0.0);
  const double* run_weights = weights_.run_weights(at(range.complement_begin));
  for (std::int32_t k = 0; k < range.complement_size; ++k) {
    for (std::size_t s = 0; s < parent_sums_.size(); ++s) parent_sums_[s] += *run_weights++;
  }
  const auto matches = plan_.matches(node);
  FirstChild first;
  if (!matches.empty() && matches.front().place == 0)
    first = multiply_first_child(node, matches.front(), parent_weights.by_child_run);
  multiply_lists(node, first, parent_weights.by_child);
  const double weight = tree.weights[place] * node.scale;
  const double parent_weight = tree.weights[at(node.user)] * parent.scale;
  const double* parent_group_weights = weights_.group_weights(parent.group);
  for (std::size_t s = 0; s < node_sums_.size(); ++s)
    sums[s] +=
        weight * node_sums_[s] + parent_weight * (parent_group_weights[s] + node.scale * parent_sums_[s]);
  parent.group = -1;
  release_children(node);
  return true;
}

// Multiplies by the factors 1 + excess of the first child: adds excess times the weights of each run to the
// sums of the node and of its parent. Returns the factors, because they are not written to the node's row.
ProductionScorer::FirstChild ProductionScorer::multiply_first_child(Node& node, const ChildMatch& match,
                                                                    const double* weights_by_child_run) {
  const Node& child = nodes_[at(match.child)];
  if (child.row == nullptr && at(match.list.size) == index_.block_size(node.group)) {
    node.scale *= 1.0 + child.scale;
    return {};
  }
  if (child.row == nullptr && zeros_.empty()) zeros_.resize(index_.largest_block(), 0.0);
  const double* row = child.row == nullptr ? zeros_.data() : child.row.get();
  const std::size_t scores = node_sums_.size(), first = at(match.list.complement_begin);
  const double* run_weights = weights_.run_weights(first);
  const double* child_run_weights = weights_by_child_run + (first - index_.first_run(node.group)) * scores;
  for (const TreeIndex::Run& run : index_.runs(match.list)) {
    const double excess = child.scale + child.scale * row[at(run.child)];
    for (std::size_t s = 0; s < scores; ++s) {
      node_sums_[s] += excess * *run_weights++;
      parent_sums_[s] += excess * *child_run_weights++;
    }
  }
  return {row, index_.child_positions(node.group, 0), child.scale, match.list.begin,
          match.list.begin + match.list.size};
}

// Multiplies by the factors of all children after the first. Begins with children whose Delta is the same for
// all nodes, because such a child changes few nodes. The row is not needed after the last child.
void ProductionScorer::multiply_lists(Node& node, const FirstChild& first, const double* weights_by_child) {
  later_children_.clear();
  for (const bool is_constant : {true, false}) {
    for (const ChildMatch& match : plan_.matches(node)) {
      if (match.place > 0 && (nodes_[at(match.child)].row == nullptr) == is_constant)
        later_children_.push_back(&match);
    }
  }
  for (std::size_t k = 0; k < later_children_.size(); ++k) {
    const bool reads = k > 0, writes = k + 1 < later_children_.size();
    if (reads || writes) take_row(node);
    visit_factors(node, *later_children_[k],
                  [&](std::span<const std::int32_t> positions, const auto& excess_of) {
                    if (writes) {
                      multiply_both<true, true>(node, first, positions, excess_of, weights_by_child);
                    } else if (reads) {
                      multiply_both<true, false>(node, first, positions, excess_of, weights_by_child);
                    } else {
                      multiply_both<false, false>(node, first, positions, excess_of, weights_by_child);
                    }
                  });
  }
  if (node.row == nullptr) return;
  for (std::size_t k = 0; k + 1 < later_children_.size(); ++k) {
    const TreeIndex::List& list = later_children_[k]->list;
    const bool is_constant = nodes_[at(later_children_[k]->child)].row == nullptr;
    const auto changed =
        is_constant && list.complement_begin >= 0 ? index_.not_listed(list) : index_.listed(list);
    for (const std::int32_t i : changed) node.row[at(i)] = 0.0;
  }
  spare_.push_back(std::move(node.row));
}

// Multiplies by the factors 1 + excess_of(k) at positions[k], for the node and its parent. If `reads`, reads
// the row of the node; if `writes`, writes it.
template <bool reads, bool writes, class ExcessOf>
void ProductionScorer::multiply_both(Node& node, const FirstChild& first,
                                     std::span<const std::int32_t> positions, const ExcessOf& excess_of,
                                     const double* weights_by_child) {
  double* row = node.row.get();
  const double* block_weights = weights_.node_weights(index_.block_begin(node.group));
  const FirstChild local = first;
  const auto add_factor = [=](std::size_t k) {
    const std::int32_t i = positions[k];
    const double factor = excess_of(k);
    double value = factor;
    if constexpr (reads) value += factor * row[i];
    if constexpr (writes) row[i] += value;
    return value + value * local.excess(i);
  };
  if (node_sums_.size() == 1) {
    Lanes lanes{}, above{};
    run_in_lanes(positions.size(), [&](std::size_t lane, std::size_t k) {
      const double value = add_factor(k);
      lanes[lane] += value * block_weights[positions[k]];
      above[lane] += value * weights_by_child[positions[k]];
    });
    node_sums_[0] += sum_of(lanes);
    parent_sums_[0] += sum_of(above);
    return;
  }
  double* values = reserve_values(positions.size());
  for (std::size_t k = 0; k < positions.size(); ++k) values[k] = add_factor(k);
  add_at(positions, block_weights, node_sums_);
  add_at(positions, weights_by_child, parent_sums_);
}

// Sums the scores of a node. Begins with the factors of the first child, while the row is 0 everywhere.
void ProductionScorer::sum_up(Node& node) {
  std::copy_n(weights_.group_weights(node.group), node_sums_.size(), node_sums_.begin());
  const auto matches = plan_.matches(node);
  for (std::size_t k = 0; k < matches.size(); ++k) {
    if (matches[k].place == 0) {
      multiply_range(node, matches[k], node.uses > 0 || k + 1 < matches.size());
    } else {
      multiply_list(node, matches[k]);
    }
  }
}

void ProductionScorer::take_row(Node& node) {
  if (node.row != nullptr) return;
  if (spare_.empty()) spare_.push_back(std::make_unique<double[]>(index_.largest_block()));
  node.row = std::move(spare_.back());
  spare_.pop_back();
}

// Multiplies by the factors of the first child, in the way that is fastest for its runs.
void ProductionScorer::multiply_range(Node& node, const ChildMatch& match, bool keeps_row) {
  const Node& child = nodes_[at(match.child)];
  if (child.row == nullptr && at(match.list.size) == index_.block_size(node.group)) {
    node.scale *= 1.0 + child.scale;
    return;
  }
  if (keeps_row) take_row(node);
  const bool short_runs = 2 * match.list.complement_size > match.list.size;
  if (child.row == nullptr || (index_.arity(node.group) > 1 && !short_runs)) {
    multiply_runs(node, match, keeps_row);
  } else if (short_runs) {
    multiply_first(node, match, keeps_row);
  } else {
    multiply_stretches(node, match, keeps_row);
  }
}

// Multiplies by the factors of a first child whose Delta is the same within each run.
void ProductionScorer::multiply_runs(Node& node, const ChildMatch& match, bool keeps_row) {
  const Node& child = nodes_[at(match.child)];
  const TreeIndex::Run* run = index_.runs(match.list).data();
  const double* run_weights = weights_.run_weights(at(match.list.complement_begin));
  double* row = keeps_row ? node.row.get() : nullptr;
  const auto first = static_cast<std::int32_t>(index_.block_begin(node.group));
  for (std::int32_t k = 0; k < match.list.complement_size; ++k, ++run, run_weights += node_sums_.size()) {
    const double excess =
        child.row == nullptr ? child.scale : child.scale + child.scale * child.row[at(run->child)];
    for (std::size_t s = 0; s < node_sums_.size(); ++s) node_sums_[s] += excess * run_weights[s];
    if (keeps_row) std::fill(row + (run[0].begin - first), row + (run[1].begin - first), excess);
  }
}

// Multiplies the k-th of `size` neighbours by the factor 1 + scale (1 + below(k)). Unless `row` is null,
// stores the factors minus 1 in it.
template <class Below>
void ProductionScorer::multiply_stretch(double* row, std::size_t size, double scale, const Below& below,
                                        const double* node_weights) {
  if (node_sums_.size() == 1) {
    Lanes lanes{};
    if (row == nullptr) {
      run_in_lanes(
          size, [&](std::size_t lane, std::size_t k) { lanes[lane] += (1.0 + below(k)) * node_weights[k]; });
      node_sums_[0] += scale * sum_of(lanes);
    } else {
      run_in_lanes(size, [&](std::size_t lane, std::size_t k) {
        row[k] = scale + scale * below(k);
        lanes[lane] += row[k] * node_weights[k];
      });
      node_sums_[0] += sum_of(lanes);
    }
    return;
  }
  if (row == nullptr) row = reserve_values(size);
  for (std::size_t k = 0; k < size; ++k) row[k] = scale + scale * below(k);
  add_all_columns(
      {row, size}, [](std::size_t k) { return k; }, node_weights, node_sums_.size(), node_sums_.data());
}

// Multiplies by the factors of an only child, run by run: the children of the nodes in a run are neighbours.
void ProductionScorer::multiply_stretches(Node& node, const ChildMatch& match, bool keeps_row) {
  const Node& child = nodes_[at(match.child)];
  const std::span<const TreeIndex::Run> runs = index_.runs(match.list);
  const std::size_t first = index_.block_begin(node.group);
  for (const TreeIndex::Run* run = runs.data(); run != runs.data() + runs.size(); ++run) {
    const double* below = child.row.get() + run->child;
    const std::size_t begin = at(run[0].begin), size = at(run[1].begin) - begin;
    multiply_stretch(
        keeps_row ? node.row.get() + (begin - first) : nullptr, size, child.scale,
        [=](std::size_t k) { return below[k]; }, weights_.node_weights(begin));
  }
}

// Multiplies by the factors of any other first child, node by node.
void ProductionScorer::multiply_first(Node& node, const ChildMatch& match, bool keeps_row) {
  const Node& child = nodes_[at(match.child)];
  const std::size_t begin = at(match.list.begin);
  const std::int32_t* position = index_.child_positions(node.group, 0) + begin;
  const double* below = child.row.get();
  multiply_stretch(
      keeps_row ? node.row.get() + begin : nullptr, at(match.list.size), child.scale,
      [=](std::size_t k) { return below[position[k]]; },
      weights_.node_weights(index_.block_begin(node.group) + begin));
}

double* ProductionScorer::reserve_values(std::size_t values) {
  if (values_.size() < values) values_.resize(values);
  return values_.data();
}

// Calls multiply(positions, excess_of) for the factors 1 + excess_of(k) of a child, at positions[k].
template <class Multiply>
void ProductionScorer::visit_factors(Node& node, const ChildMatch& match, const Multiply& multiply) {
  const Node& child = nodes_[at(match.child)];
  const double scale = child.scale;
  if (child.row != nullptr) {
    const std::int32_t* position = index_.listed_children(match.list);
    const double* below = child.row.get();
    multiply(index_.listed(match.list), [=](std::size_t k) { return scale + scale * below[position[k]]; });
  } else if (match.list.complement_begin < 0) {
    multiply(index_.listed(match.list), [=](std::size_t) { return scale; });
  } else {
    node.scale *= 1.0 + scale;
    const double excess = -scale / (1.0 + scale);
    multiply(index_.not_listed(match.list), [=](std::size_t) { return excess; });
  }
}

void ProductionScorer::multiply_list(Node& node, const ChildMatch& match) {
  take_row(node);
  visit_factors(node, match, [&](std::span<const std::int32_t> positions, const auto& excess_of) {
    multiply_listed(node, positions, excess_of);
  });
}

// Multiplies by the factors 1 + excess_of(k) at positions[k].
template <class ExcessOf>
void ProductionScorer::multiply_listed(Node& node, std::span<const std::int32_t> positions,
                                       const ExcessOf& excess_of) {
  double* row = node.row.get();
  const double* block_weights = weights_.node_weights(index_.block_begin(node.group));
  if (node_sums_.size() == 1) {
    Lanes lanes{};
    run_in_lanes(positions.size(), [&](std::size_t lane, std::size_t k) {
      const std::size_t i = at(positions[k]);
      const double old_value = row[i], factor = excess_of(k);
      const double change = factor + factor * old_value;
      row[i] = old_value + change;
      lanes[lane] += change * block_weights[i];
    });
    node_sums_[0] += sum_of(lanes);
    return;
  }
  double* values = reserve_values(positions.size());
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const std::size_t i = at(positions[k]);
    const double old_value = row[i], factor = excess_of(k);
    values[k] = factor + factor * old_value;
    row[i] = old_value + values[k];
  }
  add_at(positions, block_weights, node_sums_);
}

// Adds values_[k] times the weights at positions[k] to `sums`.
void ProductionScorer::add_at(std::span<const std::int32_t> positions, const double* weights,
                              std::vector<double>& sums) {
  const auto position_of = [=](std::size_t k) { return at(positions[k]); };
  add_all_columns(std::span(values_).first(positions.size()), position_of, weights, sums.size(), sums.data());
}

// Resets the row to zeros, so that another node can use it.
void ProductionScorer::release(Node& node) {
  if (node.row == nullptr) return;
  double* row = node.row.get();
  const auto matches = plan_.matches(node);
  std::size_t listed = 0;
  for (const ChildMatch& match : matches) listed += match.place == 0 ? 0 : at(match.list.size);
  if (8 * listed > index_.block_size(node.group)) {
    std::fill_n(row, index_.block_size(node.group), 0.0);
  } else {
    for (const ChildMatch& match : matches) {
      if (match.place == 0) {
        std::fill_n(row + match.list.begin, match.list.size, 0.0);
      } else {
        for (const std::int32_t i : index_.listed(match.list)) row[i] = 0.0;
      }
    }
  }
  spare_.push_back(std::move(node.row));
}

}  // namespace unkernel::kernels
