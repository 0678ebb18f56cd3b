// Frequent features in a few groups, such that each group is met in few states.
//
// Rows of real tasks fill slots: a word, its tag, a distance, each with one value out of some. So out of all
// subsets of a group of dependent features only few occur, its *states*; and a row, as far as frequent
// features go, is one state for each group. A conjunction of states, one per group, then stands for all
// conjunctions of their features: instead of thousands of weights a row looks up a few hundred sums.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::engines {

inline constexpr std::size_t most_groups = 24;
inline constexpr std::size_t most_features_in_group = 63;  // a state is a word of bits, not all of them

struct GroupPlan {
  std::uint32_t features;  // so many of the most frequent ones are grouped; 0: none are
  double most_sums;        // entries that the tables of sums may have
};

struct FeatureGroups {
  std::vector<std::uint32_t> order;         // features, group by group
  std::vector<std::uint32_t> begins;        // groups + 1, into `order`
  std::vector<std::uint32_t> state_begins;  // groups + 1, into `states`
  std::vector<std::uint64_t> states;        // bit k: the k-th feature of the group; none is empty
};

// Lists of features, each below the plan's number, ascending in each row.
struct GroupedRows {
  std::span<const std::uint32_t> begins;  // rows + 1
  std::span<const std::uint32_t> items;
};

// How many sums there are of 1 to `degree` states of different groups, which have so many.
double sums_of_states(std::span<const double> states, int degree);
double sums_of_states(const FeatureGroups& groups, int degree);

// Begins with single features and merges, two groups at a time, those that leave the fewest sums, while these
// are few enough, or become fewer. What remains is without groups if there would be too many of them; if
// there are still too many sums, the rarest states are left out.
FeatureGroups group_features(const GroupedRows& rows, const GroupPlan& plan, int degree);

}  // namespace unkernel::engines
