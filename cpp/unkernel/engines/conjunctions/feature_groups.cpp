#include "unkernel/engines/conjunctions/feature_groups.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "unkernel/base/flat_map.hpp"

namespace unkernel::engines {
namespace {

constexpr std::size_t sample_size = 4096;   // rows
constexpr std::uint32_t most_states = 160;  // of a group, in the sampled rows

// A group under construction, and its state in each sampled row. State 0 is the empty set of features.
struct Group {
  std::vector<std::uint32_t> features;
  std::vector<std::uint32_t> state_of;
  std::uint32_t states = 0;  // without the empty state
};

// Power sums p_k of the numbers of states of the groups. They determine the elementary symmetric polynomials
// e_k, which count the combinations of k states of different groups.
struct PowerSums {
  std::array<double, 5> p = {};

  void add(double states, double sign) {
    double power = sign;
    for (std::size_t k = 1; k < p.size(); ++k) {
      power *= states;
      p[k] += power;
    }
  }
  // Returns e_1 + .. + e_degree, by Newton's identities.
  double count_combinations(int degree) const {
    std::array<double, 5> e = {1.0};
    double total = 0.0;
    for (std::size_t k = 1; k <= static_cast<std::size_t>(degree); ++k) {
      for (std::size_t i = 1; i <= k; ++i)
        e[k] += (i % 2 == 1 ? 1.0 : -1.0) * e[k - i] * p[i] / static_cast<double>(k);
      total += e[k];
    }
    return total;
  }
};

// Merges groups one pair at a time. Judges a merge by the states of the groups in a sample of the rows.
class GroupMerger {
 public:
  GroupMerger(const GroupedRows& rows, const GroupPlan& plan, int degree) : plan_(plan), degree_(degree) {
    const std::size_t count = rows.begins.size() - 1;
    sampled_rows_ = std::min(count, sample_size);
    groups_.resize(plan.features);
    for (std::uint32_t f = 0; f < plan.features; ++f) {
      groups_[f].features = {f};
      groups_[f].state_of.assign(sampled_rows_, 0);
    }
    for (std::size_t r = 0; r < sampled_rows_; ++r) {
      const std::size_t row = r * count / sampled_rows_;
      for (std::uint32_t k = rows.begins[row]; k < rows.begins[row + 1]; ++k)
        groups_[rows.items[k]].state_of[r] = 1;
    }
    for (Group& group : groups_) group.states = 1;
    joint_states_.resize(groups_.size());
    for (std::size_t a = 0; a < groups_.size(); ++a) {
      joint_states_[a].resize(groups_.size());
      for (std::size_t b = 0; b < a; ++b)
        joint_states_[a][b] = joint_states_[b][a] = count_joint_states(groups_[a], groups_[b]);
    }
    remaining_.resize(groups_.size());
    std::iota(remaining_.begin(), remaining_.end(), std::size_t{0});
  }

  std::vector<std::vector<std::uint32_t>> run() {
    while (merge_best()) {}
    std::vector<std::vector<std::uint32_t>> merged;
    for (const std::size_t g : remaining_) {
      merged.push_back(groups_[g].features);
      std::sort(merged.back().begin(), merged.back().end());
    }
    return merged;
  }

 private:
  bool merge_best() {
    PowerSums all;
    for (const std::size_t g : remaining_) all.add(groups_[g].states, 1.0);
    double fewest_sums = std::numeric_limits<double>::infinity();
    std::size_t first = 0, second = 0;
    for (std::size_t i = 0; i < remaining_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Group& a = groups_[remaining_[i]];
        const Group& b = groups_[remaining_[j]];
        const std::uint32_t joint = joint_states_[remaining_[i]][remaining_[j]];
        if (joint > most_states || a.features.size() + b.features.size() > most_features_in_group) continue;
        PowerSums merged = all;
        merged.add(a.states, -1.0);
        merged.add(b.states, -1.0);
        merged.add(joint, 1.0);
        const double sums = merged.count_combinations(degree_);
        if (sums < fewest_sums) {
          fewest_sums = sums;
          first = remaining_[i];
          second = remaining_[j];
        }
      }
    }
    // If the sums still exceed the limit, a merge is worthwhile only if it reduces their number.
    const bool is_worthwhile =
        fewest_sums <= plan_.most_sums || fewest_sums < all.count_combinations(degree_);
    if (fewest_sums == std::numeric_limits<double>::infinity() || !is_worthwhile) return false;
    merge(first, second);
    return true;
  }

  void merge(std::size_t to, std::size_t from) {
    Group& a = groups_[to];
    const Group& b = groups_[from];
    FlatMap<std::uint64_t, std::uint32_t> state_of_pair;
    std::uint32_t next = 1;
    for (std::size_t r = 0; r < sampled_rows_; ++r) {
      const std::uint64_t pair = std::uint64_t{a.state_of[r]} * (b.states + 1) + b.state_of[r];
      if (pair == 0) continue;
      std::uint32_t& state = state_of_pair[pair];
      if (state == 0) state = next++;
      a.state_of[r] = state;
    }
    a.states = next - 1;
    a.features.insert(a.features.end(), b.features.begin(), b.features.end());
    remaining_.erase(std::find(remaining_.begin(), remaining_.end(), from));
    for (const std::size_t g : remaining_) {
      if (g != to) joint_states_[g][to] = joint_states_[to][g] = count_joint_states(groups_[g], a);
    }
  }

  // Returns the number of states of the union of two groups. A pair of states was seen before in this call if
  // it has the current stamp.
  std::uint32_t count_joint_states(const Group& a, const Group& b) {
    const std::size_t pairs = std::size_t{a.states + 1} * (b.states + 1);
    if (last_stamp_.size() < pairs) last_stamp_.resize(pairs, 0);
    ++stamp_;
    std::uint32_t count = 0;
    for (std::size_t r = 0; r < sampled_rows_; ++r) {
      const std::size_t pair = std::size_t{a.state_of[r]} * (b.states + 1) + b.state_of[r];
      count += last_stamp_[pair] != stamp_;
      last_stamp_[pair] = stamp_;
    }
    return count - (last_stamp_[0] == stamp_);
  }

  GroupPlan plan_;
  int degree_;
  std::size_t sampled_rows_ = 0;
  std::vector<Group> groups_;
  std::vector<std::size_t> remaining_;
  std::vector<std::vector<std::uint32_t>> joint_states_;
  std::vector<std::uint32_t> last_stamp_;
  std::uint32_t stamp_ = 0;
};

struct State {
  std::uint64_t mask;
  std::uint32_t count;
};

// Returns the states of each group in all rows, the most frequent first.
std::vector<std::vector<State>> count_states(const GroupedRows& rows,
                                             const std::vector<std::vector<std::uint32_t>>& groups,
                                             std::uint32_t features) {
  std::vector<std::uint32_t> group_of(features), bit_of(features);
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    for (std::uint32_t k = 0; k < groups[g].size(); ++k) {
      group_of[groups[g][k]] = g;
      bit_of[groups[g][k]] = k;
    }
  }
  std::vector<FlatMap<std::uint64_t, std::uint32_t>> counts(groups.size());
  std::vector<std::uint64_t> masks(groups.size());
  for (std::size_t row = 0; row + 1 < rows.begins.size(); ++row) {
    std::fill(masks.begin(), masks.end(), 0);
    for (std::uint32_t k = rows.begins[row]; k < rows.begins[row + 1]; ++k) {
      masks[group_of[rows.items[k]]] |= std::uint64_t{1} << bit_of[rows.items[k]];
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (masks[g] != 0) ++counts[g][masks[g]];
    }
  }
  std::vector<std::vector<State>> states(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    counts[g].for_each([&](std::uint64_t mask, std::uint32_t count) { states[g].push_back({mask, count}); });
    std::sort(states[g].begin(), states[g].end(), [](const State& a, const State& b) {
      return a.count != b.count ? a.count > b.count : a.mask < b.mask;
    });
  }
  return states;
}

// Drops the rarest states until few enough sums remain.
void drop_rare_states(std::vector<std::vector<State>>& states, double most_sums, int degree) {
  std::vector<double> sizes(states.size());
  for (std::uint32_t min_count = 1;; ++min_count) {
    for (std::size_t g = 0; g < states.size(); ++g) {
      while (!states[g].empty() && states[g].back().count < min_count) states[g].pop_back();
      sizes[g] = static_cast<double>(states[g].size());
    }
    if (count_state_sums(sizes, degree) <= most_sums) return;
  }
}

}  // namespace

double count_state_sums(std::span<const double> states, int degree) {
  // Avoids power sums, which suffer from cancellation for large groups: this function also validates files.
  std::vector<double> sums(static_cast<std::size_t>(degree) + 1, 0.0);
  sums[0] = 1.0;
  for (const double count : states) {
    for (std::size_t k = sums.size() - 1; k > 0; --k) sums[k] += count * sums[k - 1];
  }
  return std::accumulate(sums.begin() + 1, sums.end(), 0.0);
}

double count_state_sums(const FeatureGroups& groups, int degree) {
  std::vector<double> counts;
  for (std::size_t g = 0; g + 1 < groups.state_begins.size(); ++g)
    counts.push_back(groups.state_begins[g + 1] - groups.state_begins[g]);
  return count_state_sums(counts, degree);
}

FeatureGroups group_features(const GroupedRows& rows, const GroupPlan& plan, int degree) {
  if (plan.features == 0 || rows.begins.size() < 2 || !(plan.most_sums > 0.0)) return {};
  const auto groups = GroupMerger(rows, plan, degree).run();
  if (groups.size() > most_groups) return {};
  auto states = count_states(rows, groups, plan.features);
  drop_rare_states(states, plan.most_sums, degree);
  FeatureGroups result;
  result.begins.push_back(0);
  result.state_begins.push_back(0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    result.order.insert(result.order.end(), groups[g].begin(), groups[g].end());
    result.begins.push_back(static_cast<std::uint32_t>(result.order.size()));
    for (const State& state : states[g]) result.states.push_back(state.mask);
    result.state_begins.push_back(static_cast<std::uint32_t>(result.states.size()));
  }
  return result;
}

}  // namespace unkernel::engines
