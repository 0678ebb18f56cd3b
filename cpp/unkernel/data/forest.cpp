#include "unkernel/data/forest.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "unkernel/base/random.hpp"

namespace unkernel::data {
namespace {

constexpr std::size_t fewest_slots = 64;

std::uint32_t hash_of(std::int32_t label, std::span<const std::int32_t> children) {
  std::uint64_t hash = static_cast<std::uint32_t>(label) ^ (static_cast<std::uint64_t>(children.size()) << 32);
  for (const std::int32_t child : children) {
    hash = (hash ^ static_cast<std::uint32_t>(child)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  return static_cast<std::uint32_t>(Random::mix(hash));
}

}  // namespace

Forest::Forest() : child_begin_(1, 0), node_slots_(fewest_slots, {0, -1}), production_slots_(fewest_slots, {0, -1}) {}

template <class Same>
std::size_t Forest::place(const Slots& slots, std::uint32_t hash, const Same& same) {
  const std::size_t mask = slots.size() - 1;
  std::size_t at = hash & mask;
  while (slots[at].number >= 0 && (slots[at].hash != hash || !same(slots[at].number))) at = (at + 1) & mask;
  return at;
}

// Puts a slot where `place` found room; `count` are there already.
void Forest::insert(Slots& slots, std::size_t count, std::size_t at, Slot slot) {
  slots[at] = slot;
  if (3 * (count + 1) <= 2 * slots.size()) return;
  Slots old(2 * slots.size(), {0, -1});
  old.swap(slots);
  for (const Slot& one : old) {
    if (one.number >= 0) slots[place(slots, one.hash, [](std::int32_t) { return false; })] = one;
  }
}

NodeId Forest::find_node(std::int32_t label, std::span<const NodeId> children) const {
  if (children.empty()) {
    return static_cast<std::size_t>(label) < leaf_.size() ? leaf_[static_cast<std::size_t>(label)] : -1;
  }
  const auto same = [&](NodeId node) { return label_[at(node)] == label && std::ranges::equal(this->children(node), children); };
  return node_slots_[place(node_slots_, hash_of(label, children), same)].number;
}

NodeId Forest::add_node(std::int32_t label, std::span<const NodeId> children) {
  const auto number = static_cast<NodeId>(size());
  if (children.empty()) {
    if (static_cast<std::size_t>(label) >= leaf_.size()) leaf_.resize(static_cast<std::size_t>(label) + 1, -1);
    NodeId& leaf = leaf_[static_cast<std::size_t>(label)];
    if (leaf >= 0) return leaf;
    leaf = number;
  } else {
    const std::uint32_t hash = hash_of(label, children);
    const auto same = [&](NodeId node) {
      return label_[at(node)] == label && std::ranges::equal(this->children(node), children);
    };
    const std::size_t found = place(node_slots_, hash, same);
    if (node_slots_[found].number >= 0) return node_slots_[found].number;
    insert(node_slots_, size(), found, {hash, number});
  }
  if (size() >= static_cast<std::size_t>(std::numeric_limits<NodeId>::max())) {
    throw std::length_error("too many different subtrees");
  }
  label_.push_back(label);
  children_.insert(children_.end(), children.begin(), children.end());
  child_begin_.push_back(static_cast<std::int64_t>(children_.size()));
  production_.push_back(children.empty() ? -1 : add_production(number));
  return number;
}

bool Forest::has_production(NodeId node, std::int32_t label, std::span<const std::int32_t> child_labels) const {
  return label_[at(node)] == label &&
         std::ranges::equal(children(node), child_labels, {}, [&](NodeId child) { return label_[at(child)]; });
}

std::int32_t Forest::find_production(std::int32_t label, std::span<const std::int32_t> child_labels) const {
  const auto same = [&](std::int32_t production) {
    return has_production(production_example_[at(production)], label, child_labels);
  };
  return production_slots_[place(production_slots_, hash_of(label, child_labels), same)].number;
}

std::int32_t Forest::add_production(NodeId node) {
  child_labels_.clear();
  for (const NodeId child : children(node)) child_labels_.push_back(label_[at(child)]);
  const std::uint32_t hash = hash_of(label_[at(node)], child_labels_);
  const auto same = [&](std::int32_t production) {
    return has_production(production_example_[at(production)], label_[at(node)], child_labels_);
  };
  const std::size_t found = place(production_slots_, hash, same);
  if (production_slots_[found].number >= 0) return production_slots_[found].number;
  const auto number = static_cast<std::int32_t>(production_count());
  insert(production_slots_, production_count(), found, {hash, number});
  production_example_.push_back(node);
  return number;
}

std::size_t Forest::memory() const {
  return labels_.memory() + label_.capacity() * 4 + child_begin_.capacity() * 8 + children_.capacity() * 4 +
         production_.capacity() * 4 + production_example_.capacity() * 4 + leaf_.capacity() * 4 +
         (node_slots_.capacity() + production_slots_.capacity()) * sizeof(Slot);
}

}  // namespace unkernel::data
