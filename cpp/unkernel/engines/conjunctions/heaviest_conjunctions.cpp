#include "unkernel/engines/conjunctions/heaviest_conjunctions.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "unkernel/engines/conjunctions/table_builder.hpp"

namespace unkernel::engines {
namespace {

struct Candidate {
  double magnitude;  // of the largest weight
  std::array<Rank, most_degree> ranks;
  int count;
  std::vector<double> weights;
};

// Orders candidates by magnitude, the largest first, then by ranks, so that the list does not depend on the
// order of visits.
bool is_heavier(const Candidate& a, const Candidate& b) {
  if (a.magnitude != b.magnitude) return a.magnitude > b.magnitude;
  return std::lexicographical_compare(a.ranks.begin(), a.ranks.begin() + a.count, b.ranks.begin(),
                                      b.ranks.begin() + b.count);
}

class HeaviestLister {
 public:
  HeaviestLister(const ConjunctionTables& tables, std::size_t top)
      : tables_(tables), index_(tables.map.degree, tables.basis), top_(top), heap_(is_heavier) {}

  HeaviestConjunctions list() {
    visit_head();
    for (std::uint32_t owner = tables_.head; owner < tables_.rare; ++owner) visit_owner(owner);
    return finish();
  }

 private:
  void visit(int count, const double* weights) {
    double magnitude = 0.0;
    for (std::size_t s = 0; s < tables_.scores(); ++s) magnitude = std::max(magnitude, std::abs(weights[s]));
    if (!(magnitude > 0.0) || count == 0) return;
    ++listing_.counts[static_cast<std::size_t>(count)];
    if (top_ == 0 || (heap_.size() == top_ && magnitude < heap_.top().magnitude)) return;
    heap_.push({magnitude, path_, count, std::vector<double>(weights, weights + tables_.scores())});
    if (heap_.size() > top_) heap_.pop();
  }

  // Recovers single weights from sums over fused states, for one U at a time.
  void visit_head() {
    const std::uint64_t unfused = tables_.head - tables_.fused;
    const std::size_t width = tables_.scores();
    std::vector<double> states(tables_.fused_states() * width);
    const ConjunctionIndex& low = index_.low();
    Conjunction u;
    for (Key key = 0; key < index_.low_count(unfused); ++key) {
      const double* sums = tables_.head_low.data() + key * states.size();
      std::copy_n(sums, states.size(), states.begin());
      subtract_subsets(states);
      u = low.decode(key, u);
      for (std::uint32_t mask = 0; mask < tables_.fused_states(); ++mask)
        visit(set_path(u, mask), states.data() + mask * width);
    }
    // Conjunctions in head_top have full degree, so ConjunctionIndex numbers them owner by owner.
    const ConjunctionIndex full_index(tables_.map.degree, tables_.basis);
    Conjunction conjunction;
    for (std::uint64_t owner = 0; owner < unfused; ++owner) {
      const std::uint64_t count = index_.top(owner + 1) - index_.top(owner);
      const Key last = full_index.block(owner + 1) - count;
      for (std::uint64_t i = 0; i < count; ++i) {
        conjunction = full_index.decode(last + i, conjunction);
        visit(set_path(conjunction, 0), tables_.head_top.data() + (index_.top(owner) + i) * width);
      }
    }
  }

  void subtract_subsets(std::vector<double>& states) const {
    const std::size_t width = tables_.scores();
    for (std::uint32_t bit = 0; bit < tables_.fused; ++bit) {
      for (std::size_t state = tables_.fused_states(); state-- > 0;) {
        if ((state >> bit & 1) == 0) continue;
        for (std::size_t s = 0; s < width; ++s)
          states[state * width + s] -= states[(state ^ std::size_t{1} << bit) * width + s];
      }
    }
    // A weight of 0 may appear as a rounding error, which is ignored.
    constexpr double max_relative_error = 1e-13;
    double largest = 0.0;
    for (const double value : states) largest = std::max(largest, std::abs(value));
    for (double& value : states)
      value = std::abs(value) <= max_relative_error * largest && tables_.fused > 0 ? 0.0 : value;
  }

  int set_path(const Conjunction& u, std::uint32_t mask) {
    int count = 0;
    for (int i = 0; i < u.size; ++i)
      path_[static_cast<std::size_t>(count++)] = static_cast<Rank>(u.ranks[i]) + tables_.fused;
    for (std::uint32_t bit = tables_.fused; bit-- > 0;) {
      if ((mask >> bit & 1) == 0) continue;
      if (count == most_degree) return 0;  // there is no such conjunction, so its weight is 0
      path_[static_cast<std::size_t>(count++)] = bit;
    }
    return count > tables_.map.degree ? 0 : count;
  }

  void visit_owner(std::uint32_t owner) {
    const std::size_t place = owner - tables_.head;
    path_[0] = owner;
    visit(1, tables_.owner_weights.data() + place * tables_.scores());
    if (tables_.map.degree > 1) visit_level(0, tables_.owner_begins[place], tables_.owner_begins[place + 1]);
  }

  void visit_level(std::size_t level, std::uint32_t begin, std::uint32_t end) {
    const auto& entries = tables_.levels[level];
    const auto count = static_cast<int>(level) + 2;
    for (std::uint32_t e = begin; e < end; ++e) {
      path_[level + 1] = std::visit([&](const auto& keys) { return Rank{keys[e]}; }, entries.keys);
      if (path_[level + 1] >= tables_.used()) continue;  // keys of invalid tables are not checked
      visit(count, entries.weights.data() + e * tables_.scores());
      if (count < tables_.map.degree) visit_level(level + 1, entries.begins[e], entries.begins[e + 1]);
    }
  }

  HeaviestConjunctions finish() {
    std::vector<Candidate> candidates;
    for (; !heap_.empty(); heap_.pop()) candidates.push_back(heap_.top());
    std::sort(candidates.begin(), candidates.end(), is_heavier);
    for (const Candidate& candidate : candidates) {
      std::vector<std::int64_t> columns;
      for (int i = 0; i < candidate.count; ++i)
        columns.push_back(tables_.columns[candidate.ranks[static_cast<std::size_t>(i)]]);
      std::sort(columns.begin(), columns.end());
      columns.resize(most_degree, -1);
      listing_.columns.insert(listing_.columns.end(), columns.begin(), columns.end());
      listing_.weights.insert(listing_.weights.end(), candidate.weights.begin(), candidate.weights.end());
    }
    return std::move(listing_);
  }

  const ConjunctionTables& tables_;
  HeadIndex index_;
  std::size_t top_;
  HeaviestConjunctions listing_;
  std::array<Rank, most_degree> path_ = {};
  std::priority_queue<Candidate, std::vector<Candidate>, bool (*)(const Candidate&, const Candidate&)> heap_;
};

}  // namespace

HeaviestConjunctions list_heaviest(const ConjunctionTables& tables, std::size_t top) {
  return HeaviestLister(tables, top).list();
}

}  // namespace unkernel::engines
