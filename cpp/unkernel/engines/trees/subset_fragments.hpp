// Fragments of the subset-tree kernel, and how they grow.
#pragma once

#include "unkernel/engines/trees/fragment_search.hpp"

namespace unkernel::engines::fragment_search {

struct Occurrence {
  NodeId root;
  NodeId last;  // the node that received its production last
  double weight;
};

// Groups the occurrences of a fragment by the group of the node at one of the fragment's unexpanded
// positions.
class Split {
 public:
  struct Place {
    NodeId node;
    std::int32_t group;  // -1 if the occurrence is dropped
  };
  struct Part {
    Sums sums;
    std::int32_t count = 0;
    NodeId root = -1;          // of the first occurrence
    NodeId node = -1;          // at the position, in the first occurrence
    std::int32_t target = -1;  // the grown fragment that gets the occurrences; -1 for none
  };

  explicit Split(std::size_t groups) : parts_(groups) {}

  // Splits the occurrences by the group that find(occurrence) returns. Drops groups that are not in `within`,
  // unless it is null.
  template <class Find>
  void assign(std::span<const Occurrence> occurrences, const Split* within, const Find& find) {
    for (const std::int32_t group : present_groups_) parts_[at(group)] = {};
    present_groups_.clear();
    places_.clear();
    for (const Occurrence& occurrence : occurrences) {
      Place place = find(occurrence);
      if (place.group >= 0 && within != nullptr && within->part(place.group).count == 0) place.group = -1;
      places_.push_back(place);
      if (place.group >= 0) count(place, occurrence);
    }
  }

  std::span<const std::int32_t> present_groups() const { return present_groups_; }
  const Part& part(std::int32_t group) const { return parts_[at(group)]; }
  void set_target(std::int32_t group, std::size_t target) {
    parts_[at(group)].target = static_cast<std::int32_t>(target);
  }

  // Calls take(target, occurrence) for all occurrences with a target.
  template <class Take>
  void distribute(std::span<const Occurrence> occurrences, const Take& take) const {
    for (std::size_t i = 0; i < occurrences.size(); ++i) {
      if (places_[i].group < 0) continue;
      const std::int32_t target = part(places_[i].group).target;
      if (target >= 0)
        take(at(target), Occurrence{occurrences[i].root, places_[i].node, occurrences[i].weight});
    }
  }

 private:
  void count(const Place& place, const Occurrence& occurrence) {
    Part& part = parts_[at(place.group)];
    if (part.count++ == 0) {
      part.root = occurrence.root;
      part.node = place.node;
      present_groups_.push_back(place.group);
    }
    part.sums.add(occurrence.weight);
  }

  std::vector<Part> parts_;  // by group
  std::vector<std::int32_t> present_groups_;
  std::vector<Place> places_;  // of the occurrences
};

// Grows subset trees. A *step* gives a node of a fragment its production. The children of each step are
// *slots*, numbered consecutively from step to step. Each step refers to the previous step, so fragments
// share steps.
class SubsetTrees {
 public:
  struct State {
    std::int32_t step;
    double size;
    std::vector<Occurrence> model;
    std::vector<Occurrence> tree;
  };

  SubsetTrees(const TreeKernel& kernel, const Sides& sides, std::size_t groups)
      : decay_(kernel.decay), sides_(sides), largest_size_(largest_size()), model_(groups), tree_(groups) {}

  void begin(Agenda<State>& agenda) {
    const State empty_state{-1, 1.0, list_roots(sides_.model),
                            sides_.tree == nullptr ? std::vector<Occurrence>{} : list_roots(*sides_.tree)};
    path_.clear();
    fill({-1, 0, 0}, empty_state, agenda);
  }

  // Gives a production to each slot after the last filled slot, one at a time.
  void grow(const State& state, Agenda<State>& agenda) {
    const std::int32_t last = steps_[at(state.step)].slot;
    for (std::int32_t i = state.step; i >= 0; i = steps_[at(i)].previous) {
      const Step step = steps_[at(i)];
      if (step.first_slot + step.arity <= last + 1) break;
      for (std::int32_t place = std::max(0, last + 1 - step.first_slot); place < step.arity; ++place) {
        find_path(i, place, state.step);
        fill({i, place, step.first_slot + place}, state, agenda);
      }
    }
  }

  int productions(std::int32_t step) const {
    int count = 0;
    for (; step >= 0; step = steps_[at(step)].previous) ++count;
    return count;
  }

  // Returns the fragment in brackets. Walks the tree from the root, and descends into slots that have steps.
  std::string text(const FoundFragment& fragment) const {
    const Forest& forest = (sides_.tree == nullptr ? sides_.model : *sides_.tree).forest;
    if (forest.is_leaf(fragment.root)) return std::string(forest.label_name(fragment.root));
    std::vector<std::int32_t> steps;
    for (std::int32_t i = fragment.step; i >= 0; i = steps_[at(i)].previous) steps.push_back(i);
    std::ranges::reverse(steps);
    const auto step_in = [&](std::int32_t slot) {
      const auto place =
          std::ranges::lower_bound(steps, slot, {}, [&](std::int32_t i) { return steps_[at(i)].slot; });
      return place != steps.end() && steps_[at(*place)].slot == slot ? *place : -1;
    };
    struct Open {
      NodeId node;
      std::int32_t step;
      std::int32_t next;  // of its children
    };
    std::string text;
    std::vector<Open> open{{fragment.root, steps.front(), 0}};
    append_open(text, forest.label_name(fragment.root));
    while (!open.empty()) {
      Open& top = open.back();
      const Step& step = steps_[at(top.step)];
      if (top.next == step.arity) {
        text += ')';
        open.pop_back();
        continue;
      }
      const std::int32_t place = top.next++;
      const NodeId child = forest.children(top.node)[at(place)];
      const std::int32_t child_step = step_in(step.first_slot + place);
      text += ' ';
      if (child_step < 0) {
        append_unexpanded(text, forest.label_name(child), forest.is_leaf(child));
      } else {
        append_open(text, forest.label_name(child));
        open.push_back({child, child_step, 0});
      }
    }
    return text;
  }

 private:
  struct Step {
    std::int32_t previous;    // the previous step; -1 for the root
    std::int32_t above;       // the step of the parent
    std::int32_t place;       // position among the children of the parent
    std::int32_t slot;        // the slot that it fills; 0 for the root
    std::int32_t first_slot;  // of its children
    std::int32_t arity;
  };
  struct Slot {
    std::int32_t above;
    std::int32_t place;
    std::int32_t number;
  };

  static std::vector<Occurrence> list_roots(const Side& side) {
    std::vector<Occurrence> occurrences;
    occurrences.reserve(side.roots.size());
    for (const WeightedNode& root : side.roots) occurrences.push_back({root.node, root.node, root.weight});
    return occurrences;
  }

  // Finds the child positions on the path to this child of the step, from the root or from the step `last`.
  void find_path(std::int32_t step, std::int32_t place, std::int32_t last) {
    path_.assign(1, place);
    from_last_ = step == last;
    if (from_last_) return;
    for (; steps_[at(step)].above >= 0; step = steps_[at(step)].above)
      path_.push_back(steps_[at(step)].place);
    std::ranges::reverse(path_);
  }

  // Returns the node at the end of the path. A leaf has no group unless it is a fragment by itself.
  Split::Place end_of_path(const Side& side, const Occurrence& occurrence) const {
    NodeId node = from_last_ ? occurrence.last : occurrence.root;
    for (const std::int32_t place : path_) node = side.forest.children(node)[at(place)];
    return {node, side.forest.is_leaf(node) && !path_.empty() ? -1 : side.groups[at(node)]};
  }

  // Examines the fragments that extend the state by a production in this slot.
  void fill(const Slot& slot, const State& state, Agenda<State>& agenda) {
    const auto in_model = [&](const Occurrence& occurrence) { return end_of_path(sides_.model, occurrence); };
    const auto in_tree = [&](const Occurrence& occurrence) { return end_of_path(*sides_.tree, occurrence); };
    if (sides_.tree != nullptr) tree_.assign(state.tree, nullptr, in_tree);
    model_.assign(state.model, sides_.tree == nullptr ? nullptr : &tree_, in_model);
    grown_.clear();
    bounds_.clear();
    for (const std::int32_t group : model_.present_groups()) examine(group, slot, state, agenda);
    if (grown_.empty()) return;
    model_.distribute(state.model,
                      [&](std::size_t i, const Occurrence& grown) { grown_[i].model.push_back(grown); });
    tree_.distribute(state.tree,
                     [&](std::size_t i, const Occurrence& grown) { grown_[i].tree.push_back(grown); });
    for (std::size_t i = 0; i < grown_.size(); ++i) agenda.push(bounds_[i], std::move(grown_[i]));
  }

  void examine(std::int32_t group, const Slot& slot, const State& state, Agenda<State>& agenda) {
    ++agenda.examined;
    const Split::Part& in_model = model_.part(group);
    const Sums& in_tree = sides_.tree == nullptr ? one_occurrence : tree_.part(group).sums;
    const double size = state.size * decay_;
    const FoundFragment fragment{size * in_model.sums.total(), in_tree.total(),
                                 static_cast<std::int32_t>(steps_.size()),
                                 sides_.tree == nullptr ? in_model.root : tree_.part(group).root};
    const double sizes_beyond = decay_ <= 1.0 ? size * decay_ : largest_size_;
    const auto arity = static_cast<std::int32_t>(sides_.model.forest.children(in_model.node).size());
    const double bound =
        arity == 0 ? 0.0 : replace_nan(sizes_beyond * in_model.sums.largest_part() * in_tree.largest_part());
    const bool is_listed = fragment.size() > agenda.best.threshold();
    const bool may_grow = bound > agenda.best.threshold();
    if (!is_listed && !may_grow) return;
    add_step(slot, state, arity);
    if (is_listed) agenda.best.add(fragment);
    if (may_grow) {
      set_target(group, fragment.step, size);
      bounds_.push_back(bound);
    }
  }

  void set_target(std::int32_t group, std::int32_t step, double size) {
    model_.set_target(group, grown_.size());
    State grown{step, size, {}, {}};
    grown.model.reserve(at(model_.part(group).count));
    if (sides_.tree != nullptr) {
      tree_.set_target(group, grown_.size());
      grown.tree.reserve(at(tree_.part(group).count));
    }
    grown_.push_back(std::move(grown));
  }

  void add_step(const Slot& slot, const State& state, std::int32_t arity) {
    const bool is_root = state.step < 0;
    const std::int32_t first_slot =
        is_root ? 1 : steps_[at(state.step)].first_slot + steps_[at(state.step)].arity;
    steps_.push_back({state.step, slot.above, slot.place, slot.number, first_slot, arity});
  }

  // Returns the size of the largest subtree: for lambda > 1, an upper bound for all fragments.
  double largest_size() const {
    if (decay_ <= 1.0) return 1.0;
    const Forest& forest = sides_.model.forest;
    const std::vector<double> sizes =
        kernels::subtree_constants({TreeKernelKind::subtree, decay_, 0.0}, forest);
    double largest = 1.0;
    for (const WeightedNode& root : sides_.model.roots) largest = std::max(largest, sizes[at(root.node)]);
    return largest;
  }

  double decay_;
  Sides sides_;
  double largest_size_;
  std::vector<Step> steps_;
  std::vector<std::int32_t> path_;
  bool from_last_ = false;
  Split model_;
  Split tree_;
  std::vector<State> grown_;
  std::vector<double> bounds_;
};

}  // namespace unkernel::engines::fragment_search
