// Partitions frequent features into a few groups such that each group occurs in few states.
//
// In rows of real tasks, features depend on each other: a word has one of several tags, a distance is in one
// of several ranges. So only a few subsets of a group of dependent features occur: the group's *states*. The
// frequent features of a row amount to one state per group. The sum of a combination of states, at most one
// per group, covers all conjunctions of their features: a row looks up hundreds of sums, not thousands of
// weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::engines {

inline constexpr std::size_t most_groups = 24;
// A state is a 64-bit word in which not all bits are set.
inline constexpr std::size_t most_features_in_group = 63;

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
// sums, as long as at most `most_sums` sums are left or the number of sums decreases. Returns no groups if
// more than `most_groups` groups remain. If more than `most_sums` sums remain, drops the rarest states.
FeatureGroups group_features(const GroupedRows& rows, const GroupPlan& plan, int degree);

}  // namespace unkernel::engines
