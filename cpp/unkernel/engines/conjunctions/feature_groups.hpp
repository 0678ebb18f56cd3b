// Partitions frequent features into a few groups such that each group occurs in few states.
//
// Rows of real tasks fill slots: a word, its tag, a distance, each of which has one of several values. So
// only a few subsets of a group of dependent features occur, its *states*, and the frequent features of a row
// amount to one state per group. A conjunction of states, at most one per group, then represents all
// conjunctions of their features: a row looks up a few hundred sums instead of thousands of weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::engines {

inline constexpr std::size_t most_groups = 24;
inline constexpr std::size_t most_features_in_group =
    63;  // a state is a 64-bit word in which not all bits are set

struct GroupPlan {
  std::uint32_t features;  // how many of the most frequent features are grouped; 0 for none
  double most_sums;        // limit for the entries of the tables of sums
};

struct FeatureGroups {
  std::vector<std::uint32_t> order;         // features, group by group
  std::vector<std::uint32_t> begins;        // groups + 1, into `order`
  std::vector<std::uint32_t> state_begins;  // groups + 1, into `states`
  std::vector<std::uint64_t> states;        // bit k: the k-th feature of the group; no state is empty
};

// The features of rows: ascending in each row, and below GroupPlan::features.
struct GroupedRows {
  std::span<const std::uint32_t> begins;  // rows + 1
  std::span<const std::uint32_t> items;
};

// Returns the number of sums of 1 to `degree` states of different groups, given the number of states of each
// group.
double count_state_sums(std::span<const double> states, int degree);
double count_state_sums(const FeatureGroups& groups, int degree);

// Starts with one group per feature, and repeatedly merges the two groups whose merger leaves the fewest
// sums, as long as at most `most_sums` are left or their number decreases. Returns no groups if more than
// `most_groups` remain. If more than `most_sums` sums remain, the rarest states are left out.
FeatureGroups group_features(const GroupedRows& rows, const GroupPlan& plan, int degree);

}  // namespace unkernel::engines
