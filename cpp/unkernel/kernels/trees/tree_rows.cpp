#include "unkernel/kernels/trees/tree_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "unkernel/base/error.hpp"

namespace unkernel::kernels {
namespace {

// Marks a ratio that is 1 because nothing has been written. Readers take the absolute value; the sign tells
// writers that they are the first.
constexpr double untouched = -1.0;

// Beyond this size, nodes are visited in an order that needs fewer rows.
constexpr std::size_t max_unordered_row_bytes = std::size_t{64} << 20;
constexpr std::size_t most_row_bytes = std::size_t{1} << 30;
constexpr std::size_t always_allowed_rows = 64;  // allowed even beyond most_row_bytes

}  // namespace

// Drops all rows after an exception, which may have left some of them half-written.
void TreeRows::drop_rows() {
  nodes_.clear();
  spare_.clear();
  spare_lists_.clear();
}

void TreeRows::choose_order(std::size_t count) {
  order_.clear();
  if (count * row_bytes() <= max_unordered_row_bytes ||
      most_rows_kept(count) * row_bytes() <= max_unordered_row_bytes)
    return;
  order_for_few_rows(count);
  const std::size_t rows = most_rows_kept(count);
  if (rows <= always_allowed_rows || rows * row_bytes() <= most_row_bytes) return;
  throw NotEnoughMemory(
      "a tree of " + std::to_string(count) + " different subtrees needs " +
      std::to_string(rows * row_bytes() >> 20) +
      " MB to be compared with the trees of the model or with itself, and a tree may take " +
      std::to_string(most_row_bytes >> 20) + " MB: divide it, or leave it out");
}

// Returns an upper bound on the number of rows that exist at the same time in the chosen order.
std::size_t TreeRows::most_rows_kept(std::size_t count) const {
  std::vector<std::int32_t> uses(count);
  for (std::size_t i = 0; i < count; ++i) uses[i] = nodes_[i].uses;
  std::size_t kept = 0, most = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = order_.empty() ? k : static_cast<std::size_t>(order_[k]);
    kept += has_row(i);
    most = std::max(most, kept);
    for (const ChildMatch& match : plan_.matches(nodes_[i])) {
      const auto below = static_cast<std::size_t>(match.child);
      kept -= --uses[below] == 0 && has_row(below);
    }
    kept -= uses[i] == 0 && has_row(i);
  }
  return most;
}

// Returns how many rows each node and its descendants need if no descendant occurs twice. The children that
// need most rows are processed first, and each child leaves one row for its parent.
std::vector<std::int32_t> TreeRows::rows_needed(std::size_t count) const {
  std::vector<std::int32_t> needed(count, 0), below;
  for (std::size_t i = 0; i < count; ++i) {
    below.clear();
    for (const ChildMatch& match : plan_.matches(nodes_[i]))
      below.push_back(needed[static_cast<std::size_t>(match.child)]);
    std::ranges::sort(below, std::greater());
    needed[i] = has_row(i) ? static_cast<std::int32_t>(below.size()) + 1 : 0;
    for (std::size_t k = 0; k < below.size(); ++k)
      needed[i] = std::max(needed[i], below[k] + static_cast<std::int32_t>(k));
  }
  return needed;
}

// Chooses an order in which each node directly follows its descendants, and the children that need most rows
// come first.
void TreeRows::order_for_few_rows(std::size_t count) {
  const std::vector<std::int32_t> needed = rows_needed(count);
  std::vector<std::uint8_t> begun(count, 0), done(count, 0);
  std::vector<std::int32_t> open;
  for (std::size_t root = 0; root < count; ++root) {
    if (nodes_[root].uses == 0) open.push_back(static_cast<std::int32_t>(root));
    while (!open.empty()) {
      const auto i = static_cast<std::size_t>(open.back());
      if (begun[i] != 0 || nodes_[i].matches == 0) {
        open.pop_back();
        if (done[i] == 0) order_.push_back(static_cast<std::int32_t>(i));
        done[i] = 1;
        continue;
      }
      begun[i] = 1;
      const std::size_t first = open.size();
      for (const ChildMatch& match : plan_.matches(nodes_[i])) {
        if (done[static_cast<std::size_t>(match.child)] == 0) open.push_back(match.child);
      }
      std::ranges::sort(open.begin() + static_cast<std::ptrdiff_t>(first), open.end(), {},
                        [&](std::int32_t child) { return needed[static_cast<std::size_t>(child)]; });
    }
  }
}

void TreeRows::take_row(Node& node) {
  if (spare_.empty()) {
    spare_.push_back(std::make_unique_for_overwrite<double[]>(index_.largest_block()));
    std::fill_n(spare_.back().get(), index_.largest_block(), untouched);
  }
  node.row = std::move(spare_.back());
  spare_.pop_back();
  if (spare_lists_.empty()) return;
  node.listed = std::move(spare_lists_.back());
  spare_lists_.pop_back();
}

void TreeRows::compute(Node& node, NodeId id) {
  take_row(node);
  if (index_.kernel().by_production()) {
    multiply_matches(node);
  } else {
    sum_matches(node, id);
  }
  if (node.range_begin == node.range_end && node.listed.empty()) return_row(node);
}

// Computes lambda prod_k (1 + Delta_k) by multiplying in the factors of one child after another.
void TreeRows::multiply_matches(Node& node) {
  for (const ChildMatch& match : plan_.matches(node)) {
    if (match.place == 0) {
      multiply_range(node, match);
    } else {
      multiply_list(node, match);
    }
  }
}

// The first child comes first, when all ratios are untouched.
void TreeRows::multiply_range(Node& node, const ChildMatch& match) {
  const Node& child = nodes_[static_cast<std::size_t>(match.child)];
  const double* below = child.row.get();
  double* row = node.row.get();
  if (below == nullptr && static_cast<std::size_t>(match.list.size) == index_.block_size(node.group)) {
    node.scale *= 1.0 + child.scale;
    return;
  }
  node.range_begin = match.list.begin;
  node.range_end = match.list.begin + match.list.size;
  if (below == nullptr) {
    std::fill(row + node.range_begin, row + node.range_end, 1.0 + child.scale);
    return;
  }
  const std::int32_t* position = index_.child_positions(node.group, 0);
  const double scale = child.scale;
  for (std::int32_t i = node.range_begin; i < node.range_end; ++i)
    row[i] = 1.0 + scale * std::abs(below[position[i]]);
}

void TreeRows::multiply_list(Node& node, const ChildMatch& match) {
  const Node& child = nodes_[static_cast<std::size_t>(match.child)];
  const double* below = child.row.get();
  if (below == nullptr) {
    if (match.list.complement_begin >= 0) {
      node.scale *= 1.0 + child.scale;
      multiply_constant(node, index_.not_listed(match.list), 1.0 / (1.0 + child.scale));
    } else {
      multiply_constant(node, index_.listed(match.list), 1.0 + child.scale);
    }
    return;
  }
  const std::span<const std::int32_t> listed = index_.listed(match.list);
  const std::int32_t* position = index_.listed_children(match.list);
  const double scale = child.scale;
  double* row = node.row.get();
  const std::size_t before = node.listed.size();
  node.listed.resize(before + listed.size());
  std::int32_t* touched = node.listed.data() + before;
  for (std::size_t k = 0; k < listed.size(); ++k) {
    const std::int32_t i = listed[k];
    *touched = i;
    touched += row[i] < 0.0;
    row[i] = std::abs(row[i]) * (1.0 + scale * std::abs(below[position[k]]));
  }
  node.listed.resize(static_cast<std::size_t>(touched - node.listed.data()));
}

void TreeRows::multiply_constant(Node& node, std::span<const std::int32_t> positions, double factor) {
  double* row = node.row.get();
  const std::size_t before = node.listed.size();
  node.listed.resize(before + positions.size());
  std::int32_t* touched = node.listed.data() + before;
  for (const std::int32_t i : positions) {
    *touched = i;
    touched += row[i] < 0.0;
    row[i] = std::abs(row[i]) * factor;
  }
  node.listed.resize(static_cast<std::size_t>(touched - node.listed.data()));
}

void TreeRows::sum_matches(Node& node, NodeId id) {
  const auto children = plan_.forest().children(id);
  left_groups_.clear();
  for (const NodeId child : children) left_groups_.push_back(plan_.group(child));
  seen_.resize(index_.class_count(), 0);
  ++visits_;
  for (const ChildMatch& match : plan_.matches(node)) {
    for (const std::int32_t number : index_.listed(match.list)) {
      std::int64_t& seen = seen_[static_cast<std::size_t>(number)];
      if (seen != visits_) sum_class(node, children, number);
      seen = visits_;
    }
  }
}

// All nodes of one production have the same matching children; only the values differ.
void TreeRows::sum_class(Node& node, std::span<const NodeId> children, std::int32_t number) {
  const TreeIndex::Class nodes = index_.production_class(number);
  const std::size_t first = index_.block_begin(node.group) + static_cast<std::size_t>(nodes.begin);
  const std::span<const TreeIndex::Child> right_children = index_.children(first);
  right_groups_.clear();
  for (const TreeIndex::Child& other : right_children) right_groups_.push_back(other.group);
  pattern_.match(left_groups_, right_groups_, index_.kernel().decay);
  sources_.clear();
  for (const ChildPattern::Pair& pair : pattern_.pairs()) {
    const NodeId child = children[static_cast<std::size_t>(pair.left)];
    const Node& below = nodes_[plan_.place(child)];
    sources_.push_back({below.row.get(), below.scale, pair.right});
  }
  double* row = node.row.get() + nodes.begin;
  if (pattern_.is_small()) {
    sum_few(right_children.data(), right_children.size(), nodes.size, 1.0 / node.scale, row);
  } else {
    sum_many(right_children.data(), children.size(), right_children.size(), nodes.size, 1.0 / node.scale,
             row);
  }
  for (std::int32_t i = 0; i < nodes.size; ++i) node.listed.push_back(nodes.begin + i);
}

// Computes the ratios of the nodes of a class, if few pairs of children match.
void TreeRows::sum_few(const TreeIndex::Child* right_children, std::size_t width, std::int32_t count,
                       double factor, double* row) const {
  const double leaf = index_.kernel().decay * index_.kernel().decay;
  factor *= index_.kernel().width_decay;
  std::array<double, ChildPattern::most_pairs> deltas{};
  bool varies = false;
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    deltas[k] = sources_[k].scale;
    varies = varies || sources_[k].row != nullptr;
  }
  if (!varies) {
    std::fill_n(row, count, factor * (leaf + pattern_.sum(deltas.data())));
    return;
  }
  for (std::int32_t i = 0; i < count; ++i, right_children += width) {
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      if (sources_[k].row != nullptr) deltas[k] = sources_[k].delta(right_children);
    }
    row[i] = factor * (leaf + pattern_.sum(deltas.data()));
  }
}

// Does the same for any number of matching pairs.
void TreeRows::sum_many(const TreeIndex::Child* right_children, std::size_t height, std::size_t width,
                        std::int32_t count, double factor, double* row) {
  for (std::int32_t i = 0; i < count; ++i, right_children += width) {
    const std::span<const ChildPattern::Pair> pairs = pattern_.pairs();
    std::size_t next = 0;  // pairs are in ascending order
    row[i] = factor * partial_(height, width, [&](std::size_t left, double* deltas) {
               std::fill_n(deltas, width, 0.0);
               for (; next < pairs.size() && static_cast<std::size_t>(pairs[next].left) == left; ++next)
                 deltas[static_cast<std::size_t>(pairs[next].right)] = sources_[next].delta(right_children);
             });
  }
}

// Resets a row to untouched ratios, so that another node can use it.
void TreeRows::release(Node& node) {
  if (node.row == nullptr) return;
  std::fill(node.row.get() + node.range_begin, node.row.get() + node.range_end, untouched);
  for (const std::int32_t i : node.listed) node.row[static_cast<std::size_t>(i)] = untouched;
  node.listed.clear();
  node.range_begin = node.range_end = 0;
  return_row(node);
}

// Also releases the list. If lists stayed with their nodes, they would finally take as much memory as all
// rows.
void TreeRows::return_row(Node& node) {
  spare_.push_back(std::move(node.row));
  spare_lists_.push_back(std::move(node.listed));
  node.listed.clear();
}

void TreeRows::release_children(const Node& node) {
  for (const ChildMatch& match : plan_.matches(node)) {
    Node& below = nodes_[static_cast<std::size_t>(match.child)];
    if (--below.uses == 0) release(below);
  }
}

}  // namespace unkernel::kernels
