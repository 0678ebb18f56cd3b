#include "unkernel/data/trees/forest.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "unkernel/base/hash_seed.hpp"

namespace unkernel::data {
namespace {

constexpr std::size_t fewest_slots = 64;

std::uint64_t hash_of(std::int32_t label, std::span<const std::int32_t> children) {
  std::uint64_t hash =
      seeded_hash(static_cast<std::uint32_t>(label) ^ (static_cast<std::uint64_t>(children.size()) << 32));
  for (const std::int32_t child : children) {
    hash = (hash ^ static_cast<std::uint32_t>(child)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  return seeded_hash(hash);
}

std::uint64_t unary_key(std::int32_t label, NodeId child) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(label)) << 32) |
         static_cast<std::uint32_t>(child);
}

bool is_crowded(std::size_t count, std::size_t slots) { return 3 * count > 2 * slots; }

}  // namespace

Forest::Forest()
    : nodes_(1, {0, -1, -1}),
      unary_slots_(fewest_slots, {0, -1}),
      node_slots_(fewest_slots, {0, -1}),
      production_slots_(fewest_slots, {0, -1}) {}

template <class Same>
std::size_t Forest::find_slot(const Slots& slots, std::uint64_t hash, const Same& same) {
  const std::size_t mask = slots.size() - 1;
  std::size_t at = static_cast<std::size_t>(hash) & mask;
  while (slots[at].number >= 0 && (slots[at].hash != hash || !same(slots[at].number))) at = (at + 1) & mask;
  return at;
}

// Inserts a slot at the free position that find_slot returned. `count` is the number of slots in use.
void Forest::insert(Slots& slots, std::size_t count, std::size_t at, Slot slot) {
  slots[at] = slot;
  if (!is_crowded(count + 1, slots.size())) return;
  Slots old(2 * slots.size(), {0, -1});
  old.swap(slots);
  for (const Slot& moved : old) {
    if (moved.number >= 0) slots[find_slot(slots, moved.hash, [](std::int32_t) { return false; })] = moved;
  }
}

std::size_t Forest::find_unary_slot(const Slots& slots, std::uint64_t key) {
  const std::size_t mask = slots.size() - 1;
  std::size_t at = static_cast<std::size_t>(seeded_hash(key)) & mask;
  while (slots[at].number >= 0 && slots[at].hash != key) at = (at + 1) & mask;
  return at;
}

NodeId Forest::add_unary(std::int32_t label, NodeId child) {
  const std::uint64_t key = unary_key(label, child);
  Slot& slot = unary_slots_[find_unary_slot(unary_slots_, key)];
  if (slot.number >= 0) return slot.number;
  slot = {key, static_cast<NodeId>(size())};
  if (is_crowded(++unary_count_, unary_slots_.size())) {
    Slots old(2 * unary_slots_.size(), {0, -1});
    old.swap(unary_slots_);
    for (const Slot& moved : old) {
      if (moved.number >= 0) unary_slots_[find_unary_slot(unary_slots_, moved.hash)] = moved;
    }
  }
  return append(label, std::span(&child, 1));
}

bool Forest::is_node(NodeId node, std::int32_t label, std::span<const NodeId> children) const {
  return nodes_[at(node)].label == label && std::ranges::equal(this->children(node), children);
}

NodeId Forest::find_node(std::int32_t label, std::span<const NodeId> children) const {
  if (children.empty()) {
    return static_cast<std::size_t>(label) < leaf_.size() ? leaf_[static_cast<std::size_t>(label)] : -1;
  }
  if (children.size() == 1)
    return unary_slots_[find_unary_slot(unary_slots_, unary_key(label, children[0]))].number;
  const auto same = [&](NodeId node) { return is_node(node, label, children); };
  return node_slots_[find_slot(node_slots_, hash_of(label, children), same)].number;
}

NodeId Forest::add_node(std::int32_t label, std::span<const NodeId> children) {
  const auto number = static_cast<NodeId>(size());
  if (size() >= static_cast<std::size_t>(std::numeric_limits<NodeId>::max())) {
    throw std::length_error("too many different subtrees");
  }
  if (children.size() == 1) return add_unary(label, children[0]);
  if (children.empty()) {
    if (static_cast<std::size_t>(label) >= leaf_.size())
      leaf_.resize(2 * static_cast<std::size_t>(label) + 1, -1);
    NodeId& leaf = leaf_[static_cast<std::size_t>(label)];
    if (leaf >= 0) return leaf;
    leaf = number;
    return append(label, children);
  }
  const std::uint64_t hash = hash_of(label, children);
  const auto same = [&](NodeId node) { return is_node(node, label, children); };
  const std::size_t found = find_slot(node_slots_, hash, same);
  if (node_slots_[found].number >= 0) return node_slots_[found].number;
  insert(node_slots_, branching_count_++, found, {hash, number});
  return append(label, children);
}

NodeId Forest::append(std::int32_t label, std::span<const NodeId> children) {
  const auto number = static_cast<NodeId>(size());
  const std::int32_t production = children.empty() ? -1 : add_production(label, children);
  nodes_.back().label = label;
  nodes_.back().production = production;
  children_.insert(children_.end(), children.begin(), children.end());
  nodes_.push_back({static_cast<std::int64_t>(children_.size()), -1, -1});
  return number;
}

bool Forest::is_production(std::int32_t production, std::span<const std::int32_t> labels) const {
  const auto begin = static_cast<std::size_t>(production == 0 ? 0 : production_ends_[at(production) - 1]);
  const auto end = static_cast<std::size_t>(production_ends_[at(production)]);
  return std::ranges::equal(std::span(production_labels_).subspan(begin, end - begin), labels);
}

std::int32_t Forest::find_production(std::int32_t label, std::span<const std::int32_t> child_labels) const {
  std::vector<std::int32_t> labels{label};
  labels.insert(labels.end(), child_labels.begin(), child_labels.end());
  const auto same = [&](std::int32_t production) { return is_production(production, labels); };
  return production_slots_[find_slot(production_slots_, hash_of(label, child_labels), same)].number;
}

std::int32_t Forest::add_production(std::int32_t label, std::span<const NodeId> children) {
  new_labels_.assign(1, label);
  for (const NodeId child : children) new_labels_.push_back(nodes_[at(child)].label);
  const std::uint64_t hash = hash_of(label, std::span(new_labels_).subspan(1));
  const auto same = [&](std::int32_t production) { return is_production(production, new_labels_); };
  const std::size_t found = find_slot(production_slots_, hash, same);
  if (production_slots_[found].number >= 0) return production_slots_[found].number;
  const auto number = static_cast<std::int32_t>(production_count());
  insert(production_slots_, production_count(), found, {hash, number});
  production_labels_.insert(production_labels_.end(), new_labels_.begin(), new_labels_.end());
  production_ends_.push_back(static_cast<std::int64_t>(production_labels_.size()));
  return number;
}

std::vector<double> Forest::tree_sizes(std::span<const NodeId> roots) const {
  std::vector<double> sizes(size(), 1.0);  // children have smaller numbers than their parents
  for (std::size_t node = 0; node < sizes.size(); ++node) {
    for (const NodeId child : children(static_cast<NodeId>(node))) sizes[node] += sizes[at(child)];
  }
  std::vector<double> found;
  for (const NodeId root : roots) found.push_back(root < 0 ? 0.0 : sizes[at(root)]);
  return found;
}

std::size_t Forest::memory() const {
  return labels_.memory() + nodes_.capacity() * sizeof(Node) +
         (children_.capacity() + production_labels_.capacity() + leaf_.capacity()) * sizeof(NodeId) +
         production_ends_.capacity() * sizeof(std::int64_t) +
         (unary_slots_.capacity() + node_slots_.capacity() + production_slots_.capacity()) * sizeof(Slot);
}

}  // namespace unkernel::data
