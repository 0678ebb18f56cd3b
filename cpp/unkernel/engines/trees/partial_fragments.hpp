// Fragments of the partial-tree kernel, and how they grow.
#pragma once

#include "unkernel/engines/trees/fragment_search.hpp"

namespace unkernel::engines::fragment_search {

// Bounds the gain of a fragment below a node. Let M(u) be at least size(tau) e(tau, u) for any fragment tau:
//
//   B(u, i) = max over labels of the sum of M(child) over children of that label from place i on
//   M(u)    = mu max(lambda^2, B(u, 0)^p for 1 <= p <= 5)
//
// because choosing p children of given labels gains at most the product of p such sums. A product of the
// bounds of model and tree must count the size once, so each side has the square roots of mu and lambda^2 as
// factors (`halved`). With lambda > 1, skipped children also increase the gain (gap_factor_).
class Gains {
 public:
  Gains(const TreeKernel& kernel, const Side& side, bool halved, const std::vector<bool>& labels)
      : forest_(side.forest),
        node_factor_(halved ? std::sqrt(kernel.width_decay) : kernel.width_decay),
        leaf_factor_(halved ? kernel.decay : kernel.decay * kernel.decay),
        gap_factor_(std::max(1.0, kernel.decay)),
        largest_gain_(forest_.size(), 0.0),
        gain_from_place_(forest_.all_children().size(), 0.0) {
    std::vector<double> sums(labels.size(), 0.0);
    for (std::size_t i = 0; i < forest_.size(); ++i) {
      const std::int32_t label = side.groups[i];
      if (label >= 0 && labels[at(label)]) compute(static_cast<NodeId>(i), side, sums);
    }
  }

  // Returns the largest factor by which a fragment's size can grow when a node receives its first children.
  double gain_from_first(NodeId node) const {
    return gain_from_several(node, 0, longest_subsequence) / leaf_factor_;
  }
  // Returns the same for at most `max_children` more children, at `place` or later.
  double gain_from_several(NodeId node, std::size_t place, std::size_t max_children) const {
    const std::size_t arity = forest_.children(node).size();
    if (place >= arity || max_children == 0) return 0.0;
    const double one = gain_from_place_[begin(node) + place];
    const double several = one <= 1.0 ? one : std::pow(one, static_cast<double>(max_children));
    return gap_factor_ == 1.0 ? several : several * std::pow(gap_factor_, static_cast<double>(arity - place));
  }

 private:
  std::size_t begin(NodeId node) const {
    return static_cast<std::size_t>(forest_.children(node).data() - forest_.all_children().data());
  }

  void compute(NodeId node, const Side& side, std::vector<double>& sums) {
    const auto children = forest_.children(node);
    double largest = 0.0;
    for (std::size_t i = children.size(); i-- > 0;) {
      const std::int32_t label = side.groups[at(children[i])];
      if (label >= 0) {
        sums[at(label)] += largest_gain_[at(children[i])];
        largest = std::max(largest, sums[at(label)]);
      }
      gain_from_place_[begin(node) + i] = largest;
    }
    for (const NodeId child : children) {
      if (side.groups[at(child)] >= 0) sums[at(side.groups[at(child)])] = 0.0;
    }
    largest_gain_[at(node)] =
        node_factor_ * std::max(leaf_factor_, gain_from_several(node, 0, longest_subsequence));
  }

  const Forest& forest_;
  double node_factor_;
  double leaf_factor_;
  double gap_factor_;
  std::vector<double> largest_gain_;     // M; 0 if no fragment has this node's label
  std::vector<double> gain_from_place_;  // B, for all children of all nodes
};

// Grows partial trees. A new node becomes the last child of a node on the path from the fragment's root to
// its last node. Placements of a fragment that agree on this path are merged, and their values added.
class PartialTrees {
 public:
  // The node of the tree or model at which a node of the path is placed.
  struct Stop {
    NodeId node;
    std::int32_t last;  // place of its last child that is in the fragment, or -1
    // `free` is the product of the factors, at least 1, that the nodes above may gain. `forced` is the
    // largest product if at least one node above gains.
    double free;
    double forced;
  };
  // The placements of a fragment, ordered by root and by the places on the path.
  struct Placements {
    std::vector<Stop> paths;  // one stop per node of the path
    std::vector<double> values;
  };
  struct State {
    std::int32_t step;
    double size;
    std::vector<std::uint8_t> child_counts;  // by node of the path: its children in the fragment
    Placements model;
    Placements tree;
  };

  PartialTrees(const TreeKernel& kernel, const Sides& sides, std::size_t labels)
      : kernel_(kernel), sides_(sides), model_(kernel, sides.model, sides, labels) {
    if (sides.tree != nullptr) tree_.emplace(kernel, *sides.tree, sides, labels);
  }

  void begin(Agenda<State>& agenda) {
    if (tree_) {
      model_.restrict_labels(*tree_);
      tree_->find_roots();
    }
    model_.find_roots();
    agenda.most_stops += 1000 * (sides_.model.roots.size() + (tree_ ? sides_.tree->roots.size() : 0));
    const State empty_state{-1, kernel_.width_decay * kernel_.decay * kernel_.decay, {}, {}, {}};
    examine_candidates(0, empty_state, empty_state.size, agenda);
  }

  void grow(const State& state, Agenda<State>& agenda) {
    const std::size_t length = state.child_counts.size();
    for (std::size_t level = 0; level < length; ++level) {
      if (state.child_counts[level] == longest_subsequence) continue;
      if (tree_) tree_->find(state.tree, length, level, state.child_counts[level]);
      model_.find(state.model, length, level, state.child_counts[level]);
      agenda.stops += (level + 2) * (model_.candidates() + (tree_ ? tree_->candidates() : 0));
      if (model_.is_full() || (tree_ && tree_->is_full())) {
        agenda.complete = false;
        continue;
      }
      // When a node gets its first child, it loses the factor of a node without children.
      const double leaf_factor = level + 1 == length ? 1.0 : kernel_.decay * kernel_.decay;
      examine_candidates(level + 1, state, state.size * kernel_.width_decay * leaf_factor, agenda);
    }
  }

  int productions(std::int32_t step) const {
    int count = 0;
    for (; step >= 0; step = steps_[at(step)].previous) ++count;
    return count;
  }

  std::string text(const FoundFragment& fragment) const {
    std::vector<Step> nodes;  // depth first
    for (std::int32_t i = fragment.step; i >= 0; i = steps_[at(i)].previous) nodes.push_back(steps_[at(i)]);
    std::ranges::reverse(nodes);
    std::string text;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i > 0) text += ' ';
      const std::size_t next = i + 1 < nodes.size() ? nodes[i + 1].depth : 0;
      const std::string_view label = sides_.model.forest.labels().name(nodes[i].label);
      if (next > nodes[i].depth) {
        append_open(text, label);
      } else {
        append_unexpanded(text, label, nodes[i].is_leaf);
        text.append(nodes[i].depth - next, ')');
      }
    }
    return text;
  }

 private:
  struct Step {
    std::int32_t previous;
    std::int32_t label;
    std::size_t depth;
    bool is_leaf;  // whether it is a leaf in every occurrence
  };
  // A possible placement of the next node.
  struct Candidate {
    std::int32_t label;
    std::size_t placement;  // index of a placement with the path above the node
    Stop parent;
    Stop child;
    double value;
    double gain;  // the largest gain from later nodes; 0 if no node can follow
  };
  struct Part {
    Sums sums;
    Sums bounds;
    std::int32_t count = 0;
    bool is_leaf = true;
    std::int32_t target = -1;
  };

  // The candidates of one side.
  class Placing {
   public:
    Placing(const TreeKernel& kernel, const Side& side, const Sides& sides, std::size_t labels)
        : decay_(kernel.decay),
          side_(side),
          most_candidates_((std::size_t{1} << 18) + 16 * side.roots.size()),
          gains_(kernel, side, sides.tree != nullptr, labels_of(sides, labels)),
          parts_(labels) {}

    // Restricts later candidates to the labels of the other side's candidates.
    void restrict_labels(const Placing& other) { label_source_ = &other; }

    void find_roots() {
      clear();
      for (const WeightedNode& root : side_.roots) {
        add(0, {-1, -1, 1.0, 0.0}, root.node, {1.0, 0.0}, root.weight);
      }
    }

    // Lists the children of the node at this level of the path as candidates.
    void find(const Placements& placements, std::size_t length, std::size_t level, std::size_t child_count) {
      clear();
      const bool is_first = level + 1 == length;
      for (std::size_t begin = 0; begin < placements.values.size();) {
        const Stop& stop = placements.paths[begin * length + level];
        const std::size_t end = end_of_same_path(placements, length, level, begin);
        const auto children = side_.forest.children(stop.node);
        std::size_t placement = begin;
        // The sum of the values of placements that end before `place`, weighted by gaps.
        double earlier_value = is_first ? placements.values[begin] : 0.0;
        for (auto place = static_cast<std::size_t>(stop.last + 1); place < children.size(); ++place) {
          if (!is_first) {
            earlier_value *= decay_;
            for (; placement < end && at(placements.paths[placement * length + level].last + 1) == place;
                 ++placement)
              earlier_value += placements.values[placement];
          }
          add_child(begin, stop, children, place, child_count, earlier_value);
        }
        begin = end;
      }
    }

    std::size_t candidates() const { return candidates_.size(); }
    // Returns whether the list of candidates is full, so that some may be missing.
    bool is_full() const { return candidates_.size() >= most_candidates_; }

    std::span<const std::int32_t> present_labels() const { return present_labels_; }
    const Part& part(std::int32_t label) const { return parts_[at(label)]; }
    void set_target(std::int32_t label, std::size_t target) {
      parts_[at(label)].target = static_cast<std::int32_t>(target);
    }

    // Appends each candidate that has a target and may grow to placements_of(target).
    template <class PlacementsOf>
    void distribute(const Placements& from, std::size_t length, std::size_t depth,
                    const PlacementsOf& placements_of) const {
      for (const Candidate& candidate : candidates_) {
        const std::int32_t target = part(candidate.label).target;
        if (target < 0 || !(candidate.gain > 0.0)) continue;
        Placements& to = placements_of(at(target));
        if (depth > 0) {
          const auto path = from.paths.begin() + static_cast<std::ptrdiff_t>(candidate.placement * length);
          to.paths.insert(to.paths.end(), path, path + static_cast<std::ptrdiff_t>(depth - 1));
          to.paths.push_back(candidate.parent);
        }
        to.paths.push_back(candidate.child);
        to.values.push_back(candidate.value);
      }
    }

   private:
    struct GainAbove {
      double free;
      double forced;
    };

    // Returns a flag for each label: whether it occurs in the tree. Without a tree, all flags are set.
    static std::vector<bool> labels_of(const Sides& sides, std::size_t count) {
      std::vector<bool> labels(count, sides.tree == nullptr);
      if (sides.tree == nullptr) return labels;
      for (const WeightedNode& root : sides.tree->roots) {
        const std::int32_t label = sides.tree->groups[at(root.node)];
        if (label >= 0) labels[at(label)] = true;
      }
      return labels;
    }

    void clear() {
      for (const Candidate& candidate : candidates_) parts_[at(candidate.label)] = {};
      present_labels_.clear();
      candidates_.clear();
    }

    // Returns the end of the placements with the same path down to the node of this level.
    static std::size_t end_of_same_path(const Placements& placements, std::size_t length, std::size_t level,
                                        std::size_t begin) {
      const auto is_same_stop = [](const Stop& a, const Stop& b) {
        return a.node == b.node && a.last == b.last;
      };
      const Stop* first = placements.paths.data() + begin * length;
      std::size_t end = begin + 1;
      for (; end < placements.values.size(); ++end) {
        const Stop* path = placements.paths.data() + end * length;
        if (path->node != first->node || !std::equal(first, first + level, path, is_same_stop)) break;
      }
      return end;
    }

    void add_child(std::size_t placement, Stop parent, std::span<const NodeId> children, std::size_t place,
                   std::size_t child_count, double value) {
      parent.last = static_cast<std::int32_t>(place);
      const double gain =
          gains_.gain_from_several(parent.node, place + 1, longest_subsequence - child_count - 1);
      const double at_least_one = std::max(1.0, gain);
      add(placement, parent, children[place],
          {parent.free * at_least_one, std::max(parent.forced * at_least_one, parent.free * gain)}, value);
    }

    void add(std::size_t placement, const Stop& parent, NodeId node, const GainAbove& above, double value) {
      const std::int32_t label = side_.groups[at(node)];
      if (candidates_.size() >= most_candidates_) return;
      if (label < 0 || (label_source_ != nullptr && label_source_->part(label).count == 0)) return;
      const double first_gain = gains_.gain_from_first(node);
      const double gain =
          replace_nan(std::max(above.forced * std::max(1.0, first_gain), above.free * first_gain));
      Part& part = parts_[at(label)];
      if (part.count++ == 0) present_labels_.push_back(label);
      part.sums.add(value);
      if (gain > 0.0) part.bounds.add(value * gain);
      part.is_leaf = part.is_leaf && side_.forest.is_leaf(node);
      candidates_.push_back({label, placement, parent, {node, -1, above.free, above.forced}, value, gain});
    }

    double decay_;
    const Side& side_;
    std::size_t most_candidates_;
    const Placing* label_source_ = nullptr;
    Gains gains_;
    std::vector<Part> parts_;  // by label
    std::vector<std::int32_t> present_labels_;
    std::vector<Candidate> candidates_;
  };

  // Examines the fragments whose last node is one of the candidates.
  void examine_candidates(std::size_t depth, const State& state, double size, Agenda<State>& agenda) {
    grown_.clear();
    bounds_.clear();
    for (const std::int32_t label : model_.present_labels()) examine(label, depth, state, size, agenda);
    if (grown_.empty()) return;
    const std::size_t length = state.child_counts.size();
    model_.distribute(state.model, length, depth,
                      [&](std::size_t i) -> Placements& { return grown_[i].model; });
    if (tree_)
      tree_->distribute(state.tree, length, depth,
                        [&](std::size_t i) -> Placements& { return grown_[i].tree; });
    for (std::size_t i = 0; i < grown_.size(); ++i) agenda.push(bounds_[i], std::move(grown_[i]));
  }

  void examine(std::int32_t label, std::size_t depth, const State& state, double size,
               Agenda<State>& agenda) {
    ++agenda.examined;
    const Part& in_model = model_.part(label);
    const Part& in_tree = tree_ ? tree_->part(label) : in_model;
    const FoundFragment fragment{size * in_model.sums.total(), tree_ ? in_tree.sums.total() : 1.0,
                                 static_cast<std::int32_t>(steps_.size()), -1};
    const double bound =
        replace_nan(size * in_model.bounds.largest_part() * (tree_ ? in_tree.bounds.largest_part() : 1.0));
    const bool is_listed = fragment.size() > agenda.best.threshold();
    const bool may_grow = bound > agenda.best.threshold();
    if (!is_listed && !may_grow) return;
    steps_.push_back({state.step, label, depth, in_tree.is_leaf});
    if (is_listed) agenda.best.add(fragment);
    if (!may_grow) return;
    model_.set_target(label, grown_.size());
    if (tree_) tree_->set_target(label, grown_.size());
    bounds_.push_back(bound);
    grown_.push_back({fragment.step, size, child_counts_after(state, depth), {}, {}});
  }

  static std::vector<std::uint8_t> child_counts_after(const State& state, std::size_t depth) {
    std::vector<std::uint8_t> child_counts(state.child_counts.begin(),
                                           state.child_counts.begin() + static_cast<std::ptrdiff_t>(depth));
    if (depth > 0) ++child_counts.back();
    child_counts.push_back(0);
    return child_counts;
  }

  TreeKernel kernel_;
  Sides sides_;
  Placing model_;
  std::optional<Placing> tree_;
  std::vector<Step> steps_;
  std::vector<State> grown_;
  std::vector<double> bounds_;
};

}  // namespace unkernel::engines::fragment_search
