// Compares feature groups with the states of the rows, and checks how conjunctions of states are numbered.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "check.hpp"
#include "unkernel/base/random.hpp"
#include "unkernel/engines/conjunctions/feature_groups.hpp"
#include "unkernel/engines/conjunctions/state_index.hpp"

namespace {

using unkernel::Random;
using unkernel::engines::count_state_sums;
using unkernel::engines::FeatureGroups;
using unkernel::engines::group_features;
using unkernel::engines::GroupPlan;
using unkernel::engines::most_groups;
using unkernel::engines::StateIndex;

struct Table {
  std::vector<std::uint32_t> begins{0}, items;

  void add(const std::set<std::uint32_t>& row) {
    items.insert(items.end(), row.begin(), row.end());
    begins.push_back(static_cast<std::uint32_t>(items.size()));
  }
  FeatureGroups groups(std::uint32_t features, double max_sums, int degree) const {
    return group_features({begins, items}, GroupPlan{features, max_sums}, degree);
  }
};

// Makes rows of slots: a row has at most one of the four features of each slot.
Table rows_of_slots(std::uint32_t slots, int count, Random& random) {
  Table table;
  for (int row = 0; row < count; ++row) {
    std::set<std::uint32_t> items;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const std::uint32_t value = random.below(5);
      if (value < 4) items.insert(4 * slot + value);
    }
    table.add(items);
  }
  return table;
}

// Returns the number of rows in each state of a group.
std::map<std::uint64_t, std::uint32_t> count_states(const Table& table,
                                                    std::span<const std::uint32_t> group) {
  std::map<std::uint64_t, std::uint32_t> counts;
  for (std::size_t row = 0; row + 1 < table.begins.size(); ++row) {
    std::uint64_t mask = 0;
    for (std::uint32_t k = table.begins[row]; k < table.begins[row + 1]; ++k) {
      const auto place = std::find(group.begin(), group.end(), table.items[k]);
      if (place != group.end()) mask |= std::uint64_t{1} << (place - group.begin());
    }
    if (mask != 0) ++counts[mask];
  }
  return counts;
}

void check_groups(const Table& table, const FeatureGroups& groups, std::uint32_t n_features, double max_sums,
                  int degree) {
  std::vector<std::uint32_t> features_in_order(groups.order);
  std::sort(features_in_order.begin(), features_in_order.end());
  CHECK(features_in_order.size() == n_features &&
        std::adjacent_find(features_in_order.begin(), features_in_order.end()) == features_in_order.end() &&
        features_in_order.back() == n_features - 1);
  CHECK(groups.begins.size() == groups.state_begins.size() && groups.begins.size() - 1 <= most_groups);
  CHECK(count_state_sums(groups, degree) <= max_sums);
  for (std::size_t g = 0; g + 1 < groups.begins.size(); ++g) {
    const auto counts = count_states(
        table, std::span(groups.order).subspan(groups.begins[g], groups.begins[g + 1] - groups.begins[g]));
    std::uint32_t previous_count = std::numeric_limits<std::uint32_t>::max();
    for (std::uint32_t s = groups.state_begins[g]; s < groups.state_begins[g + 1]; ++s) {
      const auto state = counts.find(groups.states[s]);
      CHECK(state != counts.end() && state->second <= previous_count);  // the most frequent first
      previous_count = state->second;
    }
  }
}

void test_groups_have_the_states_of_the_rows() {
  Random random(1);
  for (int degree = 1; degree <= 4; ++degree) {
    for (const std::uint32_t slots : {1U, 3U, 6U, 15U}) {
      const Table table = rows_of_slots(slots, 300, random);
      for (const double max_sums : {1.0, 30.0, 1e3, 1e5, std::numeric_limits<double>::infinity()}) {
        const FeatureGroups groups = table.groups(4 * slots, max_sums, degree);
        if (!groups.order.empty()) check_groups(table, groups, 4 * slots, max_sums, degree);
        CHECK(!groups.order.empty() || slots == 15);
      }
    }
  }
}

// Groups of single features have too many sums here, so features must be merged into larger groups.
void test_merging_slots_reduces_the_number_of_sums() {
  Random random(2);
  const Table table = rows_of_slots(10, 2000, random);
  const std::vector<double> single(40, 1.0);
  const double sum_limit = 9000.0;
  CHECK(count_state_sums(single, 3) > sum_limit);
  const FeatureGroups groups = table.groups(40, sum_limit, 3);
  CHECK(!groups.order.empty());
  check_groups(table, groups, 40, sum_limit, 3);
}

void test_degenerate_inputs_give_no_groups() {
  Random random(3);
  const Table table = rows_of_slots(3, 50, random);
  for (const FeatureGroups& none :
       {table.groups(0, 1e4, 2), table.groups(12, 0.0, 2), table.groups(12, -1.0, 2),
        table.groups(12, std::numeric_limits<double>::quiet_NaN(), 2), Table{}.groups(12, 1e4, 2)}) {
    CHECK(none.order.empty() && none.begins.empty() && none.states.empty() &&
          count_state_sums(none, 2) == 0.0);
  }
  Table empty;
  empty.add({});
  const FeatureGroups without_states = empty.groups(12, 1e4, 2);
  CHECK(without_states.states.empty());
}

// --- Numbers ------------------------------------------------------------------------------------------

// Every conjunction of states has a unique number, and all numbers are used.
void check_numbers(const std::vector<std::uint32_t>& begins, int degree) {
  const StateIndex index(begins, degree);
  std::vector<std::set<std::size_t>> numbers(static_cast<std::size_t>(degree));
  const auto visit = [&](const auto& self, std::size_t size, std::size_t row, std::size_t path,
                         std::size_t place, std::size_t end) -> void {
    for (std::size_t g = 0; g < end; ++g) {
      for (std::size_t s = 0; s < index.states(g); ++s) {
        CHECK(numbers[size - 1].insert(row + index.first(g) + s).second);
        if (static_cast<int>(size) == degree) continue;
        const std::size_t longer = size == 1 ? g : path * index.groups() + g;
        const std::size_t below = size == 1 ? s : place * index.states(g) + s;
        self(self, size + 1, index.row(size, longer, below, g), longer, below, g);
      }
    }
  };
  visit(visit, 1, 0, 0, 0, index.groups());
  std::vector<double> counts;
  for (std::size_t g = 0; g < index.groups(); ++g) counts.push_back(static_cast<double>(index.states(g)));
  double total = 0.0;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    CHECK(numbers[k].size() == index.count(k));
    CHECK(numbers[k].empty() || *numbers[k].rbegin() + 1 == index.count(k));
    total += static_cast<double>(index.count(k));
  }
  CHECK(count_state_sums(counts, degree) == total);
}

void test_conjunctions_of_states_have_unique_numbers() {
  for (int degree = 1; degree <= 4; ++degree) {
    check_numbers({0, 3}, degree);
    check_numbers({0, 2, 5, 5, 9}, degree);
    check_numbers({0, 0, 0, 1}, degree);
    check_numbers({0, 1, 2, 3, 4, 5, 6}, degree);
    check_numbers({0, 0}, degree);
    check_numbers({0, 4, 5, 9, 12, 14}, degree);
  }
}

}  // namespace

int main() {
  test_groups_have_the_states_of_the_rows();
  test_merging_slots_reduces_the_number_of_sums();
  test_degenerate_inputs_give_no_groups();
  test_conjunctions_of_states_have_unique_numbers();
  return 0;
}
