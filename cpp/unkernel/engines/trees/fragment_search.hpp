// The parts that fragment searches share for all kernels: occurrences of fragments, the best fragments so
// far, and the agenda.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unkernel/base/at.hpp"
#include "unkernel/engines/trees/fragments.hpp"

namespace unkernel::engines::fragment_search {

using kernels::Forest;
using kernels::longest_subsequence;
using kernels::NodeId;
using kernels::TreeKernel;
using kernels::TreeKernelKind;

inline constexpr double infinite = std::numeric_limits<double>::infinity();

struct WeightedNode {
  NodeId node;
  double weight;
};

// One side of a score: the model, or the tree to explain. Has nodes with weights, and their groups in the
// forest of the model.
struct Side {
  const Forest& forest;
  std::span<const std::int32_t> groups;  // of all nodes in the forest
  // The possible roots of fragments: all nodes of a tree, or the nodes of the model that have a weight.
  std::vector<WeightedNode> roots;
};

// The model and a tree. If `tree` is null, every fragment counts as if it occurred once.
struct Sides {
  const Side& model;
  const Side* tree;
};

// Sums over the occurrences of a fragment.
struct Sums {
  double positive = 0.0;
  double negative = 0.0;

  void add(double value) { (value > 0.0 ? positive : negative) += std::abs(value); }
  double total() const { return positive - negative; }
  // Returns an upper bound on the absolute sum over any subset of the occurrences.
  double largest_part() const { return std::max(positive, negative); }
};

inline constexpr Sums one_occurrence{1.0, 0.0};

// A fragment with its weight and occurrences. `step` is the step by which it last grew.
struct FoundFragment {
  double weight;
  double occurrences;
  std::int32_t step;
  NodeId root;  // of an occurrence: in the tree, or without a tree in the model
  double size() const { return std::abs(weight * occurrences); }
};

inline bool is_heavier(const FoundFragment& a, const FoundFragment& b) {
  return a.size() != b.size() ? a.size() > b.size() : a.step < b.step;
}

// The heaviest fragments so far.
class BestFragments {
 public:
  explicit BestFragments(std::size_t top) : top_(top) {}

  // Returns the weight that a fragment must exceed to be among the best.
  double threshold() const {
    if (top_ == 0) return infinite;
    return fragments_.size() < top_ ? 0.0 : fragments_.front().size();
  }

  void add(const FoundFragment& fragment) {
    if (fragments_.size() == top_) {
      std::ranges::pop_heap(fragments_, is_heavier);
      fragments_.pop_back();
    }
    fragments_.push_back(fragment);
    std::ranges::push_heap(fragments_, is_heavier);
  }

  std::vector<FoundFragment> list_sorted() const {
    std::vector<FoundFragment> result = fragments_;
    std::ranges::sort(result, is_heavier);
    return result;
  }

 private:
  std::size_t top_;
  std::vector<FoundFragment> fragments_;  // a heap; its front is the lightest
};

// The fragments whose extensions may be heavier than the best fragments so far, ordered by their bounds.
template <class State>
class Agenda {
 public:
  explicit Agenda(const FragmentOptions& options)
      : best(options.top), most_looked_at_(options.most_looked_at) {}

  void push(double bound, State state) {
    waiting_.push_back({bound, serial_++, std::move(state)});
    std::ranges::push_heap(waiting_, is_grown_later);
  }

  // Returns the next fragment to grow. Returns nothing if no extension can be among the best, or if the
  // search has reached a limit.
  std::optional<State> next() {
    if (waiting_.empty() || waiting_.front().bound <= best.threshold()) return std::nullopt;
    if (examined >= most_looked_at_ || stops >= most_stops) {
      complete = false;
      return std::nullopt;
    }
    std::ranges::pop_heap(waiting_, is_grown_later);
    State state = std::move(waiting_.back().state);
    waiting_.pop_back();
    return state;
  }

  BestFragments best;
  std::size_t examined = 0;
  // The number of nodes on the paths of all placements so far. It may explode in a huge tree of few distinct
  // nodes.
  std::size_t stops = 0;
  std::size_t most_stops = std::size_t{1} << 24;
  bool complete = true;

 private:
  struct Waiting {
    double bound;
    std::size_t serial;
    State state;
  };
  static bool is_grown_later(const Waiting& a, const Waiting& b) {
    return a.bound != b.bound ? a.bound < b.bound : a.serial > b.serial;
  }

  std::size_t most_looked_at_;
  std::size_t serial_ = 0;
  std::vector<Waiting> waiting_;
};

// Replaces NaN by infinity, because an infinite bound times 0 gives NaN.
inline double replace_nan(double bound) { return std::isnan(bound) ? infinite : bound; }

inline void append_open(std::string& text, std::string_view label) {
  text += '(';
  text += label;
}

inline void append_unexpanded(std::string& text, std::string_view label, bool is_leaf) {
  if (is_leaf) {
    text += label;
  } else {
    append_open(text, label);
    text += " ...)";
  }
}

}  // namespace unkernel::engines::fragment_search
