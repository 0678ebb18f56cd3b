// Partitions frequent features into a few groups, such that each group has few states in the rows.
//
// In rows of real tasks, features depend on each other: a word has one of several tags, a distance is in one
// of several ranges. So only a few subsets of a group of dependent features occur: the group's *states*. The
// frequent features of a row amount to one state per group. For each combination of states of different
// groups, one stored sum covers all conjunctions of their features. So a row looks up hundreds of sums
// instead of thousands of weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unkernel::engines {

inline constexpr std::size_t most_groups = 24;
// A state is a 64-bit word with at least one bit unset.
inline constexpr std::size_t most_features_in_group = 63;

struct GroupPlan {
  std::uint32_t features;  // number of most frequent features to group; 0 for none
  double most_sums;        // the most entries in the tables of sums
};

struct FeatureGroups {
  std::vector<std::uint32_t> order;         // features, group by group
  std::vector<std::uint32_t> begins;        // groups + 1, into `order`
  std::vector<std::uint32_t> state_begins;  // groups + 1, into `states`
  std::vector<std::uint64_t> states;        // bit k is set if the group's k-th feature is present; never 0
};

// The features of rows: ascending in each row, and below GroupPlan::features.
struct GroupedRows {
  std::span<const std::uint32_t> begins;  // rows + 1
  std::span<const std::uint32_t> items;
};

// Returns the number of combinations of 1 to `degree` states of different groups, each of which has a stored
// sum. `states` gives the number of states of each group.
double count_state_sums(std::span<const double> states, int degree);
double count_state_sums(const FeatureGroups& groups, int degree);

// Starts with one group per feature, and repeatedly merges the two groups that leave the fewest sums. Goes on
// while at most `most_sums` sums are left or the number of sums decreases. Returns no groups if more than
// `most_groups` remain. If more than `most_sums` sums remain, drops the rarest states.
FeatureGroups group_features(const GroupedRows& rows, const GroupPlan& plan, int degree);

}  // namespace unkernel::engines
